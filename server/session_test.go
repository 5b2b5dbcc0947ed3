package server_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/server"
)

var ticks = server.Config{Tick: time.Second, MinSessionTimeout: time.Second, MaxSessionTimeout: time.Hour}

// Sessions expire in (timeout, timeout + tick], with their ephemerals in the same transaction, and
// without a packet.
func TestExpiry(t *testing.T) {
	bubble(t, ticks, func(t *testing.T, dial func() *raw) {
		watcher, owner := dial(), dial()
		watcher.connect(3_600_000, 0, nil)
		owner.connect(10_000, 0, nil)
		owner.call(1, proto.OpCreate, create{path: "/e1", mode: proto.ModeEphemeral})
		owner.call(2, proto.OpCreate, create{path: "/e2", mode: proto.ModeEphemeral})
		for i, path := range []string{"/e1", "/e2"} {
			watcher.call(int32(i), proto.OpExists, &proto.PathWatchRequest{Path: path, Watch: true})
		}
		for range 5 { // pings keep it alive
			time.Sleep(9 * time.Second)
			if h, _ := owner.call(proto.XidPing, proto.OpPing, nil); h.Err != proto.OK {
				t.Fatal(h)
			}
		}
		last := time.Now()
		if b := owner.recv(); b != nil {
			t.Fatalf("a packet instead of a silent close: %x", b)
		}
		if alive := time.Since(last); alive <= 10*time.Second || alive > 11*time.Second {
			t.Errorf("a session with a timeout of 10 s and a tick of 1 s lived %v after it was heard", alive)
		}
		h1, e1 := watcher.event()
		h2, e2 := watcher.event()
		if e1.Type != proto.EventDeleted || e2.Type != proto.EventDeleted || h1.Zxid != h2.Zxid || h1.Zxid <= 0 {
			t.Errorf("events %v %+v, %v %+v: both ephemerals go in one transaction", h1, e1, h2, e2)
		}
		again := dial()
		if resp := again.connect(10_000, owner.id, owner.pass); resp.TimeoutMs != 0 || resp.SessionID != 0 ||
			!bytes.Equal(resp.Passwd, make([]byte, proto.PasswdBytes)) {
			t.Errorf("an expired session was answered %+v", resp)
		}
		if again.recv() == nil || again.recv() != nil {
			t.Error("no story, or open after the story")
		}
	})
}

func TestReattach(t *testing.T) {
	bubble(t, ticks, func(t *testing.T, dial func() *raw) {
		first := dial()
		first.connect(10_000, 0, nil)
		first.call(1, proto.OpCreate, create{path: "/e", mode: proto.ModeEphemeral})

		// A wrong password is refused and does not affect the owner.
		thief := dial()
		if resp := thief.connect(10_000, first.id, bytes.Repeat([]byte{7}, 16)); resp.SessionID != 0 {
			t.Fatalf("a wrong password was accepted: %+v", resp)
		}
		short := dial()
		if resp := short.connect(10_000, first.id, []byte{1}); resp.SessionID != 0 {
			t.Fatalf("a short password was accepted: %+v", resp)
		}
		if h, _ := first.call(proto.XidPing, proto.OpPing, nil); h.Err != proto.OK {
			t.Fatal(h)
		}

		second := dial()
		if resp := second.connect(30_000, first.id, first.pass); resp.SessionID != first.id || resp.TimeoutMs != 30_000 {
			t.Fatalf("re-attached: %+v", resp)
		}
		if first.recv() != nil {
			t.Error("the old connection is still open")
		}
		time.Sleep(29 * time.Second) // the new timeout counts
		h, d := second.call(1, proto.OpExists, &proto.PathWatchRequest{Path: "/e"})
		var st proto.Stat
		if st.Decode(d); h.Err != proto.OK || st.EphemeralOwner != first.id {
			t.Errorf("the ephemeral: %v %+v", h, st)
		}
		if h, _ := second.call(2, proto.OpCloseSession, nil); h.Err != proto.OK {
			t.Error(h)
		}
		if second.recv() != nil {
			t.Error("open after closeSession")
		}
	})
}

func TestNegotiation(t *testing.T) {
	bubble(t, ticks, func(t *testing.T, dial func() *raw) {
		for ask, want := range map[int32]int32{0: 1000, -5: 1000, 999: 1000, 1001: 1001, 1 << 30: 3_600_000} {
			if resp := dial().connect(ask, 0, nil); resp.TimeoutMs != want || resp.SessionID == 0 || len(resp.Passwd) != 16 {
				t.Errorf("asked for %d ms: %+v, want %d ms", ask, resp, want)
			}
		}
		old := dial() // clients up to 3.3 send no read-only byte and get none
		old.send((&proto.ConnectRequest{TimeoutMs: 5000}).Append(nil))
		if b := old.recv(); len(b) != 36 {
			t.Errorf("the answer to a request without the read-only byte has %d bytes, want 36", len(b))
		}
		ahead := dial() // has seen a later state: closed without a reply
		ahead.send((&proto.ConnectRequest{TimeoutMs: 5000, LastZxidSeen: 1 << 60, HasReadOnly: true}).Append(nil))
		if b := ahead.recv(); b != nil {
			t.Errorf("a client ahead of us got %x", b)
		}
		start := time.Now()
		if silent := dial(); silent.recv() != nil || time.Since(start) != 10*time.Second {
			t.Errorf("a connection without a session was closed after %v", time.Since(start))
		}
	})
}

func TestCollector(t *testing.T) {
	cfg := ticks
	cfg.ContainerInterval, cfg.ContainerNeverUsed = 10*time.Second, 30*time.Second
	bubble(t, cfg, func(t *testing.T, dial func() *raw) {
		c := dial()
		c.connect(3_600_000, 0, nil)
		c.call(1, proto.OpCreateContainer, create{path: "/used", mode: proto.ModeContainer, op: proto.OpCreateContainer})
		c.call(2, proto.OpCreateContainer, create{path: "/unused", mode: proto.ModeContainer, op: proto.OpCreateContainer})
		c.call(3, proto.OpCreateTTL, create{path: "/ttl", mode: proto.ModePersistentTTL, op: proto.OpCreateTTL, ttl: 15_000})
		c.call(4, proto.OpCreate, create{path: "/used/child"})
		c.call(5, proto.OpDelete, &proto.PathVersionRequest{Path: "/used/child", Version: -1})
		there := func() string {
			s := ""
			for i, path := range []string{"/used", "/unused", "/ttl"} {
				if h, _ := c.call(int32(10+i), proto.OpExists, &proto.PathWatchRequest{Path: path}); h.Err == proto.OK {
					s += path
				}
			}
			return s
		}
		for i, want := range []string{"/used/unused/ttl", "/unused/ttl", "/unused", "/unused", ""} {
			if got := there(); got != want {
				t.Errorf("after %d s: %s are there, want %s", 10*i, got, want)
			}
			time.Sleep(10 * time.Second)
			synctest.Wait()
		}
	})
}

func TestMaxClientConns(t *testing.T) {
	cfg := ticks
	cfg.MaxClientConns = 3
	bubble(t, cfg, func(t *testing.T, dial func() *raw) {
		for range 3 {
			dial().connect(60_000, 0, nil)
		}
		over := dial()
		if over.recv() != nil {
			t.Error("a fourth connection was served")
		}
	})
}

// Requests after the connect request in the same segment wait for the session.
func TestPipelinedBehindConnect(t *testing.T) {
	bubble(t, ticks, func(t *testing.T, dial func() *raw) {
		c := dial()
		frame := func(payload []byte) []byte {
			return append(fmt.Appendf(nil, "\x00\x00\x00%c", len(payload)), payload...)
		}
		b := frame((&proto.ConnectRequest{TimeoutMs: 5000, HasReadOnly: true}).Append(nil))
		b = append(b, frame(create{path: "/p"}.Append((&proto.RequestHeader{Xid: 1, Op: proto.OpCreate}).Append(nil)))...)
		b = append(b, frame((&proto.PathWatchRequest{Path: "/p"}).Append((&proto.RequestHeader{Xid: 2, Op: proto.OpExists}).Append(nil)))...)
		go func() { _, _ = c.nc.Write(b) }() // ends when the server has read it, or with the pipe
		if got := c.recv(); len(got) != 37 {
			t.Fatalf("connect response of %d bytes", len(got))
		}
		for xid := int32(1); xid <= 2; xid++ {
			if h, _ := c.reply(); h.Xid != xid || h.Err != proto.OK {
				t.Fatalf("reply %+v, want xid %d", h, xid)
			}
		}
	})
}

// Requests after closeSession are not read, and yet the reply to closeSession arrives.
func TestCloseIsAnsweredBeforeReset(t *testing.T) {
	s, err := server.New(server.Config{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	for range 50 {
		nc, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		r := &raw{t: t, nc: nc}
		r.connect(30000, 0, nil)
		frames := (&proto.RequestHeader{Xid: 1, Op: proto.OpCloseSession}).Append(binary.BigEndian.AppendUint32(nil, 8))
		for range 5000 { // more than is read at once
			frames = (&proto.RequestHeader{Xid: proto.XidPing, Op: proto.OpPing}).Append(binary.BigEndian.AppendUint32(frames, 8))
		}
		_, _ = nc.Write(frames) // the connection may end before all is written
		b := r.tryRecv()
		if b == nil {
			t.Fatal("no reply to closeSession")
		}
		var h proto.ReplyHeader
		d := jute.NewDecoder(b)
		if h.Decode(&d); d.Err() != nil || h.Xid != 1 || h.Err != proto.OK {
			t.Fatalf("answer %+v, %v", h, d.Err())
		}
		_ = nc.Close()
	}
}

// TestZooKeeperPasswords: with the setting, a ZooKeeper can compute the password of each new
// session from its id, and no two sessions have one id, also after a restart.
func TestZooKeeperPasswords(t *testing.T) {
	cfg := ticks
	for _, on := range []bool{true, false} {
		cfg.ZooKeeperPasswords = on
		serverBubble(t, cfg, func(t *testing.T, _ *server.Server, dial func() *raw) {
			ids := make(map[proto.SessionID]bool)
			for range 20 {
				r := dial()
				resp := r.connect(10_000, 0, nil)
				want := zkfiles.Password(resp.SessionID)
				if ids[resp.SessionID] || resp.SessionID == 0 || bytes.Equal(resp.Passwd, want[:]) != on {
					t.Fatalf("%t: session %v has password %x, of ZooKeeper it would be %x", on, resp.SessionID, resp.Passwd, want)
				}
				ids[resp.SessionID] = true
				if h, _ := r.call(1, proto.OpCreate, create{path: fmt.Sprintf("/e%d", len(ids)), mode: proto.ModeEphemeral}); h.Err != proto.OK {
					t.Fatal(h.Err)
				}
				again := dial()
				if resumed := again.connect(10_000, resp.SessionID, resp.Passwd); resumed.SessionID != resp.SessionID {
					t.Errorf("%t: %+v instead of session %v", on, resumed, resp.SessionID)
				}
			}
		})
	}
}
