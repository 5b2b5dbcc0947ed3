package server

import (
	"slices"
	"strings"
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/internal/members"
)

const (
	// linesPatience is for how many ticks the leader remembers the server lines of another member,
	// which reports them twice a tick.
	linesPatience = 3
	// linesRetry is after how many ticks a change is tried again that was not possible.
	linesRetry = 10
)

// followLines makes the ensemble follow the server lines of its members, see members.Lines. It runs
// twice a tick on the goroutine of runSessions.
func (s *Server) followLines(st consensus.Status) {
	if s.alone() {
		return
	}
	current, version, changing := s.state.membership()
	if version == 0 || changing {
		return
	}
	own := uint64(s.cfg.MemberID)
	differ := members.Differ(s.members, current, own)
	if differ {
		s.noteLines(current, version)
	}
	switch {
	case s.live.Load().ReconfigEnabled:
	case !st.Leading && differ:
		s.node.Send(st.Leader, append([]byte{reportLines}, s.members.Text(0)...))
	case st.Leading && time.Since(s.loop.linesTried) > linesRetry*s.cfg.Tick:
		wanted, ok := members.Agreed(s.members, current, own, s.loop.lines.Recent(current.Voters(), linesPatience*s.cfg.Tick))
		if ok && s.quorumConnected(wanted) {
			s.loop.linesTried = time.Now()
			s.changeMembers(wanted, version)
		}
	}
}

// noteLines logs that the lines of this server are not the members of the ensemble, once for each
// version of the members.
func (s *Server) noteLines(current serverlist.Set, version proto.Zxid) {
	if s.loop.linesLogged == version {
		return
	}
	s.loop.linesLogged = version
	log := s.cfg.Logger.With("configured", members.OneLine(s.members), "members", members.OneLine(current))
	if s.live.Load().ReconfigEnabled {
		log.Warn("the server lines of the configuration are not the members of the ensemble, and have no effect, because reconfigEnabled is true: remove or correct the lines, or change the members",
			"command", members.ReconfigCommand(s.members, current))
		return
	}
	log.Info("the server lines of the configuration are not the members of the ensemble: the lines take effect when a majority of the voters has been restarted with them")
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
			"lines", members.OneLine(wanted), "reason", code.String())
		return
	}
	s.cfg.Logger.Info("a majority of the voters has new server lines: the members are changed", "lines", members.OneLine(wanted))
	body := proto.ReconfigRequest{NewMembers: &text, ConfigID: int64(version)}
	s.propose(datatree.Request{Op: proto.OpReconfig, Flags: flags, Body: body.Append(nil)}, func(res *datatree.Result) {
		if res.Err != proto.OK {
			s.cfg.Logger.Warn("the members of the ensemble were not changed", "reason", res.Err.String())
		}
	})
}
