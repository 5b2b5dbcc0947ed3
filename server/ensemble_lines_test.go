package server_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// fixedMembers makes clients unable to change the members.
func (e *ensemble) fixedMembers() {
	e.onDisk()
	e.each(func(c *server.Config) { c.ReconfigEnabled = false })
}

// awaitMembers waits until a member serves these lines as the members of the ensemble.
func (e *ensemble) awaitMembers(id int, lines ...string) {
	e.t.Helper()
	want := strings.Join(lines, "\n") + "\n"
	r := e.connect(id, time.Hour)
	for range 600 {
		if got := r.config(); strings.HasPrefix(got, want+"version=") {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	e.t.Fatalf("the members are\n%s\nwant\n%s", r.config(), want)
}

// restartWith restarts members one after the other, with new lines.
func (e *ensemble) restartWith(lines []string, ids ...int) {
	e.t.Helper()
	for _, id := range ids {
		e.m(id).stop()
		e.startWith(lines, e.m(id))
		e.leader()
	}
}

// Every zoo.cfg gets a fourth and a fifth server, one server after the other is restarted, and the
// new ones are started; then the same the other way round.
func TestServerLines_GrowAndShrink(t *testing.T) {
	withEnsemble(t, 5, func(t *testing.T, e *ensemble) {
		e.fixedMembers()
		lines := e.lines()
		e.startWith(lines[:3], e.members[:3]...)
		e.settle()
		e.connect(1, time.Hour).call(1, proto.OpCreate, create{path: "/kept"})
		fourth, fifth := e.m(4).begin(lines), e.m(5).begin(lines)
		e.restartWith(lines, 1)
		time.Sleep(time.Minute)
		e.awaitMembers(1, lines[:3]...) // one of three is no majority
		e.restartWith(lines, 2)
		e.restartWith(lines, 3)
		for _, served := range []func() error{fourth, fifth} {
			if err := served(); err != nil {
				t.Fatal(err)
			}
		}
		e.awaitMembers(5, lines...)
		e.awaitVoters(1, 2, 3, 4, 5)
		r := e.connect(4, time.Hour)
		r.sync()
		if !r.exists("/kept") {
			t.Error("the data is gone")
		}

		e.m(1).stop()
		e.m(2).stop()
		e.restartWith(lines[2:], 3, 4, 5)
		e.awaitMembers(3, lines[2:]...)
		e.awaitVoters(3, 4, 5)
		e.check(3, 5, "/after")
	})
}

// All servers are stopped, and started with new lines: another role, another client port.
func TestServerLines_AllAtOnce(t *testing.T) {
	withEnsemble(t, 4, func(t *testing.T, e *ensemble) {
		e.fixedMembers()
		lines := e.lines()
		e.startAll()
		e.settle()
		for _, m := range e.members {
			m.stop()
		}
		lines[3] = strings.Replace(lines[3], "participant", "observer", 1)
		e.m(2).clientAddress = "m2:2200"
		lines[1] = strings.Replace(lines[1], ":2181", ":2200", 1)
		e.startWith(lines, e.members...)
		e.awaitMembers(1, lines...)
		e.awaitVoters(1, 2, 3)
	})
}

// With reconfigEnabled the members of the state count, and a server whose lines differ says how to
// change them.
func TestServerLines_ReconfigEnabled(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.onDisk()
		lines := e.lines()
		e.startAll()
		e.settle()
		other := append(lines[:2:2], strings.Replace(lines[2], "participant", "observer", 1))
		e.restartWith(other, 1, 2, 3)
		time.Sleep(time.Minute)
		e.awaitMembers(1, lines...)
		if said := e.said.String(); !strings.Contains(said, "reconfig -add 'server.3=m3:2888:3888:observer;m3:2181'") {
			t.Error("no server says how to change the members")
		}
	})
}
