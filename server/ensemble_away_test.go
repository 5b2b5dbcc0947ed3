package server_test

import (
	"fmt"
	"strings"
	"testing"
)

// A server that comes back with an old configuration follows a leader that was added, or has moved,
// while the server was away: without a secret, so it refuses the leader as long as it does not know
// its address. So does a server whose data is lost. After a restart, both find the leader by what
// they know themselves.
func TestReconfig_WhileAway(t *testing.T) {
	for what, change := range map[string]func(e *ensemble) (leader int){
		"added": func(e *ensemble) int {
			added := e.guest(4, "participant")
			e.members = append(e.members, added)
			served := added.begin(e.lines())
			e.admin(1).mustReconfig(change{joining: added.line})
			if err := served(); err != nil {
				e.t.Fatal(err)
			}
			return 4
		},
		"moved": func(e *ensemble) int {
			e.moveFirst()
			return 1
		},
	} {
		for _, emptied := range []bool{false, true} {
			t.Run(what, func(t *testing.T) {
				withSuper(t, 3, func(t *testing.T, e *ensemble) {
					e.onDisk()
					e.startAll()
					e.settle()
					away, lines := e.m(3), e.lines()
					away.stop()
					if emptied {
						away.dir = t.TempDir()
					}
					leader := change(e)
					if e.leader() != leader {
						e.handOver(leader)
					}
					e.startWith(lines, away)
					e.check(leader, 3, "/follows")
					e.check(3, leader, "/is-heard")
					away.stop()
					e.startWith(lines, away)
					e.check(leader, 3, "/again")
					if got := e.leader(); got != leader {
						t.Errorf("member %d leads: nothing was tried", got)
					}
				})
			})
		}
	}
}

// moveFirst moves the peer port of member 1, which then listens at the new one only.
func (e *ensemble) moveFirst() {
	e.t.Helper()
	moved := e.m(1)
	e.admin(2).mustReconfig(change{joining: strings.Replace(moved.line, "2888", "2889", 1)})
	moved.stop()
	moved.peerAddress = "m1:2889"
	e.start(1)
}

// A leader whose own lines have a former address of a member reaches that member where the state
// has it, and lets it in without a secret, too.
func TestReconfig_LeaderWithOldLines(t *testing.T) {
	for _, secret := range []bool{false, true} {
		t.Run(fmt.Sprint("secret=", secret), func(t *testing.T) { oldLines(t, secret) })
	}
}

func oldLines(t *testing.T, secret bool) {
	withSuper(t, 3, func(t *testing.T, e *ensemble) {
		if e.onDisk(); secret {
			e.startWithSecret()
		} else {
			e.startAll()
			e.settle()
		}
		lines, old := e.lines(), e.m(3)
		e.moveFirst()
		old.stop()
		old.dir = t.TempDir()
		e.startWith(lines, old)
		e.awaitVoters(1, 2, 3)
		e.m(1).stop()
		old.stop()
		e.startWith(lines, old)
		if e.leader() != 3 {
			e.handOver(3)
		}
		e.start(1)
		e.check(1, 3, "/back")
		if got := e.leader(); got != 3 {
			t.Errorf("member %d leads: nothing was tried", got)
		}
	})
}
