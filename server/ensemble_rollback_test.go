package server_test

import (
	"os"
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// copyDir returns a copy of the member's data directory, as a backup program makes one.
func (m *ensembleMember) copyDir() (dir string) {
	m.e.t.Helper()
	dir = m.e.t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(m.dir)); err != nil {
		m.e.t.Fatal(err)
	}
	return dir
}

// A follower whose data directory is restored from a copy is found out by what the others know of
// it, is let in again, and serves its clients. The clients of the other members notice nothing.
func TestEnsemble_RestoredFromACopy(t *testing.T) {
	for name, tc := range map[string]struct {
		running bool // the copy is made while the server runs, and the server is not started between copy and restore
		leader  bool // the leader is restarted before the restored server starts
	}{
		"from before the last start":                          {},
		"from before the last start, the leader is restarted": {leader: true},
		"of the running server":                               {running: true},
	} {
		t.Run(name, func(t *testing.T) {
			withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
				e.onDisk()
				e.each(func(c *server.Config) { c.SegmentBytes = 1 << 20 })
				e.startAll()
				id := e.followers()[0]
				m, other := e.m(id), e.connect(e.leader(), time.Minute)
				e.check(id, e.leader(), "/before")
				if !tc.running {
					m.stop()
				}
				old := m.copyDir()
				if !tc.running {
					e.start(id)
				}
				e.check(id, e.leader(), "/lost") // acknowledged by the member, and not in the copy
				for i := range 20 {
					e.check(e.leader(), id, "/lost/"+string(rune('a'+i)))
				}
				m.stop()
				m.dir = old
				if tc.leader {
					leader := e.leader()
					e.m(leader).stop()
					e.start(leader)
					other = e.connect(e.leader(), time.Minute)
				}
				e.start(id)
				e.awaitVoters(1, 2, 3)
				e.check(id, e.but(id)[0], "/after")
				e.check(e.but(id)[0], id, "/after-2")
				if h, _ := e.connect(id, time.Minute).call(1, proto.OpExists, &proto.PathWatchRequest{Path: "/lost/a"}); h.Err != proto.OK {
					t.Errorf("/lost/a: %v", h.Err)
				}
				other.ping()
				for _, line := range []string{
					m.host() + ".consensus: the data directory is older than what this server has acknowledged",
					m.host() + ".consensus: let in again by the ensemble",
					"a member's data directory is older than what the member has acknowledged",
				} {
					if e.said.Count(line) == 0 {
						t.Errorf("no log line %q", line)
					}
				}
				m.stop() // the next start is an ordinary one
				e.start(id)
				e.check(id, e.but(id)[1], "/again")
				if n := e.said.Count("older than what this server has acknowledged"); n != 1 {
					t.Errorf("found outdated %d times", n)
				}
			})
		})
	}
}
