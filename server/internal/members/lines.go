package members

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/serverlist"
)

// Lines holds the server lines that other members have reported to the leader. Its methods may be
// called from any goroutine.
//
// The ensemble follows the server lines of its members' configurations if clients may not change
// the members: each server whose lines differ from the members in the state sends its lines to the
// leader, and the leader changes the members when a majority of the voters, including itself, has
// the same lines. So editing every zoo.cfg and restarting one server after the other has the effect
// that it has on ZooKeeper.
type Lines struct {
	mu     sync.Mutex
	others map[uint64]report // by member
}

type report struct {
	set     serverlist.Set
	arrived time.Time // by the runtime's clock
}

// Take records the lines in a message of another member.
func (l *Lines) Take(from uint64, text string) error {
	set, _, err := serverlist.ParseConfig(text)
	if err != nil {
		return fmt.Errorf("server lines: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.others == nil {
		l.others = make(map[uint64]report)
	}
	l.others[from] = report{set, time.Now()}
	return nil
}

// Recent returns the lines of the voters that have reported them within patience.
func (l *Lines) Recent(voters []uint64, patience time.Duration) map[uint64]serverlist.Set {
	l.mu.Lock()
	defer l.mu.Unlock()
	recent := make(map[uint64]serverlist.Set)
	for _, id := range voters {
		if r := l.others[id]; time.Since(r.arrived) <= patience {
			recent[id] = r.set
		}
	}
	return recent
}

// Text returns the server lines of set without their version.
func Text(set serverlist.Set) string {
	text, _, _ := strings.Cut(set.Text(0), "\nversion=")
	return text
}

// OneLine is Text in one line.
func OneLine(set serverlist.Set) string { return strings.ReplaceAll(Text(set), "\n", " ") }

// ReconfigCommand returns the command of the shell that makes the members those of the lines.
func ReconfigCommand(wanted, current serverlist.Set) string {
	var add, remove []string
	for _, m := range wanted {
		if before, _ := current.Get(m.ID); !sameServer(before, m) {
			add = append(add, m.String())
		}
	}
	for _, m := range current {
		if _, is := wanted.Get(m.ID); !is {
			remove = append(remove, fmt.Sprint(memberid.Number(m.ID)))
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

func sameServer(a, b serverlist.Member) bool {
	a.ClientHost, a.ClientPort, b.ClientHost, b.ClientPort = "", 0, "", 0
	return a == b
}

// Differ reports whether the members should become those of the lines of server own. The
// address in a server's own line may be valid on its own machine only.
func Differ(lines, current serverlist.Set, own uint64) bool {
	return !alike(lines, current, func(m, before serverlist.Member) bool {
		if m.ID != own {
			return sameServer(m, before)
		}
		return m.ClientPort == 0 || m.ClientPort == before.ClientPort && m.ClientHost == before.ClientHost
	})
}

// alike reports whether two sets have the same servers with the same roles, each of which is same.
func alike(a, b serverlist.Set, same func(a, b serverlist.Member) bool) bool {
	return slices.EqualFunc(a, b, func(m, other serverlist.Member) bool {
		return m.ID == other.ID && m.Role == other.Role && same(m, other)
	})
}

// Agreed returns the members that a majority of the current voters has in its lines: server
// own, the leader, which has lines, and those of reports that agree with it. ok is false if there
// is no such majority, or the members are those already.
//
// Each server's line is taken from the lines of other servers, because the address in a server's
// own line may be valid on its own machine only; its client address is taken from its own lines,
// because flags can change it, or stays.
func Agreed(lines, current serverlist.Set, own uint64, reports map[uint64]serverlist.Set) (wanted serverlist.Set, ok bool) {
	agreeing := 1
	mine, _ := lines.Get(own)
	fromOthers := false // mine is another server's line for server own
	for _, id := range current.Voters() {
		theirs := reports[id]
		if !agree(lines, theirs, own, id) {
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
		before, _ := current.Get(m.ID)
		at := m
		theirs, reported := reports[m.ID]
		switch {
		case m.ID == own:
			at, _ = lines.Get(own)
		case reported:
			at, _ = theirs.Get(m.ID)
		case sameServer(before, m):
			at = before
		}
		if at.ClientPort == 0 { // its own configuration has the client port in another place
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
	return alike(linesOfA, linesOfB, func(m, other serverlist.Member) bool {
		return m.ID == a || m.ID == b || sameServer(m, other)
	})
}
