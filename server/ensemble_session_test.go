package server_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// closedIn waits until the server closes the connection and returns how long that took. Events and
// replies are skipped.
func (r *raw) closedIn(limit time.Duration) time.Duration {
	r.t.Helper()
	start := time.Now()
	for {
		if r.nc.SetReadDeadline(start.Add(limit)) != nil {
			return time.Since(start)
		}
		var b [4096]byte
		if _, err := r.nc.Read(b[:]); err != nil {
			if time.Since(start) >= limit {
				r.t.Fatalf("the connection is open after %v", limit)
			}
			return time.Since(start)
		}
	}
}

// ping makes sure that the connection and its session are alive.
func (r *raw) ping() {
	r.t.Helper()
	if h, _ := r.call(proto.XidPing, proto.OpPing, nil); h.Err != proto.OK {
		r.t.Fatal(h.Err)
	}
}

func (r *raw) exists(path string) bool {
	r.t.Helper()
	h, _ := r.call(9, proto.OpExists, &proto.PathWatchRequest{Path: path})
	return h.Err == proto.OK
}

// A server that is cut off closes its clients' connections after syncLimit ticks, and refuses new
// ones. Clients of the others notice nothing.
func TestEnsemble_MinorityCloses(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.startAll()
		for _, victim := range []int{e.leader(), e.followers()[0]} {
			pipes := e.pipes(e.but(victim)...)
			c := e.connect(victim, 30*time.Second)
			c.call(1, proto.OpCreate, create{path: fmt.Sprintf("/e%d", victim), mode: proto.ModeEphemeral})
			e.m(victim).isolate(true)
			// An election timeout, or what is left of it, then 5 ticks, then until the next half
			// tick.
			if took := c.closedIn(time.Minute); took < 5*time.Second || took > 6200*time.Millisecond {
				t.Errorf("the server kept the connection for %v without a leader", took)
			}
			late := e.dial(victim)
			late.send((&proto.ConnectRequest{TimeoutMs: 30_000, SessionID: c.id, Passwd: c.pass}).Append(nil))
			if late.recv() != nil {
				t.Error("a server without a leader accepted a client")
			}
			other := e.but(victim)[0]
			c = c.move(e, other)
			if !c.exists(fmt.Sprintf("/e%d", victim)) {
				t.Error("the ephemeral is gone")
			}
			e.m(victim).isolate(false)
			time.Sleep(7 * time.Second)
			e.leader()
			c.move(e, victim).ping()
			ends(t, pipes, time.Second)
		}
	})
}

// but returns the ids of all members except one.
func (e *ensemble) but(id int) (ids []int) {
	for _, m := range e.members {
		if m.id != id {
			ids = append(ids, m.id)
		}
	}
	return ids
}

// ids returns the ids of the members in ascending order.
func (e *ensemble) ids() (ids []uint64) {
	for _, m := range e.members {
		ids = append(ids, uint64(m.id))
	}
	slices.Sort(ids)
	return ids
}

// move re-attaches the session on another member, or on the same member over a new connection.
func (r *raw) move(e *ensemble, id int) *raw {
	e.t.Helper()
	to := e.dial(id)
	if resp := to.connect(30_000, r.id, r.pass); resp.SessionID != r.id || !bytes.Equal(resp.Passwd, r.pass) {
		e.t.Fatalf("member %d did not accept the session: %+v", id, resp)
	}
	return to
}

// If quorum is lost for longer than any session's timeout, no session is lost: when quorum is back,
// all get their full timeout.
func TestEnsemble_QuorumLost(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.startAll()
		gone, back := e.connect(1, 10*time.Second), e.connect(2, 10*time.Second)
		gone.call(1, proto.OpCreate, create{path: "/gone", mode: proto.ModeEphemeral})
		back.call(1, proto.OpCreate, create{path: "/back", mode: proto.ModeEphemeral})
		for _, m := range e.members {
			m.isolate(true)
		}
		time.Sleep(time.Minute)
		for _, c := range []*raw{gone, back} {
			if c.recv() != nil {
				t.Fatal("a connection is open without a quorum")
			}
		}
		for _, m := range e.members {
			m.isolate(false)
		}
		e.leader()
		elected := time.Now()
		time.Sleep(9500 * time.Millisecond)
		c := back.move(e, 3)
		if !c.exists("/gone") || !c.exists("/back") {
			t.Errorf("an ephemeral is gone %v after the election", time.Since(elected))
		}
		for c.exists("/gone") {
			time.Sleep(100 * time.Millisecond)
		}
		if lived := time.Since(elected); lived > 12*time.Second {
			t.Errorf("a session with a timeout of 10 s, not heard from, lived for %v", lived)
		}
		if !c.exists("/back") {
			t.Error("the other ephemeral is gone too")
		}
	})
}

// Sessions of followers' clients are kept by the followers' reports, and expire by the leader's
// clock: not before their timeout is over, and two ticks later at the latest. Their ephemerals are
// deleted for everybody in one transaction, once.
func TestEnsemble_Expiry(t *testing.T) {
	withNumbers(t, 3, func(t *testing.T, e *ensemble) {
		e.startAll()
		for _, id := range []int{e.leader(), e.followers()[0]} {
			owner := e.connect(id, 10*time.Second)
			paths := []string{fmt.Sprintf("/e1-%d", id), fmt.Sprintf("/e2-%d", id)}
			for i, path := range paths {
				owner.call(int32(i), proto.OpCreate, create{path: path, mode: proto.ModeEphemeral})
			}
			var watchers []*raw
			for _, m := range e.members {
				w := e.connect(m.id, time.Hour)
				for i, path := range paths {
					w.call(int32(i), proto.OpSync, &proto.PathRequest{Path: &path})
					if h, _ := w.call(int32(i), proto.OpExists, &proto.PathWatchRequest{Path: path, Watch: true}); h.Err != proto.OK {
						t.Fatal(h.Err)
					}
				}
				watchers = append(watchers, w)
			}
			for range 6 {
				time.Sleep(9 * time.Second)
				owner.ping()
			}
			if lived := owner.closedIn(time.Minute); lived < 10*time.Second || lived > 12*time.Second {
				t.Errorf("member %d: a session with a timeout of 10 s lived %v after it was heard", id, lived)
			}
			var zxid proto.Zxid
			for _, w := range watchers {
				for range paths {
					h, ev := w.event()
					if zxid == 0 {
						zxid = h.Zxid
					}
					if ev.Type != proto.EventDeleted || h.Zxid != zxid {
						t.Errorf("event %+v with zxid %v, the first had %v", ev, h.Zxid, zxid)
					}
				}
				w.ping() // and no event comes before its reply
			}
		}
	})
}

// A new leader does not know when the previous one heard from sessions: all get a full timeout.
func TestEnsemble_NewLeaderGivesFullTimeout(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.startAll()
		leader := e.leader()
		back, gone := e.connect(leader, 10*time.Second), e.connect(leader, 10*time.Second)
		gone.call(1, proto.OpCreate, create{path: "/gone", mode: proto.ModeEphemeral})
		heard := time.Now()
		time.Sleep(9 * time.Second)
		e.m(leader).kill()
		e.leader()
		elected := time.Now()
		time.Sleep(9500 * time.Millisecond)
		c := back.move(e, e.but(leader)[1])
		for c.exists("/gone") {
			time.Sleep(100 * time.Millisecond)
		}
		if lived := time.Since(elected); lived < 10*time.Second || lived > 12*time.Second {
			t.Errorf("a session of 10 s was expired %v after the election and %v after it was heard", lived, time.Since(heard))
		}
	})
}

// A session moves to another server while a write of it is stuck on the first: the old connection
// is closed, and the write has no effect, however late it arrives.
func TestEnsemble_SessionMoves(t *testing.T) {
	withNumbers(t, 3, func(t *testing.T, e *ensemble) {
		e.startAll()
		stuck, to := e.followers()[0], e.followers()[1]
		old := e.connect(stuck, 30*time.Second)
		old.call(1, proto.OpCreate, create{path: "/e", mode: proto.ModeEphemeral})
		e.m(stuck).isolate(true)
		old.request(2, proto.OpCreate, create{path: "/late"})
		time.Sleep(time.Second)
		c := old.move(e, to)
		if h, _ := c.call(1, proto.OpCreate, create{path: "/now"}); h.Err != proto.OK {
			t.Fatal(h.Err)
		}
		e.m(stuck).isolate(false)
		if b := old.recv(); b != nil {
			t.Errorf("the old connection got %x", b)
		}
		time.Sleep(10 * time.Second)
		c.ping()
		if c.exists("/late") {
			t.Error("a write of the old connection took effect after the session had moved")
		}
		if !c.exists("/e") || !c.exists("/now") {
			t.Error("the session lost an ephemeral or a write")
		}
		again := c.move(e, stuck)
		if c.recv() != nil {
			t.Error("the second connection is open after the third came")
		}
		if !again.exists("/e") || !again.exists("/now") || again.exists("/late") {
			t.Error("the first member has another state")
		}
	})
}

// A client that has seen a later state than the server waits a moment for it to catch up, and
// otherwise is refused.
func TestEnsemble_ClientAhead(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.startAll()
		behind, at := e.followers()[0], e.leader()
		for _, wait := range []time.Duration{400 * time.Millisecond, 3 * time.Second} {
			c := e.connect(at, 30*time.Second)
			e.m(behind).isolate(true)
			h, _ := c.call(1, proto.OpCreate, create{path: fmt.Sprintf("/w%d", wait)})
			next := e.dial(behind)
			next.send((&proto.ConnectRequest{TimeoutMs: 30_000, SessionID: c.id, Passwd: c.pass, LastZxidSeen: h.Zxid}).Append(nil))
			time.Sleep(wait)
			e.m(behind).isolate(false)
			switch answered := next.recv() != nil; {
			case wait < time.Second && !answered:
				t.Error("the server caught up within a tick, and yet refused the client")
			case wait > time.Second && answered:
				t.Error("the server accepted a client that had seen a later state")
			case answered && !next.exists(fmt.Sprintf("/w%d", wait)):
				t.Error("the client does not see its own write")
			}
			time.Sleep(time.Second)
		}
	})
}

// Session ids are unique in the ensemble, and closing a session on any server ends it everywhere.
func TestEnsemble_CloseSession(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.each(func(c *server.Config) { c.Tick = 2 * time.Second })
		e.startAll()
		seen := map[proto.SessionID]bool{}
		for i := range 9 {
			c := e.connect(1+i%3, 30*time.Second)
			if seen[c.id] || c.id>>56 != proto.SessionID(1+i%3) {
				t.Errorf("session %v made by member %d", c.id, 1+i%3)
			}
			seen[c.id] = true
			c.call(1, proto.OpCreate, create{path: "/e", mode: proto.ModeEphemeral})
			if h, _ := c.call(2, proto.OpCloseSession, nil); h.Err != proto.OK {
				t.Error(h.Err)
			}
			if c.recv() != nil {
				t.Error("open after closeSession")
			}
			for id := 1; id <= 3; id++ {
				again := e.dial(id)
				if resp := again.connect(30_000, c.id, c.pass); resp.SessionID != 0 {
					t.Errorf("a closed session was re-attached: %+v", resp)
				}
			}
		}
		synctest.Wait()
	})
}

// A leader whose process was paused for longer than a session's timeout wakes up with a clock by
// which every session is over, and may try to expire them before it hears of the next leader. No
// session expires because of that.
func TestEnsemble_PausedLeaderExpiresNobody(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.startAll()
		leader := e.leader()
		var owners []*raw
		for _, id := range e.followers() {
			c := e.connect(id, 10*time.Second)
			c.call(1, proto.OpCreate, create{path: fmt.Sprintf("/e%d", id), mode: proto.ModeEphemeral})
			owners = append(owners, c)
		}
		pingFor := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(4 * time.Second) {
				for _, c := range owners {
					c.ping()
				}
			}
		}
		e.m(leader).pause(true)
		pingFor(30 * time.Second)
		e.m(leader).pause(false)
		pingFor(30 * time.Second)
		for _, id := range e.but(leader) {
			if !owners[0].exists(fmt.Sprintf("/e%d", id)) {
				t.Errorf("the ephemeral of member %d's client is gone", id)
			}
		}
	})
}

// After a restart of all servers each session has its full timeout again, and ends soon after it.
func TestSession_TimeoutAfterARestart(t *testing.T) {
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			withEnsemble(t, n, func(t *testing.T, e *ensemble) {
				e.onDisk()
				e.startAll()
				timeouts := []time.Duration{5 * time.Second, 20 * time.Second}
				for i, timeout := range timeouts {
					e.connect(1+i%n, timeout).call(1, proto.OpCreate, create{path: fmt.Sprint("/e", i), mode: proto.ModeEphemeral})
				}
				for _, m := range e.members {
					m.stop()
				}
				time.Sleep(time.Hour)
				restarted := time.Now()
				e.startAll()
				watcher := e.connect(1, time.Hour)
				for i := range timeouts {
					if h, _ := watcher.call(int32(i), proto.OpExists, &proto.PathWatchRequest{Path: fmt.Sprint("/e", i), Watch: true}); h.Err != proto.OK {
						t.Fatalf("/e%d after the restart: %v", i, h.Err)
					}
				}
				for i, timeout := range timeouts {
					_, event := watcher.event()
					if lived := time.Since(restarted); event.Path != fmt.Sprint("/e", i) || lived <= timeout || lived > timeout+5*time.Second {
						t.Errorf("%s ends %v after the restart, its session's timeout is %v", event.Path, lived, timeout)
					}
				}
			})
		})
	}
}
