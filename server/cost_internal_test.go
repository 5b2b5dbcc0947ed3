package server

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/server/internal/link"
)

// costServer returns a server in memory, and a connection with a session whose other end nobody
// reads.
// The applier is not that of the server, which another goroutine uses.
func costServer(t *testing.T, cfg Config) (*Server, *conn, *applier) {
	t.Helper()
	s := startInProcess(t, cfg)
	here, there := net.Pipe()
	t.Cleanup(func() { _, _ = here.Close(), there.Close() })
	c := newConn(s, here, portPlain, "client")
	a := newApplier(s)
	return s, c, a
}

// testRequest is a request and its body.
type testRequest struct {
	op   proto.OpCode
	body []byte
}

func get(path string) testRequest {
	return testRequest{proto.OpGetData, (&proto.PathWatchRequest{Path: path}).Append(nil)}
}

func list(path string) testRequest {
	return testRequest{proto.OpGetChildren, (&proto.PathWatchRequest{Path: path}).Append(nil)}
}

func set(path string, data string) testRequest {
	return testRequest{proto.OpSetData, (&proto.SetDataRequest{Path: path, Data: []byte(data), Version: -1}).Append(nil)}
}

// enqueue queues requests whose writes are proposed. It returns the writes.
func (c *conn) enqueue(requests ...testRequest) (writes []*clientWrite) {
	for i, r := range requests {
		if r.op.Info().Class != proto.ClassWrite {
			c.queue.push(&queuedRead{op: r.op, xid: int32(i), body: r.body})
			continue
		}
		w := &clientWrite{clientRequest: clientRequest{conn: c, xid: int32(i)}}
		w.req = datatree.Request{Op: r.op, Body: r.body, Server: 1}
		writes = append(writes, w)
		c.queue.push(w)
		c.server.writes.Take(len(r.body))
	}
	return writes
}

// applyLocked applies w as Apply does. The caller holds the tree's write lock.
func applyLocked(a *applier, w *clientWrite) {
	a.apply(1, &consensus.Request{Ref: w, Payload: w.req.Append(nil)}, time.Now())
}

// texts returns what the replies on the output say: the data of a getData, "" for others.
func (c *conn) texts(t *testing.T, requests []testRequest) (texts []string) {
	t.Helper()
	var all []byte
	for o := c.Out; o.Len() > 0; {
		b, _ := o.Next()
		all = append(all, b...)
		o.Advance(len(b))
	}
	for i := 0; len(all) > 0; i++ {
		n := binary.BigEndian.Uint32(all) + 4
		if xid := int32(binary.BigEndian.Uint32(all[4:])); xid != int32(i) {
			t.Fatalf("reply %d has xid %d", i, xid)
		}
		text := ""
		if requests[i].op == proto.OpGetData {
			d := jute.NewDecoder(all[4+proto.ReplyHeaderBytes : n])
			text = string(d.Buffer())
		}
		texts = append(texts, text)
		all = all[n:]
	}
	return texts
}

// Under the write lock Apply answers a bounded number of the reads that wait for a write, and makes
// a bounded number of bytes. The rest is answered by another goroutine.
func TestCost_ApplyLeavesReads(t *testing.T) {
	for name, test := range map[string]struct {
		read  testRequest
		most  int // reads that Apply may answer
		bytes int // of the output that may be copied
	}{
		"small data":  {get("/small"), burstFrames, link.Burst},
		"middle data": {get("/middle"), link.Burst/10_000 + 1, link.Burst + 10_100},
		"large data":  {get("/large"), 1, 1000},
		"many names":  {list("/many"), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, c, a := costServer(t, Config{})
			znodes := map[string][]byte{"/small": nil, "/middle": make([]byte, 10_000), "/large": make([]byte, 1_000_000), "/many": nil}
			for i := range 5000 {
				znodes[fmt.Sprintf("/many/child-%d", i)] = nil
			}
			if err := s.Load(t.Context(), znodes); err != nil {
				t.Fatal(err)
			}
			const n = 1000
			requests := []testRequest{set("/small", "x")}
			for range n {
				requests = append(requests, test.read)
			}
			w := c.enqueue(requests...)[0]
			s.state.Lock()
			applyLocked(a, w)
			left, copied := c.queue.len(), len(c.Out.Buf)
			draining := c.queue.draining.Load()
			c.Close() // before another goroutine answers
			s.state.Unlock()
			if n-left > test.most || copied > test.bytes+100 {
				t.Errorf("Apply answered %d reads and copied %d bytes, allowed are %d and %d", n-left, copied, test.most, test.bytes)
			}
			if !draining {
				t.Error("nobody answers the others")
			}
		})
	}
}

// A read that Apply left to another goroutine sees no later write of its connection (V2), and
// replies keep their order (V1).
func TestCost_LeftReadsSeeTheirWrite(t *testing.T) {
	s, c, a := costServer(t, Config{})
	if err := s.Load(t.Context(), map[string][]byte{"/a": nil}); err != nil {
		t.Fatal(err)
	}
	var requests []testRequest
	var want []string
	for _, text := range []string{"one", "two", "three"} {
		requests, want = append(requests, set("/a", text)), append(want, "")
		for range 2 * burstFrames {
			requests, want = append(requests, get("/a")), append(want, text)
		}
	}
	s.state.Lock()
	for i, w := range c.enqueue(requests...) {
		if i > 0 && !c.queue.draining.Load() {
			t.Error("Apply answered everything")
		}
		applyLocked(a, w)
	}
	// Takes what the other goroutine would.
	c.Lock()
	for more := true; more; {
		more = c.drain(&a.batch)
	}
	got := c.texts(t, requests)
	c.CloseLocked()
	c.Unlock()
	s.state.Unlock()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// A write is not proposed while so many reads wait that Apply would have much to do before it.
func TestCost_WritesBehindManyReads(t *testing.T) {
	var q queue
	for range maxQueuedReads {
		if q.holdsWrites() {
			t.Fatalf("held after %d reads", q.nReads)
		}
		q.push(&queuedRead{op: proto.OpGetData})
	}
	if !q.holdsWrites() {
		t.Error("not held")
	}
	q.pop()
	if q.holdsWrites() {
		t.Error("held when a read was answered")
	}
	q.draining.Store(true)
	if !q.holdsWrites() {
		t.Error("not held while another goroutine answers")
	}
}

// endless is a connection that always has pings, and takes every reply.
type endless struct {
	net.Conn
	frame  []byte
	at     int
	read   int64 // bytes
	budget int64
}

var errEnough = errors.New("enough")

func (e *endless) Read(b []byte) (int, error) {
	if e.read >= e.budget {
		return 0, errEnough
	}
	for i := range b {
		b[i] = e.frame[e.at]
		e.at = (e.at + 1) % len(e.frame)
	}
	e.read += int64(len(b))
	return len(b), nil
}

func (e *endless) Write(b []byte) (int, error) { return len(b), nil }

// A connection whose client always has the next request ready lets others go on after a bounded
// number of requests.
func TestCost_EndlessPipeline(t *testing.T) {
	s, c, _ := costServer(t, Config{})
	ping := binary.BigEndian.AppendUint32(nil, 8)
	ping = (&proto.RequestHeader{Xid: proto.XidPing, Op: proto.OpPing}).Append(ping)
	e := &endless{Conn: c.NetConn(), frame: ping, budget: 1 << 20}
	c = newConn(s, e, portPlain, "client")
	var most, yields, last int64
	c.server.conns.turns.yield = func() {
		most, last = max(most, c.stats.Received-last), c.stats.Received
		yields++
	}
	var in link.Input
	for in.Fill(&c.Link) == nil {
		if ok, err := c.handle(&in, time.Now()); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	if most == 0 || most > burstFrames+link.InputBytes/int64(len(ping))%burstFrames+1 {
		t.Errorf("%d requests of %d bytes in %d turns, up to %d in one", c.stats.Received, len(ping), yields, most)
	}
}

// A multiRead that takes long is done in slices, and others go on between them. Its reply is the
// same as in one piece.
func TestCost_MultiReadInSlices(t *testing.T) {
	s, c, a := costServer(t, Config{MaxBuffer: 64 << 20})
	if err := s.Load(t.Context(), map[string][]byte{"/a": []byte("a"), "/large": make([]byte, link.ShareBytes)}); err != nil {
		t.Fatal(err)
	}
	var m proto.MultiRequest
	for i := range 3 * maxSliceWork {
		op := proto.MultiOp{Op: proto.OpGetData, Path: "/a"}
		if i%(maxSliceWork/10) == 0 {
			op.Path = "/large"
		}
		m.Ops = append(m.Ops, op)
	}
	body := m.Append(nil)
	between := 0
	for {
		s.state.RLock()
		c.Lock()
		done := c.read(&a.batch, proto.OpMultiRead, 5, body, nil)
		if !done && c.Out.Len() > 0 {
			t.Fatal("a part of the reply is on the output")
		}
		c.Unlock()
		s.state.RUnlock()
		if done {
			break
		}
		if between++; between > 100 {
			t.Fatal("no end")
		}
		if err := s.Load(t.Context(), map[string][]byte{"/a": []byte("b")}); err != nil {
			t.Fatal(err)
		}
	}
	if between < 2 {
		t.Errorf("%d reads in %d slices", len(m.Ops), between+1)
	}
	var all []byte
	for c.Out.Len() > 0 {
		b, _ := c.Out.Next()
		all = append(all, b...)
		c.Out.Advance(len(b))
	}
	if n := int(binary.BigEndian.Uint32(all)); n != len(all)-4 {
		t.Fatalf("a frame of %d bytes says %d", len(all)-4, n)
	}
	d := jute.NewDecoder(all[4:])
	var h proto.ReplyHeader
	h.Decode(&d)
	var r proto.MultiResponse
	if err := r.Decode(&d); err != nil || h.Xid != 5 || h.Err != proto.OK || len(r.Results) != len(m.Ops) || d.Remaining() > 0 {
		t.Fatalf("%+v, %d results: %v", h, len(r.Results), err)
	}
	if a, b := string(r.Results[1].Data), string(r.Results[len(r.Results)-1].Data); a != "a" || b != "b" {
		t.Errorf("the first slice shows %q, the last %q", a, b)
	}
}

// A setWatches2 that reads a long history does so in slices, and others write between them. Its
// events are the same as in one piece, with the changes between the slices.
func TestCost_ReplayInSlices(t *testing.T) {
	for writes, want := range map[int]proto.EventType{maxSliceChanges / 2: proto.EventDataChanged, 3 * maxSliceChanges: proto.EventDeleted} {
		s, c, a := costServer(t, Config{WatchReplay: 100_000})
		load := func(path string, n int) {
			t.Helper()
			for range n {
				s.state.Lock()
				s.state.history.Add(s.state.tree.LastZxid(), proto.EventDataChanged, path, "")
				s.state.Unlock()
			}
			if err := s.Load(t.Context(), map[string][]byte{path: nil}); err != nil {
				t.Fatal(err)
			}
		}
		load("/a", 0)
		since := s.state.lastZxid()
		for range 10 {
			load("/other", maxSliceChanges/4)
			load("/a", 0)
		}
		none := []string{}
		body := (&proto.SetWatchesRequest{
			RelativeZxid: since, Data: none, Exist: none, Child: none, Persistent: []string{"/a", proto.ReplayMark}, PersistentRecursive: none,
		}).Append(nil, proto.OpSetWatches2)
		between := 0
		for done := false; !done; between++ {
			if between > 100 {
				t.Fatal("no end")
			}
			s.state.RLock()
			c.Lock()
			if done = c.read(&a.batch, proto.OpSetWatches2, 5, body, nil); !done && (c.Out.Len() > 0 || c.queue.held() == 0) {
				t.Fatal("a part of the events is on the output, or not counted")
			}
			c.Unlock()
			s.state.RUnlock()
			if !done {
				if between == 0 && c.queue.missed.failed {
					t.Fatal("the history was too short from the beginning")
				}
				load("/other", writes) // if too many, the history forgets what was not read yet
				load("/a", 0)
			}
		}
		var got []proto.WatcherEvent
		for c.Out.Len() > 0 {
			b, _ := c.Out.Next()
			for frame := b; len(frame) > 0; frame = frame[4+binary.BigEndian.Uint32(frame):] {
				var h proto.ReplyHeader
				var e proto.WatcherEvent
				d := jute.NewDecoder(frame[4:])
				if h.Decode(&d); h.Xid == proto.XidEvent {
					e.Decode(&d)
					got = append(got, e)
				}
			}
			c.Out.Advance(len(b))
		}
		if last := got[len(got)-1]; last.Path != proto.ReplayMark || last.Type != want {
			t.Errorf("%d writes between slices: %v", writes, got)
		}
		if n := len(got) - 1; want == proto.EventDataChanged && (n != 10+between-1 || between < 3) || want == proto.EventDeleted && n > 0 {
			t.Errorf("%d writes between slices: %d events of 10 changes before and %d after it began", writes, n, between-1)
		}
	}
}
