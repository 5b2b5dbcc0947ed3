package server_test

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/internal/memnet"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

const localBit = proto.SessionID(1) << 55

// withLocal runs f with three members that open local sessions.
func withLocal(t *testing.T, upgrades bool, f func(t *testing.T, e *ensemble)) {
	t.Helper()
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.each(func(c *server.Config) { c.LocalSessions, c.LocalSessionUpgrades = true, upgrades })
		e.startAll()
		e.awaitVoters(1, 2, 3)
		e.awaits("level 2, and members in the state", func() bool {
			return !slices.ContainsFunc(e.members, func(m *ensembleMember) bool {
				return server.StatusOf(m.s).Level < 2 || !strings.HasSuffix(e.word(m.id, "conf"), "\nversion=100000002")
			})
		})
		f(t, e)
	})
}

// sameZxid waits until all members have applied the same.
func (e *ensemble) sameZxid() {
	e.t.Helper()
	e.awaits("one zxid", func() bool {
		zxid := e.members[0].s.Status().Zxid
		return !slices.ContainsFunc(e.members, func(m *ensembleMember) bool { return m.s.Status().Zxid != zxid })
	})
}

// refused reports whether a member answers that a session is over.
func (e *ensemble) refused(id int, session proto.SessionID, passwd []byte) bool {
	e.t.Helper()
	resp := e.dial(id).connect(10_000, session, passwd)
	return resp.SessionID == 0 && resp.TimeoutMs == 0
}

// closedAtOnce reports whether a member closes the connection of a connect request without an
// answer.
func (e *ensemble) closedAtOnce(id int, r *proto.ConnectRequest) bool {
	e.t.Helper()
	c := e.dial(id)
	c.send(r.Append(nil))
	return c.recv() == nil
}

func (r *raw) code(op proto.OpCode, body record) proto.ErrCode {
	r.t.Helper()
	h, _ := r.call(7, op, body)
	return h.Err
}

// A local session costs no write to the log, and only its server knows it.
func TestLocalSession(t *testing.T) {
	withLocal(t, true, func(t *testing.T, e *ensemble) {
		for _, id := range []int{e.leader(), e.followers()[0]} {
			applied := server.StatusOf(e.m(id).s).Applied
			zxid := e.m(id).s.Status().Zxid
			c := e.connect(id, 10*time.Second)
			if c.id&localBit == 0 || uint64(c.id)>>56 != uint64(id) {
				t.Fatalf("the id %v is not that of a local session of member %d", c.id, id)
			}
			if n := e.monitor(id)["zk_local_sessions"]; n != "1" {
				t.Errorf("zk_local_sessions is %s", n)
			}
			if got := e.word(id, "dump"); !regexp.MustCompile(`\ASessionTracker dump:\nLocal Session Sets \(1\)/\(1\):\n1 expire at .*\n\t` + c.id.String() + `\nGlobal Session`).MatchString(got) {
				t.Errorf("dump:\n%s", got)
			}
			if !strings.Contains(e.word(id, "cons"), "sid="+c.id.String()+",lop=SESS") {
				t.Errorf("cons:\n%s", e.word(id, "cons"))
			}

			for range 3 { // pings keep it alive
				time.Sleep(9 * time.Second)
				c.ping()
			}
			if !e.refused(id, c.id, bytes.Repeat([]byte{1}, 16)) {
				t.Error("a wrong password is accepted")
			}
			c.ping()
			if !e.refused(e.but(id)[0], c.id, c.pass) {
				t.Error("another member resumes a local session")
			}
			old := c
			c = c.move(e, id)
			if old.recv() != nil {
				t.Error("the previous connection is open")
			}
			if h, _ := c.call(1, proto.OpCloseSession, nil); h.Err != proto.OK || c.recv() != nil {
				t.Errorf("close: %v", h.Err)
			}
			if !e.refused(id, c.id, c.pass) {
				t.Error("a closed session is resumed")
			}
			c = e.connect(id, 10*time.Second)
			if took := c.closedIn(time.Minute); took <= 10*time.Second || took > 11500*time.Millisecond {
				t.Errorf("a silent session of 10 s lived %v", took)
			}
			if !e.refused(id, c.id, c.pass) {
				t.Error("an expired session is resumed")
			}
			if now := server.StatusOf(e.m(id).s).Applied; now != applied || e.m(id).s.Status().Zxid != zxid {
				t.Errorf("%d entries were written", now-applied)
			}
			if n := e.monitor(id)["zk_local_sessions"]; n != "0" {
				t.Errorf("zk_local_sessions is %s in the end", n)
			}
		}
	})
}

// When the clock jumps, a request that is being handled says nothing of the time after the jump,
// also in a local session (see TestMoveClock_DuringARequest).
func TestLocalSession_ClockJumpsDuringARequest(t *testing.T) {
	var clock jumping
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.each(func(c *server.Config) {
			c.LocalSessions, c.Now, c.OutstandingLimit, c.Words = true, clock.now, 50, []string{"*"}
		})
		e.startAll()
		e.awaitVoters(1, 2, 3)
		id := e.followers()[0]
		c := e.connect(id, 10*time.Second)
		if c.id&localBit == 0 {
			t.Fatalf("session %v is not local", c.id)
		}
		e.m(id).isolate(true)
		c.writeAll(bytes.Repeat(frame(1, proto.OpDelete, &proto.PathVersionRequest{Path: "/x"}), 100)) // waits for the limit of writes
		time.Sleep(10 * time.Millisecond)                                                              // they arrive
		synctest.Wait()
		e.m(id).s.MoveClock(func() []int64 { clock.by.Add(int64(time.Minute)); return []int64{} })
		time.Sleep(ticks.Tick) // sessions are judged
		if n := e.monitor(id)["zk_local_sessions"]; n != "0" {
			t.Errorf("after the timeout there are %s local sessions", n)
		}
		e.m(id).isolate(false)
	})
}

// A server alone has no local sessions, as a standalone ZooKeeper has none.
func TestLocalSession_NotStandalone(t *testing.T) {
	cfg := ticks
	cfg.LocalSessions = true
	bubble(t, cfg, func(t *testing.T, dial func() *raw) {
		if resp := dial().connect(10_000, 0, nil); resp.SessionID&localBit != 0 {
			t.Errorf("%v is a local session", resp.SessionID)
		}
	})
}

// multi is a record for request.
type multi []proto.MultiOp

func (m multi) Append(b []byte) []byte { return (&proto.MultiRequest{Ops: m}).Append(b) }

func multiCreate(op proto.OpCode, path string, mode proto.CreateMode) proto.MultiOp {
	return proto.MultiOp{Op: op, Path: path, ACL: proto.OpenACL(), Mode: mode}
}

// Without upgrades, a local session does everything except create ephemeral znodes. The codes are
// those of ZooKeeper 3.9.5.
func TestLocalSession_WithoutUpgrades(t *testing.T) {
	withLocal(t, false, func(t *testing.T, e *ensemble) {
		c := e.connect(e.followers()[0], 10*time.Second)
		for i, step := range []struct {
			op   proto.OpCode
			body record
			want proto.ErrCode
		}{
			{proto.OpCreate, create{path: "/p"}, proto.OK},
			{proto.OpCreate, create{path: "/e", mode: proto.ModeEphemeral}, proto.ErrEphemeralOnLocalSession},
			{proto.OpCreate2, create{path: "/e", mode: proto.ModeEphemeralSequential, op: proto.OpCreate2}, proto.ErrEphemeralOnLocalSession},
			{proto.OpCreateContainer, create{path: "/c", mode: proto.ModeContainer, op: proto.OpCreateContainer}, proto.OK},
			{proto.OpCreateTTL, create{path: "/t", mode: proto.ModePersistentTTL, op: proto.OpCreateTTL, ttl: 1000}, proto.OK},
			{proto.OpSetData, &proto.SetDataRequest{Path: "/p", Version: -1}, proto.OK},
			{proto.OpMulti, multi{multiCreate(proto.OpCreate, "/m", 0), {Op: proto.OpDelete, Path: "/p", Version: -1}}, proto.OK},
		} {
			zxid := e.m(e.leader()).s.Status().Zxid
			if code := c.code(step.op, step.body); code != step.want {
				t.Errorf("step %d: %v, want %v", i, code, step.want)
			}
			if now := e.m(e.leader()).s.Status().Zxid; now != zxid+1 {
				t.Errorf("step %d takes %d zxids", i, now-zxid)
			}
		}
		c.request(1, proto.OpMulti, multi{multiCreate(proto.OpCreate, "/n", 0), multiCreate(proto.OpCreate2, "/e", proto.ModeEphemeral)})
		h, d := c.reply()
		var resp proto.MultiResponse
		if err := resp.Decode(d); err != nil || h.Err != proto.OK || len(resp.Results) != 2 || resp.Results[1].Err != proto.ErrEphemeralOnLocalSession {
			t.Errorf("a multi with an ephemeral znode: %v %+v %v", h.Err, resp, err)
		}
		if c.exists("/e") || c.exists("/n") || !c.exists("/m") {
			t.Error("the znodes are not what the replies say")
		}
	})
}

// The first ephemeral znode makes a local session one that all members know, with the same id. It
// takes the zxid before that of the znode, as in ZooKeeper.
func TestLocalSession_Upgrade(t *testing.T) {
	withLocal(t, true, func(t *testing.T, e *ensemble) {
		for i, first := range []struct {
			op   proto.OpCode
			body record
		}{
			{proto.OpCreate, create{path: "/e0", mode: proto.ModeEphemeral}},
			{proto.OpCreate2, create{path: "/e1", mode: proto.ModeEphemeral, op: proto.OpCreate2}},
			{proto.OpMulti, multi{multiCreate(proto.OpCreate, "/m", 0), multiCreate(proto.OpCreate2, "/e2", proto.ModeEphemeral), {Op: proto.OpDelete, Path: "/m", Version: -1}}},
		} {
			id, path := i+1, fmt.Sprintf("/e%d", i)
			c := e.connect(id, 10*time.Second)
			before, _ := c.call(1, proto.OpSetData, &proto.SetDataRequest{Path: "/", Version: -1})
			if h, _ := c.call(2, first.op, first.body); h.Err != proto.OK || h.Zxid != before.Zxid+2 {
				t.Fatalf("%v: %v with zxid %v after %v", first.op, h.Err, h.Zxid, before.Zxid)
			}
			e.sameZxid()
			for _, m := range e.members {
				if !slices.ContainsFunc(m.s.Facts().Sessions(), func(s server.Session) bool { return s.ID == int64(c.id) && s.Ephemerals == 1 }) {
					t.Errorf("member %d does not know %v", m.id, c.id)
				}
				if n := e.monitor(m.id)["zk_local_sessions"]; n != "0" {
					t.Errorf("member %d has %s local sessions", m.id, n)
				}
			}
			c = c.move(e, id%3+1)
			if !c.exists(path) {
				t.Error("the znode is gone")
			}
			if code := c.code(proto.OpCreate, create{path: path + "x", mode: proto.ModeEphemeral}); code != proto.OK {
				t.Error(code)
			}
			time.Sleep(33 * time.Second)
			w := e.connect(id, 10*time.Second)
			w.sync()
			if w.exists(path) || w.exists(path+"x") {
				t.Error("the znodes outlive the session")
			}
			if code := w.code(proto.OpCloseSession, nil); code != proto.OK {
				t.Error(code)
			}
		}
	})
}

// Requests that come together with the first ephemeral znode keep their order.
func TestLocalSession_UpgradeInABurst(t *testing.T) {
	withLocal(t, true, func(t *testing.T, e *ensemble) {
		c := e.connect(e.followers()[0], 10*time.Second)
		get := func(path string) record { return &proto.PathWatchRequest{Path: path} }
		path := "/"
		c.burst(
			encodeRequest(1, proto.OpCreate, create{path: "/p"}), encodeRequest(2, proto.OpSync, &proto.PathRequest{Path: &path}),
			encodeRequest(3, proto.OpCreate, create{path: "/e", mode: proto.ModeEphemeral}), encodeRequest(4, proto.OpExists, get("/e")),
			encodeRequest(5, proto.OpCreate, create{path: "/e2", mode: proto.ModeEphemeral}), encodeRequest(6, proto.OpDelete, &proto.PathVersionRequest{Path: "/e", Version: -1}),
			encodeRequest(7, proto.OpExists, get("/e")), encodeRequest(8, proto.OpCloseSession, nil),
		)
		for xid := int32(1); xid <= 8; xid++ {
			want := proto.OK
			if xid == 7 {
				want = proto.ErrNoNode
			}
			if h, _ := c.reply(); h.Xid != xid || h.Err != want {
				t.Fatalf("%+v, want xid %d and %v", h, xid, want)
			}
		}
		if c.recv() != nil {
			t.Error("open after closeSession")
		}
		if w := e.connect(1, time.Minute); w.exists("/e2") || !w.exists("/p") {
			t.Error("the session's end did not remove its znode, or more")
		}
	})
}

// While the request that makes a session known to all members is under way, the session does not
// move, and does not expire on its server: nobody can tell in which table it is.
func TestLocalSession_UpgradeUnderWay(t *testing.T) {
	withLocal(t, true, func(t *testing.T, e *ensemble) {
		id := e.followers()[0]
		c := e.connect(id, 1500*time.Millisecond)
		e.m(id).isolate(true)
		c.request(1, proto.OpCreate, create{path: "/e", mode: proto.ModeEphemeral})
		time.Sleep(10 * time.Millisecond)
		if !e.closedAtOnce(id, &proto.ConnectRequest{TimeoutMs: 10_000, SessionID: c.id, Passwd: c.pass}) {
			t.Error("a session moves while all members are about to know it")
		}
		_ = c.nc.Close()
		time.Sleep(3 * time.Second)
		if n := e.monitor(id)["zk_local_sessions"]; n != "1" {
			t.Errorf("%s local sessions", n)
		}
		e.m(id).isolate(false)
		e.awaits("the session is over", func() bool {
			return len(e.m(id).s.Facts().Sessions()) == 0 && e.monitor(id)["zk_local_sessions"] == "0"
		})
		e.sameZxid()
		if w := e.connect(id, time.Minute); w.exists("/e") {
			t.Error("a znode without a session")
		}
	})
}

// A session that cannot become global, because the state is full, stays local: the request that
// needs a global one is refused, and succeeds when the state has room.
func TestLocalSession_UpgradeRefused(t *testing.T) {
	withLocal(t, true, func(t *testing.T, e *ensemble) {
		leader, id := e.leader(), e.followers()[0]
		server.FillSessions(e.m(leader).s)
		server.MakeFull(e.m(leader).s)
		e.sameZxid()
		c := e.connect(id, 10*time.Second)
		for i := range 2 {
			for op, body := range map[proto.OpCode]record{
				proto.OpCreate: create{path: "/e", mode: proto.ModeEphemeral},
				proto.OpMulti:  multi{multiCreate(proto.OpCreate, "/e", proto.ModeEphemeral)},
			} {
				if code := c.code(op, body); code != proto.ErrQuotaExceeded {
					t.Fatalf("%v gets %v", op, code)
				}
			}
			if code := c.code(proto.OpDelete, &proto.PathVersionRequest{Path: "/none", Version: -1}); code != proto.ErrNoNode {
				t.Errorf("a delete gets %v", code)
			}
			if n := e.monitor(id)["zk_local_sessions"]; n != "1" {
				t.Errorf("member %d has %s local sessions", id, n)
			}
			if i == 0 {
				c = c.move(e, id) // comes back to its session
			}
		}
		server.MakeRoom(e.m(leader).s)
		if code := c.code(proto.OpCreate, create{path: "/e", mode: proto.ModeEphemeral}); code != proto.OK || e.monitor(id)["zk_local_sessions"] != "0" {
			t.Errorf("%v when the state has room", code)
		}
	})
}

// Who leaves local sessions behind does not keep others out: their sessions are global meanwhile.
func TestLocalSession_CrowdedOut(t *testing.T) {
	withLocal(t, true, func(t *testing.T, e *ensemble) {
		server.FillLocals(e.m(1).s)
		if c := e.connect(1, time.Minute); c.id&localBit != 0 {
			t.Errorf("%v is a local session", c.id)
		}
	})
}

// A server that is cut off forgets its local sessions with its connections, as ZooKeeper does.
func TestLocalSession_CutOff(t *testing.T) {
	withLocal(t, true, func(t *testing.T, e *ensemble) {
		id := e.followers()[0]
		c := e.connect(id, time.Minute)
		e.m(id).isolate(true)
		if took := c.closedIn(time.Minute); took < 5*time.Second {
			t.Errorf("closed after %v", took)
		}
		e.m(id).isolate(false)
		e.awaits("serving", func() bool { return e.m(id).s.Status().Serving })
		if !e.refused(id, c.id, c.pass) {
			t.Error("the session survived")
		}
	})
}

// An embedding program ends a local session like any other.
func TestLocalSession_ExpireSession(t *testing.T) {
	withLocal(t, true, func(t *testing.T, e *ensemble) {
		c := e.connect(1, time.Minute)
		if err := e.m(1).s.ExpireSession(t.Context(), int64(c.id)); err != nil {
			t.Fatal(err)
		}
		if c.recv() != nil || !e.refused(1, c.id, c.pass) {
			t.Error("the session lives")
		}
	})
}

// BenchmarkOpenSession opens sessions on a follower, one after the other.
func BenchmarkOpenSession(b *testing.B) {
	for name, local := range map[string]bool{"global": false, "local": true} {
		b.Run(name, func(b *testing.B) {
			e := newEnsemble(b, 3, memnet.New(0))
			e.each(func(c *server.Config) { c.LocalSessions, c.Logger, c.NoSync = local, nil, true })
			e.startAll()
			e.awaitVoters(1, 2, 3)
			id := e.followers()[0]
			begun := e.m(id).s.Status().Zxid
			hello := frameOf((&proto.ConnectRequest{TimeoutMs: 10_000, HasReadOnly: true}).Append(nil))
			for b.Loop() {
				nc, err := e.dialFrom("c", id)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := nc.Write(hello); err != nil {
					b.Fatal(err)
				}
				if (&raw{t: b, nc: nc}).recv() == nil {
					b.Fatal("no answer")
				}
				_ = nc.Close()
			}
			b.ReportMetric(float64(e.m(id).s.Status().Zxid-begun)/float64(b.N), "writes/op")
		})
	}
}
