package server_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/server"
)

// guest makes a member that the others' configuration does not name, with a line of that role.
func (e *ensemble) guest(id int, role string) *ensembleMember {
	e.t.Helper()
	m := e.newMember(id)
	m.line, m.adapt = strings.Replace(m.line, "participant", role, 1), e.m(1).adapt
	return m
}

// startWithSecret starts the members, which share a secret, with their data on disk.
func (e *ensemble) startWithSecret() {
	e.t.Helper()
	e.onDisk()
	e.each(func(c *server.Config) {
		c.SuperDigest, c.PeerSecret = superDigest(), []byte("known to the members only")
	})
	e.startAll()
	e.settle()
}

// With the secret of the ensemble, a server that the members do not know follows and serves at
// once, also after a restart with and without its data. Then reconfig adds it.
func TestEnsemble_Guest(t *testing.T) {
	withSuper(t, 3, func(t *testing.T, e *ensemble) {
		e.startWithSecret()
		guest := e.guest(4, "observer")
		guest.dir = t.TempDir()
		lines := append(e.lines(), guest.line)
		e.members = append(e.members, guest)
		e.startWith(lines, guest)
		e.check(4, 1, "/through-the-guest")
		e.check(2, 4, "/to-the-guest")
		if config := e.connect(4, time.Minute).config(); strings.Contains(config, "server.4") {
			t.Errorf("the guest is a member: %s", config)
		}
		if mode := e.monitor(4)["zk_server_state"]; mode != "observer" {
			t.Errorf("the guest is a %s", mode)
		}

		guest.stop()
		e.awaits("the guest is removed", func() bool { return len(server.StatusOf(e.m(e.leader()).s).Learners) == 0 })
		e.startWith(lines, guest)
		e.check(4, 1, "/with-its-data")

		first := e.leader()
		e.m(first).kill()
		e.check(4, e.leader(), "/with-another-leader")
		e.start(first)
		guest.stop()
		guest.dir = t.TempDir()
		e.startWith(lines, guest)
		e.check(4, 1, "/without-its-data")

		e.admin(1).mustReconfig(change{joining: strings.Replace(guest.line, "observer", "participant", 1)})
		e.awaitVoters(1, 2, 3, 4)
		e.check(4, 1, "/as-a-member")
	})
}

// Without the secret of the ensemble, a server that the members do not know waits, until reconfig
// adds it. Its own line may call it a participant.
func TestEnsemble_GuestWithoutTheSecret(t *testing.T) {
	withSuper(t, 3, func(t *testing.T, e *ensemble) {
		e.startAll()
		e.settle()
		guest := e.guest(4, "participant")
		lines := append(e.lines(), guest.line)
		e.members = append(e.members, guest)
		served := guest.begin(lines)
		time.Sleep(10 * time.Second)
		if st := server.StatusOf(e.m(e.leader()).s); guest.serving.Load() || len(st.Learners) > 0 {
			t.Errorf("it serves, or is one of the learners %v", st.Learners)
		}
		e.admin(1).mustReconfig(change{joining: guest.line})
		if err := served(); err != nil {
			t.Error(err)
		}
	})
}
