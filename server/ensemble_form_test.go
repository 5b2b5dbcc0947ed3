package server_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// check creates a znode on one member and reads it on another after a sync.
func (e *ensemble) check(writer, reader int, path string) {
	e.t.Helper()
	w, r := e.connect(writer, time.Minute), e.connect(reader, time.Minute)
	if h, _ := w.call(1, proto.OpCreate, create{path: path}); h.Err != proto.OK {
		e.t.Fatalf("create %s on member %d: %v", path, writer, h.Err)
	}
	r.call(1, proto.OpSync, &proto.PathRequest{Path: &path})
	if h, _ := r.call(2, proto.OpExists, &proto.PathWatchRequest{Path: path}); h.Err != proto.OK {
		e.t.Fatalf("%s, made on member %d, is not on member %d: %v", path, writer, reader, h.Err)
	}
}

func TestEnsemble_FormsInAnyOrder(t *testing.T) {
	for name, order := range map[string][]int{"together": {1, 2, 3}, "backwards": {3, 2, 1}, "middle first": {2, 3, 1}} {
		for _, pause := range []time.Duration{0, 3 * time.Second} {
			t.Run(fmt.Sprint(name, pause), func(t *testing.T) {
				withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
					var serve []func() error
					for _, id := range order {
						serve = append(serve, e.m(id).begin(e.lines()))
						time.Sleep(pause)
					}
					for _, served := range serve {
						if err := served(); err != nil {
							t.Fatal(err)
						}
					}
					e.leader()
					e.check(1, 2, "/a")
					e.check(3, 1, "/b")
				})
			})
		}
	}
}

// The third member joins after the other two have formed the ensemble, and votes from then on.
func TestEnsemble_LateMember(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.start(1, 2)
		if at := time.Since(e.begun); at < 10*time.Second || at > 11*time.Second {
			t.Errorf("two of three members formed the ensemble after %v, initLimit is 10 s", at)
		}
		e.check(1, 2, "/before")
		time.Sleep(time.Minute)
		e.start(3)
		e.awaitVoters(1, 2, 3)
		e.check(1, 3, "/after")
		e.m(e.leader()).kill()
		e.leader()
		e.check(3, 3, "/without")
	})
}

// One of three members alone neither serves nor forms an ensemble.
func TestEnsemble_AloneWaits(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		served := e.m(1).begin(e.lines())
		if err := served(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a lone member of three: %v", err)
		}
	})
}

// Members that lost their state return as learners, fetch it, and vote again: then either of the
// others can fail.
func TestEnsemble_EmptiedMembersRejoin(t *testing.T) {
	for _, disk := range []bool{false, true} {
		t.Run(fmt.Sprintf("disk %v", disk), func(t *testing.T) {
			withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
				if disk {
					e.onDisk()
				}
				e.startAll()
				e.check(1, 2, "/first")
				for i := range 6 {
					id := 1 + i%3 // the leader is among them
					e.m(id).kill()
					if disk {
						e.m(id).dir = t.TempDir()
					}
					e.check(1+id%3, 1+(id+1)%3, fmt.Sprintf("/without-%d", i))
					e.start(id)
					e.awaitVoters(1, 2, 3)
					e.check(id, 1+id%3, fmt.Sprintf("/with-%d", i))
				}
				r := e.connect(1, time.Minute)
				path := "/"
				r.call(1, proto.OpSync, &proto.PathRequest{Path: &path})
				_, d := r.call(2, proto.OpGetAllChildrenNumber, &proto.PathRequest{Path: &path})
				if n := d.Int(); n != 1+12+3 {
					t.Errorf("%d znodes", n)
				}
			})
		})
	}
}

// If a majority has lost its state, nobody forms an ensemble without the acknowledged writes. The
// ensemble goes on when one of the directories is back.
func TestEnsemble_EmptiedMajorityWaits(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.onDisk()
		e.startAll()
		e.check(1, 2, "/precious")
		e.m(2).stop()
		e.m(3).stop()
		kept := e.m(2).dir
		time.Sleep(time.Second) // the first member must not be able to remove the others
		e.m(2).dir, e.m(3).dir = t.TempDir(), t.TempDir()
		e.patience = time.Minute
		second, third := e.m(2).begin(e.lines()), e.m(3).begin(e.lines())
		for _, served := range []func() error{second, third} {
			if err := served(); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("a member without state, among a majority of such: %v", err)
			}
		}
		e.m(2).stop()
		e.m(3).stop()
		e.m(2).dir = kept
		e.start(2, 3)
		e.awaitVoters(1, 2, 3)
		r := e.connect(3, time.Minute)
		if h, _ := r.call(1, proto.OpExists, &proto.PathWatchRequest{Path: "/precious"}); h.Err != proto.OK {
			t.Error(h)
		}
	})
}

// TestEnsemble_FoundedBesideTheData: two members with new disks found an ensemble, as in ZooKeeper,
// while the third, which has the data, is off. When it is there, all say what happened, and it does
// not serve.
func TestEnsemble_FoundedBesideTheData(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.onDisk()
		e.startAll()
		e.check(1, 2, "/precious")
		for _, m := range e.members {
			m.stop()
		}
		e.m(2).dir, e.m(3).dir = t.TempDir(), t.TempDir()
		e.start(2, 3)
		if e.said.Count("not_heard=[1]") == 0 {
			t.Error("nobody says that member 1 was not heard")
		}
		e.patience = time.Minute
		if err := e.m(1).begin(e.lines())(); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("the member with the data: %v", err)
		}
		if n := e.said.Count("if one was founded while the server with the data was away, stop it"); n == 0 {
			t.Errorf("nobody says what happened\n%s", e.said.String())
		}
	})
}

// TestEnsemble_EmptiedMajorityRemembers: the same while the member with the data is off. Two
// members whose files were removed, except for the one that names the members, do not found an
// ensemble beside it, and advise nobody to. When all are empty, they do.
func TestEnsemble_EmptiedMajorityRemembers(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.onDisk()
		e.startAll()
		e.check(1, 2, "/precious")
		for _, m := range e.members {
			m.stop()
			if err := errors.Join(os.RemoveAll(filepath.Join(m.dir, "wal")), os.Remove(filepath.Join(m.dir, "checkpoint.db"))); err != nil {
				t.Fatal(err)
			}
		}
		e.patience = time.Minute
		second, third := e.m(2).begin(e.lines()), e.m(3).begin(e.lines())
		for _, served := range []func() error{second, third} {
			if err := served(); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("an emptied member, while another was not heard: %v", err)
			}
		}
		if said := e.said.String(); strings.Contains(said, "gozkd init") || strings.Contains(said, "to form a new ensemble") ||
			e.said.Count("the data of this server are gone") != 2 || e.said.Count("which this one has lost: start all servers") == 0 {
			t.Error(said)
		}
		e.m(2).stop()
		e.m(3).stop()
		e.startAll()
		e.check(1, 2, "/new")
	})
}

// All members stop, one after the other or at once. After the restart everything is there,
// including sessions.
func TestEnsemble_RestartOfAll(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.onDisk()
		e.each(func(c *server.Config) { c.SnapCount = 7 })
		e.startAll()
		owner := e.connect(1, time.Minute)
		owner.call(1, proto.OpCreate, create{path: "/e", mode: proto.ModeEphemeral})
		for i := range 4 {
			for j := range 5 {
				e.check(1+j%3, 1+i%3, fmt.Sprintf("/n-%d-%d", i, j))
			}
			for _, m := range e.members {
				if i%2 == 0 {
					m.stop()
				} else {
					m.kill()
				}
			}
			time.Sleep(time.Hour)
			e.startAll()
		}
		back := e.dial(2)
		if resp := back.connect(60_000, owner.id, owner.pass); resp.SessionID != owner.id {
			t.Errorf("the session after an hour without servers: %+v", resp)
		}
		for i := range 4 {
			for j := range 5 {
				if h, _ := back.call(1, proto.OpExists, &proto.PathWatchRequest{Path: fmt.Sprintf("/n-%d-%d", i, j)}); h.Err != proto.OK {
					t.Errorf("/n-%d-%d: %v", i, j, h.Err)
				}
			}
		}
		if h, _ := back.call(1, proto.OpExists, &proto.PathWatchRequest{Path: "/e"}); h.Err != proto.OK {
			t.Errorf("the ephemeral: %v", h.Err)
		}
	})
}

// The same over sockets, with go-zookeeper.
func TestEnsemble_Loopback(t *testing.T) {
	t.Parallel()
	e := newEnsemble(t, 3, nil)
	e.each(func(c *server.Config) { c.Tick = 200 * time.Millisecond })
	e.startAll()
	c, _, err := zk.Connect([]string{e.m(1).clientAddress, e.m(2).clientAddress, e.m(3).clientAddress}, time.Minute, zk.WithLogger(quiet{}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	must[string](t)(c.Create("/n", nil, 0, zk.WorldACL(zk.PermAll)))
	for i := range 4 {
		leader := e.leader()
		e.m(leader).stop()
		for {
			_, err := c.Set("/n", []byte{byte(i)}, int32(i))
			if errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrNoServer) { // it was connected to the leader
				continue
			}
			if err != nil && !errors.Is(err, zk.ErrBadVersion) { // applied, and the answer was lost
				t.Fatal(err)
			}
			break
		}
		e.start(leader)
		e.awaitVoters(1, 2, 3)
	}
	if _, st, err := c.Get("/n"); err != nil || st.Version != 4 {
		t.Errorf("%+v, %v", st, err)
	}
}

// The first client of a new ensemble sees its members in /zookeeper/config, as with ZooKeeper. A
// client that reads them when it connects, as Curator does, would take an empty text for an
// ensemble without members.
func TestEnsemble_FirstClientSeesTheMembers(t *testing.T) {
	for id := 1; id <= 3; id++ {
		withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
			var served []func() error
			for _, m := range e.members {
				served = append(served, m.begin(e.lines()))
			}
			if err := served[id-1](); err != nil {
				t.Fatal(err)
			}
			if text := e.connect(id, time.Minute).config(); !strings.Contains(text, "server.3=") {
				t.Errorf("the first client of member %d sees the members %q", id, text)
			}
			for i, served := range served {
				if i == id-1 {
					continue // it answers once
				}
				if err := served(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestEnsemble_FormReadiness checks that no member of a new ensemble is ready before its state has
// the members, for which clients wait.
func TestEnsemble_FormReadiness(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.each(func(c *server.Config) { c.Tick = 100 * time.Millisecond })
		served := e.m(1).begin(e.lines())
		e.m(2).begin(e.lines())
		waited := false
		for range 60_000 {
			for _, m := range e.members[:2] {
				serves := m.s.Status().Serving
				switch ready := m.s.NotServing() == nil; {
				case (ready || serves) && !server.MembersKnown(m.s):
					t.Fatalf("member %d is ready without the members", m.id)
				case ready:
					if err := served(); err != nil {
						t.Fatal(err)
					}
					if !waited {
						t.Fatal("no member knew a leader before it knew the members")
					}
					return
				}
				waited = waited || server.Serving(m.s) && !server.MembersKnown(m.s)
			}
			time.Sleep(time.Millisecond)
		}
		t.Fatal("no member was ready within a minute")
	})
}
