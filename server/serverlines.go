package server

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/proto"
)

const (
	// linesPatience is for how many ticks the leader remembers the server lines of another member,
	// which reports them twice a tick.
	linesPatience = 3
	// linesRetry is after how many ticks a change is tried again that was not possible.
	linesRetry = 10
)

// serverLines makes the ensemble follow the server lines of its members' configurations
// (Config.Members) if clients may not change the members (Config.ReconfigEnabled): each server
// whose lines differ from the members in the state sends its lines to the leader, and the leader
// changes the members when a majority of the voters, including itself, has the same lines. So
// editing every zoo.cfg and restarting one server after the other has the effect that it has on
// ZooKeeper.
type serverLines struct {
	mu     sync.Mutex
	others map[uint64]linesReport // by member

	// Owned by the goroutine of runSessions.
	lastLogged proto.Zxid // version of the members for which a difference was logged
	lastTried  time.Time  // by the runtime's clock
}

// linesReport is the server lines of another member.
type linesReport struct {
	set     serverlist.Set
	arrived time.Time // by the runtime's clock
}

// take records the lines in a message of another member.
func (l *serverLines) take(from uint64, text string) error {
	set, _, err := serverlist.ParseConfig(text)
	if err != nil {
		return fmt.Errorf("server lines: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.others == nil {
		l.others = make(map[uint64]linesReport)
	}
	l.others[from] = linesReport{set, time.Now()}
	return nil
}

// recent returns the lines of the voters that have reported them within patience.
func (l *serverLines) recent(voters []uint64, patience time.Duration) map[uint64]serverlist.Set {
	l.mu.Lock()
	defer l.mu.Unlock()
	recent := make(map[uint64]serverlist.Set)
	for _, id := range voters {
		if r, ok := l.others[id]; ok && time.Since(r.arrived) <= patience {
			recent[id] = r.set
		}
	}
	return recent
}

// followLines runs twice a tick on the goroutine of runSessions.
func (s *Server) followLines(st consensus.Status) {
	if s.alone() {
		return
	}
	s.treeMu.RLock()
	current, version := s.tree.Config()
	_, pending := s.tree.PendingConfig()
	s.treeMu.RUnlock()
	if version == 0 || pending {
		return
	}
	own := uint64(s.cfg.MemberID)
	differ := linesDiffer(s.members, current, own)
	if differ {
		s.noteLines(current, version)
	}
	switch {
	case s.live.Load().ReconfigEnabled:
	case !st.Leading && differ:
		s.node.Send(st.Leader, append([]byte{reportLines}, s.members.Text(0)...))
	case st.Leading && time.Since(s.loop.lines.lastTried) > linesRetry*s.cfg.Tick:
		wanted, ok := agreedLines(s.members, current, own, s.loop.lines.recent(current.Voters(), linesPatience*s.cfg.Tick))
		if ok && s.quorumConnected(wanted) {
			s.loop.lines.lastTried = time.Now()
			s.changeMembers(wanted, version)
		}
	}
}

// noteLines logs that the lines of this server are not the members of the ensemble, once for each
// version of the members.
func (s *Server) noteLines(current serverlist.Set, version proto.Zxid) {
	if s.loop.lines.lastLogged == version {
		return
	}
	s.loop.lines.lastLogged = version
	log := s.cfg.Logger.With("configured", oneLine(s.members), "members", oneLine(current))
	if s.live.Load().ReconfigEnabled {
		log.Warn("the server lines of the configuration are not the members of the ensemble, and have no effect, because reconfigEnabled is true: remove or correct the lines, or change the members",
			"command", reconfigCommand(s.members, current))
		return
	}
	log.Info("the server lines of the configuration are not the members of the ensemble: the lines take effect when a majority of the voters has been restarted with them")
}

func oneLine(set serverlist.Set) string {
	text, _, _ := strings.Cut(set.Text(0), "\nversion=")
	return strings.ReplaceAll(text, "\n", " ")
}

// reconfigCommand returns the command of the shell that makes the members those of the lines.
func reconfigCommand(wanted, current serverlist.Set) string {
	var add, remove []string
	for _, m := range wanted {
		if before, is := current.Get(m.ID); !is || !sameServer(before, m) {
			add = append(add, m.String())
		}
	}
	for _, m := range current {
		if _, is := wanted.Get(m.ID); !is {
			remove = append(remove, fmt.Sprint(m.ID))
		}
	}
	command := "reconfig"
	if len(remove) > 0 {
		command += " -remove " + strings.Join(remove, ",")
	}
	if len(add) > 0 {
		command += " -add '" + strings.Join(add, ",") + "'"
	}
	return command
}

// sameServer reports whether two lines name the same server with the same role and addresses for
// other members.
func sameServer(a, b serverlist.Member) bool {
	a.ClientHost, a.ClientPort, b.ClientHost, b.ClientPort = "", 0, "", 0
	return a == b
}

// linesDiffer reports whether the members should become those of the lines of server own. The
// address in a server's own line may be valid on its own machine only.
func linesDiffer(lines, current serverlist.Set, own uint64) bool {
	if len(lines) != len(current) {
		return true
	}
	for _, m := range lines {
		before, is := current.Get(m.ID)
		switch {
		case !is, before.Role != m.Role:
			return true
		case m.ID == own && m.ClientPort != 0 && (m.ClientPort != before.ClientPort || m.ClientHost != before.ClientHost):
			return true
		case m.ID != own && !sameServer(before, m):
			return true
		}
	}
	return false
}

// agreedLines returns the members that a majority of the current voters has in its lines: server
// own, the leader, which has lines, and those of reports that agree with it. ok is false if there
// is no such majority, or the members are those already.
//
// Each server's line is taken from the lines of other servers, because the address in a server's
// own line may be valid on its own machine only; its client address is taken from its own lines,
// because flags can change it, or stays.
func agreedLines(lines, current serverlist.Set, own uint64, reports map[uint64]serverlist.Set) (wanted serverlist.Set, ok bool) {
	agreeing := 1
	mine, _ := lines.Get(own)
	fromOthers := false // mine is another server's line for server own
	for _, id := range current.Voters() {
		theirs, reported := reports[id]
		if !reported || !agree(lines, theirs, own, id) {
			continue
		}
		line, _ := theirs.Get(own)
		if fromOthers && !sameServer(mine, line) {
			continue
		}
		mine, fromOthers = line, true
		agreeing++
	}
	if agreeing <= len(current.Voters())/2 {
		return nil, false
	}
	for _, m := range lines {
		if m.ID == own {
			m = mine
		}
		before, was := current.Get(m.ID)
		at := m
		theirs, reported := reports[m.ID]
		switch {
		case m.ID == own:
			at, _ = lines.Get(own)
		case reported:
			at, _ = theirs.Get(m.ID)
		case was && sameServer(before, m):
			at = before
		}
		if at.ClientPort == 0 && was { // its own configuration has the client port in another place
			at = before
		}
		m.ClientHost, m.ClientPort = at.ClientHost, at.ClientPort
		wanted = wanted.With(m)
	}
	return wanted, !wanted.Equal(current)
}

// agree reports whether the lines of two servers, a and b, name the same servers. What they say
// about a and b themselves may differ in the addresses.
func agree(linesOfA, linesOfB serverlist.Set, a, b uint64) bool {
	if len(linesOfA) != len(linesOfB) {
		return false
	}
	for _, m := range linesOfA {
		other, is := linesOfB.Get(m.ID)
		switch {
		case !is, m.Role != other.Role:
			return false
		case m.ID != a && m.ID != b && !sameServer(m, other):
			return false
		}
	}
	return true
}

// quorumConnected reports whether this server is connected to a majority of the voters of a set.
func (s *Server) quorumConnected(set serverlist.Set) bool {
	there, connected := 0, s.node.Connected()
	for _, id := range set.Voters() {
		if id == uint64(s.cfg.MemberID) || slices.Contains(connected, id) {
			there++
		}
	}
	return there > len(set.Voters())/2
}

// changeMembers proposes a reconfig in the name of the configuration files. version is that of the
// members that it replaces.
func (s *Server) changeMembers(wanted serverlist.Set, version proto.Zxid) {
	text, _, _ := strings.Cut(wanted.Text(0), "\nversion=")
	flags := s.requestFlags() | datatree.FlagSkipACL
	request := serverlist.Request{NewMembers: &text, OneVoter: flags&datatree.FlagOneVoter != 0, MultiAddress: flags&datatree.FlagMultiAddress != 0}
	if _, code, _ := serverlist.Reconfigure(nil, request); code != proto.OK {
		s.cfg.Logger.Error("the server lines of a majority cannot become the members of the ensemble: two participants are the least unless standaloneEnabled=false, and no two servers may share an address",
			"lines", oneLine(wanted), "reason", code.String())
		return
	}
	s.cfg.Logger.Info("a majority of the voters has new server lines: the members are changed", "lines", oneLine(wanted))
	body := proto.ReconfigRequest{NewMembers: &text, ConfigID: int64(version)}
	s.propose(datatree.Request{Op: proto.OpReconfig, Flags: flags, Body: body.Append(nil)}, func(res *datatree.Result) {
		if res.Err != proto.OK {
			s.cfg.Logger.Warn("the members of the ensemble were not changed", "reason", res.Err.String())
		}
	})
}
