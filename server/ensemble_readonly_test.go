package server_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/server"
)

// withReadOnly runs f with three members on disk that may become read-only.
func withReadOnly(t *testing.T, f func(t *testing.T, e *ensemble)) {
	t.Helper()
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.startReadOnly()
		f(t, e)
	})
}

func (e *ensemble) startReadOnly() {
	e.t.Helper()
	e.onDisk()
	e.each(func(c *server.Config) { c.ReadOnlyMode, c.NoSync = true, true })
	e.startAll()
	e.awaitVoters(e.ids()...)
}

// mode returns what srvr says, or "" if the member does not serve.
func (e *ensemble) mode(id int) string {
	_, after, _ := strings.Cut(e.word(id, "srvr"), "\nMode: ")
	mode, _, _ := strings.Cut(after, "\n")
	return mode
}

// tryReadOnly connects as a client that accepts a read-only server. answered is false if the member
// closes the connection instead.
func (e *ensemble) tryReadOnly(id int, r proto.ConnectRequest) (c *raw, resp proto.ConnectResponse, answered bool) {
	e.t.Helper()
	c = e.dial(id)
	r.ReadOnly, r.HasReadOnly = true, true
	c.send(r.Append(nil))
	b := c.recv()
	if b == nil {
		return nil, resp, false
	}
	d := jute.NewDecoder(b)
	if resp.Decode(&d); d.Err() != nil {
		e.t.Fatal(d.Err())
	}
	c.id, c.pass = resp.SessionID, resp.Passwd
	return c, resp, true
}

// readOnly connects to a read-only member.
func (e *ensemble) readOnly(id int, timeout time.Duration) *raw {
	e.t.Helper()
	c, resp, answered := e.tryReadOnly(id, proto.ConnectRequest{TimeoutMs: int32(timeout.Milliseconds())})
	if !answered || !resp.ReadOnly || resp.SessionID == 0 {
		e.t.Fatalf("member %d: %+v", id, resp)
	}
	return c
}

// A server that is cut off answers reads of clients that accept that, and refuses everything else.
// The answers are those of ZooKeeper 3.9.5.
func TestReadOnly(t *testing.T) {
	withNumbers(t, 3, func(t *testing.T, e *ensemble) {
		e.startReadOnly()
		for _, id := range []int{e.leader(), e.followers()[0]} {
			owner, resp, _ := e.tryReadOnly(id, proto.ConnectRequest{TimeoutMs: 60_000})
			if resp.ReadOnly {
				t.Fatal("a server with a quorum says that it is read-only")
			}
			owner.call(1, proto.OpCreate, create{path: "/e", mode: proto.ModeEphemeral})
			last := owner.set("/e", 7)
			e.m(id).isolate(true)
			if took := owner.closedIn(time.Minute); took < 5*time.Second || took > 6200*time.Millisecond {
				t.Errorf("the connection was closed after %v", took)
			}
			e.awaits("read-only", func() bool { return e.mode(id) == "read-only" })
			e.checkReadOnlyWords(id)

			for what, r := range map[string]proto.ConnectRequest{
				"a client that wants to write": {TimeoutMs: 10_000, HasReadOnly: true}, "one that says nothing": {TimeoutMs: 10_000},
				"its session": {TimeoutMs: 10_000, SessionID: owner.id, Passwd: owner.pass},
			} {
				if !e.closedAtOnce(id, &r) {
					t.Errorf("%s is answered", what)
				}
			}
			for what, r := range map[string]proto.ConnectRequest{
				"a global session":                       {SessionID: owner.id, Passwd: owner.pass},
				"a global session with a wrong password": {SessionID: owner.id, Passwd: make([]byte, 16)},
				"a global session unknown here":          {SessionID: 1<<56 | proto.SessionID(last) + 1000, Passwd: make([]byte, 16)},
				"a client that has seen a later state":   {LastZxidSeen: last + 1},
			} {
				if _, resp, answered := e.tryReadOnly(id, r); answered {
					t.Errorf("%s: %+v", what, resp)
				}
			}
			for what, session := range map[string]proto.SessionID{
				"an unknown local session": 1<<56 | localBit | 1, "a session whose end this server has seen": 1<<56 | proto.SessionID(last),
			} {
				_, resp, answered := e.tryReadOnly(id, proto.ConnectRequest{SessionID: session, Passwd: make([]byte, 16)})
				if !answered || resp.SessionID != 0 || !resp.ReadOnly {
					t.Errorf("%s: %v %+v", what, answered, resp)
				}
			}

			c, resp, _ := e.tryReadOnly(id, proto.ConnectRequest{TimeoutMs: 10_000, LastZxidSeen: last})
			if !resp.ReadOnly {
				t.Fatalf("%+v", resp)
			}
			c.checkReadOnlyRequests(last)
			old := c
			if c, resp, _ = e.tryReadOnly(id, proto.ConnectRequest{TimeoutMs: 2000, SessionID: old.id, Passwd: old.pass}); resp.SessionID != old.id {
				t.Fatalf("%+v", resp)
			}
			if old.recv() != nil {
				t.Error("the previous connection is open")
			}
			if took := c.closedIn(time.Minute); took <= 2*time.Second || took > 3500*time.Millisecond {
				t.Errorf("a silent session of 2 s lived %v", took)
			}
			c = e.readOnly(id, time.Minute)
			time.Sleep(time.Minute) // the owner's timeout
			c.ping()

			e.m(id).isolate(false)
			if took := c.closedIn(time.Minute); took > 10*time.Second {
				t.Errorf("closed %v after the quorum was back", took)
			}
			e.awaits("serving", func() bool { return e.m(id).s.Status().Serving })
			if !e.refused(id, c.id, c.pass) || !e.refused(e.but(id)[0], c.id, c.pass) {
				t.Error("the session of the read-only server lives on")
			}
			if e.word(id, "isro") != "rw" || strings.Contains(e.word(id, "srvr"), "READ-ONLY") {
				t.Error("it says that it is read-only")
			}
			w := e.connect(id, time.Minute)
			if w.sync(); w.exists("/e") {
				t.Error("the owner was silent for its timeout")
			}
		}
	})
}

func (e *ensemble) checkReadOnlyWords(id int) {
	e.t.Helper()
	for word, want := range map[string]string{
		"isro": "ro", "ruok": "imok", "srvr": "\nREAD-ONLY mode; serving only read-only clients\nLatency", "stat": "\nREAD-ONLY mode; serving only read-only clients\nClients:",
		"mntr": "\nzk_server_state\tread-only\n", "dump": "\nLocal Session Sets (0)/(0):\nGlobal Sessions(", "conf": "clientPort=",
	} {
		if got := e.word(id, word); !strings.Contains(got, want) {
			e.t.Errorf("%s: %q", word, got)
		}
	}
	s := e.m(id).s
	if st := s.Status(); st.Serving || st.Mode != "read-only" || s.NotServing() != nil {
		e.t.Errorf("%+v, %v", st, s.NotServing())
	}
}

// checkReadOnlyRequests sends a request of each kind to a read-only server that has applied last.
func (r *raw) checkReadOnlyRequests(last proto.Zxid) {
	r.t.Helper()
	path := "/e"
	for op, body := range map[proto.OpCode]record{
		proto.OpCreate: create{path: "/z"}, proto.OpCreate2: create{path: "/z", mode: proto.ModeEphemeral, op: proto.OpCreate2},
		proto.OpCreateContainer: create{path: "/z", mode: proto.ModeContainer, op: proto.OpCreateContainer},
		proto.OpCreateTTL:       create{path: "/z", mode: proto.ModePersistentTTL, op: proto.OpCreateTTL, ttl: 1},
		proto.OpDelete:          &proto.PathVersionRequest{Path: path, Version: -1}, proto.OpSetData: &proto.SetDataRequest{Path: path, Version: -1},
		proto.OpSetACL: &proto.SetACLRequest{Path: path, ACL: proto.OpenACL(), Version: -1}, proto.OpMulti: multi{},
		proto.OpSync: &proto.PathRequest{Path: &path}, proto.OpReconfig: &proto.ReconfigRequest{}, proto.OpDeleteContainer: &proto.PathRequest{Path: &path},
	} {
		if h, _ := r.call(1, op, body); h.Err != proto.ErrNotReadOnly || h.Zxid != last {
			r.t.Errorf("%v: %+v", op, h)
		}
	}
	for op, body := range map[proto.OpCode]record{
		proto.OpGetData: &proto.PathWatchRequest{Path: path, Watch: true}, proto.OpExists: &proto.PathWatchRequest{Path: "/z", Watch: true},
		proto.OpGetChildren: &proto.PathWatchRequest{Path: "/"}, proto.OpGetChildren2: &proto.PathWatchRequest{Path: "/"},
		proto.OpGetACL: &proto.PathRequest{Path: &path}, proto.OpGetAllChildrenNumber: &proto.PathRequest{Path: &path},
		proto.OpGetEphemerals: &proto.PathRequest{Path: &path}, proto.OpWhoAmI: nil, proto.OpSetWatches: bytesRecord((&proto.SetWatchesRequest{Data: []string{}, Exist: []string{}, Child: []string{}}).Append(nil, proto.OpSetWatches)),
		proto.OpAddWatch: &proto.AddWatchRequest{Path: path}, proto.OpMultiRead: multi{{Op: proto.OpGetData, Path: path}},
	} {
		want := proto.OK
		if op == proto.OpExists {
			want = proto.ErrNoNode
		}
		if h, _ := r.call(2, op, body); h.Err != want || h.Zxid != last {
			r.t.Errorf("%v: %+v", op, h)
		}
	}
	if got := r.get(path); got != 7 {
		r.t.Errorf("read %d", got)
	}
	r.ping()
}

// A server that finds no quorum when it starts serves what it had committed; one without data does
// not. It ends that before it serves writes.
func TestReadOnly_FromTheStart(t *testing.T) {
	withReadOnly(t, func(t *testing.T, e *ensemble) {
		owner := e.connect(1, time.Minute)
		owner.call(1, proto.OpCreate, create{path: "/e", mode: proto.ModeEphemeral})
		last := owner.set("/e", 7)
		for _, m := range e.members {
			m.stop()
		}
		begun := time.Now()
		served := e.m(2).begin(e.lines())
		e.awaits("read-only", func() bool { return e.mode(2) == "read-only" })
		if took := time.Since(begun); took < 2*time.Second || took > 3*time.Second {
			t.Errorf("read-only after %v, want 2 s as in ZooKeeper", took)
		}
		c := e.readOnly(2, 5*time.Second)
		if h, _ := c.call(1, proto.OpExists, &proto.PathWatchRequest{Path: "/e"}); h.Zxid > last {
			t.Errorf("zxid %v after %v", h.Zxid, last)
		}
		if code := c.code(proto.OpSetData, &proto.SetDataRequest{Path: "/", Version: -1}); code != proto.ErrNotReadOnly {
			t.Error(code)
		}
		if took := c.closedIn(time.Minute); took <= 5*time.Second || took > 6500*time.Millisecond {
			t.Errorf("a silent session of 5 s lived %v", took)
		}
		c = e.readOnly(2, time.Minute)
		fresh := e.m(3)
		fresh.dir = t.TempDir()
		e.m(2).deafen(true) // otherwise they could found an ensemble, or one could restore the other
		e.m(2).mute(true)
		freshServed := fresh.begin(e.lines())
		time.Sleep(10 * time.Second)
		if got := e.word(3, "isro"); got != "null" {
			t.Errorf("a server without data answers isro with %s", got)
		}
		c.ping()
		e.m(2).isolate(false)
		e.start(1)
		if err := served(); err != nil {
			t.Fatal(err)
		}
		if err := freshServed(); err != nil {
			t.Fatal(err)
		}
		c.closedIn(time.Minute)
		if w := owner.move(e, 2); !w.exists("/e") {
			t.Error("the global session lost its znode")
		}
	})
}

// A process that is paused while it looks for a leader, for longer than the timeout of a session,
// does not end that session: its client's ping waits in the socket. A silent one ends even so.
func TestReadOnly_PausedFromTheStart(t *testing.T) {
	withReadOnly(t, func(t *testing.T, e *ensemble) {
		for _, m := range e.members {
			m.stop()
		}
		e.m(2).begin(e.lines())
		e.awaits("read-only", func() bool { return e.mode(2) == "read-only" })
		const timeout, pause = 5 * time.Second, 10 * time.Second
		c, dead := e.readOnly(2, timeout), e.readOnly(2, timeout)
		e.m(2).pause(true)
		c.send((&proto.RequestHeader{Xid: proto.XidPing, Op: proto.OpPing}).Append(nil))
		time.Sleep(pause)
		e.m(2).pause(false)
		if c.recv() == nil {
			t.Fatal("a session whose client sent a ping has ended")
		}
		if took := dead.closedIn(time.Minute); took <= timeout-time.Second || took > timeout+1500*time.Millisecond {
			t.Errorf("a silent session of %v ended %v after the pause", timeout, took)
		}
	})
}

// A write that was under way when a server was cut off is not answered on a connection that can
// only read, and what a read-only connection asks for never happens.
func TestReadOnly_WritesDoNotLeak(t *testing.T) {
	withReadOnly(t, func(t *testing.T, e *ensemble) {
		id := e.followers()[0]
		w := e.connect(id, time.Minute)
		w.call(1, proto.OpCreate, create{path: "/a"})
		w.set("/a", 1)
		e.m(id).isolate(true)
		w.request(2, proto.OpSetData, &proto.SetDataRequest{Path: "/a", Data: []byte("2"), Version: -1})
		w.closedIn(time.Minute)
		c := e.readOnly(id, time.Minute)
		if got := c.get("/a"); got != 1 {
			t.Errorf("a read-only server shows %d, which was not committed", got)
		}
		c.burst(encodeRequest(3, proto.OpSetData, &proto.SetDataRequest{Path: "/a", Data: []byte("3"), Version: -1}))
		e.m(id).isolate(false)
		c.closedIn(time.Minute)
		e.awaits("serving", func() bool { return e.m(id).s.Status().Serving })
		r := e.connect(id, time.Minute)
		r.sync()
		if got := r.get("/a"); got != 2 { // the server resent it, as it does without read-only mode
			t.Errorf("read %d", got)
		}
	})
}

// A client that connects just after the majority was lost gets no local session that the server
// forgets when it becomes read-only.
func TestReadOnly_NoLocalSessionBefore(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.onDisk()
		e.each(func(c *server.Config) { c.ReadOnlyMode, c.NoSync, c.LocalSessions = true, true, true })
		e.startAll()
		e.awaitVoters(1, 2, 3)
		for _, id := range []int{e.leader(), e.followers()[0]} {
			if c, resp, _ := e.tryReadOnly(id, proto.ConnectRequest{TimeoutMs: 60_000}); resp.ReadOnly || c.id&localBit == 0 {
				t.Fatalf("with a quorum: %+v", resp)
			}
			e.m(id).isolate(true)
			for lost := time.Now(); e.mode(id) != "read-only"; time.Sleep(100 * time.Millisecond) {
				if _, resp, answered := e.tryReadOnly(id, proto.ConnectRequest{TimeoutMs: 60_000}); answered && !resp.ReadOnly {
					t.Fatalf("member %d, %v after the loss: %+v", id, time.Since(lost), resp)
				}
			}
			e.readOnly(id, time.Minute)
			e.m(id).isolate(false)
			e.awaits("serving", func() bool { return e.m(id).s.Status().Serving })
		}
	})
}

// Without the key, a server that is cut off refuses everybody.
func TestReadOnly_Off(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.startAll()
		e.awaitVoters(1, 2, 3)
		e.m(1).isolate(true)
		time.Sleep(8 * time.Second)
		if _, resp, answered := e.tryReadOnly(1, proto.ConnectRequest{}); answered || e.word(1, "isro") != "null" {
			t.Errorf("%+v", resp)
		}
	})
}
