package server_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/server"
)

// set writes a number to a znode.
func (r *raw) set(path string, n int) proto.Zxid {
	r.t.Helper()
	h, _ := r.call(3, proto.OpSetData, &proto.SetDataRequest{Path: path, Data: strconv.AppendInt(nil, int64(n), 10), Version: -1})
	if h.Err != proto.OK {
		r.t.Fatalf("set %s: %v", path, h.Err)
	}
	return h.Zxid
}

// get reads it.
func (r *raw) get(path string) int {
	r.t.Helper()
	h, d := r.call(4, proto.OpGetData, &proto.PathWatchRequest{Path: path})
	if h.Err != proto.OK {
		r.t.Fatalf("get %s: %v", path, h.Err)
	}
	return number(r.t, d)
}

func number(t testing.TB, d *jute.Decoder) int {
	t.Helper()
	n, err := strconv.Atoi(string(data(d)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (r *raw) sync() {
	r.t.Helper()
	path := "/"
	if h, _ := r.call(5, proto.OpSync, &proto.PathRequest{Path: &path}); h.Err != proto.OK {
		r.t.Fatalf("sync: %v", h.Err)
	}
}

// A read after a sync shows every write that another member had acknowledged, however far this
// member lags. A read without a sync need not.
func TestEnsemble_Sync(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.startAll()
		lags := e.followers()[0]
		for _, writer := range e.but(lags) {
			w, r := e.connect(writer, time.Minute), e.connect(lags, time.Minute)
			path := fmt.Sprintf("/s%d", writer)
			w.call(1, proto.OpCreate, create{path: path})
			w.set(path, 0)
			r.sync()
			e.m(lags).slow(true, 50*time.Millisecond)
			stale := 0
			for i := 1; i <= 20; i++ {
				w.set(path, i)
				if r.get(path) != i {
					stale++
				}
				r.sync()
				if got := r.get(path); got != i {
					t.Errorf("read %d after a sync, %d was acknowledged before", got, i)
				}
			}
			if stale == 0 {
				t.Error("no read without a sync was stale, so this test shows nothing")
			}
			e.m(lags).slow(false, 0)
		}
	})
}

// A sync on a server that is cut off is not answered from its own state.
func TestEnsemble_SyncWithoutQuorum(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.startAll()
		leader, path := e.leader(), "/"
		alone, other := e.connect(leader, time.Minute), e.connect(e.followers()[0], time.Minute)
		other.call(1, proto.OpCreate, create{path: "/x"})
		e.m(leader).isolate(true)
		other.set("/x", 7) // answered by the next leader
		alone.request(1, proto.OpSync, &proto.PathRequest{Path: &path})
		alone.request(2, proto.OpGetData, &proto.PathWatchRequest{Path: "/x"})
		time.Sleep(3 * time.Second)
		e.m(leader).isolate(false)
		if h, _ := alone.reply(); h.Xid != 1 || h.Err != proto.OK {
			t.Errorf("%+v", h)
		}
		if _, d := alone.reply(); number(t, d) != 7 {
			t.Error("a stale read after a sync")
		}
	})
}

func TestEnsemble_LinearizableReads(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.each(func(c *server.Config) { c.LinearizableReads = true })
		e.startAll()
		lags := e.followers()[0]
		w, r := e.connect(e.leader(), time.Minute), e.connect(lags, time.Minute)
		w.call(1, proto.OpCreate, create{path: "/l"})
		e.m(lags).slow(true, 50*time.Millisecond)
		for i := range 20 {
			w.set("/l", i)
			if got := r.get("/l"); got != i {
				t.Errorf("read %d, %d was acknowledged before", got, i)
			}
		}
	})
}

// Watches fire on every member for a write on any member, once, and before a read on the same
// connection shows the change.
func TestEnsemble_Watches(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.startAll()
		leader := e.m(e.leader())
		w := e.connect(leader.id, time.Minute)
		w.call(1, proto.OpCreate, create{path: "/w"})
		w.set("/w", 0)
		var readers []*raw
		for id := 1; id <= 3; id++ {
			r := e.connect(id, time.Minute)
			r.sync()
			readers = append(readers, r)
		}
		const writes = 50
		done := make(chan struct{})
		go func() { // ends after its last write
			defer close(done)
			for i := 1; i <= writes; i++ {
				w.set("/w", i)
				if i == writes/2 {
					leader.isolate(true) // the next writes wait for it, and it for a new leader
					time.Sleep(time.Second)
					leader.isolate(false)
				}
			}
		}()
		var reading sync.WaitGroup
		for _, r := range readers {
			reading.Go(func() { r.watch("/w", writes) }) // ends with the last write
		}
		reading.Wait()
		<-done
	})
}

// watch reads a znode with a watch until it shows a number. Before each read that shows a change,
// exactly one event must have come.
func (r *raw) watch(path string, until int) {
	seen, watched, events := -1, false, 0
	for xid := int32(100); seen < until; xid++ {
		if _, err := r.nc.Write(frame(xid, proto.OpGetData, &proto.PathWatchRequest{Path: path, Watch: true})); err != nil {
			r.t.Error(err)
			return
		}
		for {
			b := r.tryRecv()
			if b == nil {
				r.t.Errorf("closed after %d events", events)
				return
			}
			d := jute.NewDecoder(b)
			var h proto.ReplyHeader
			h.Decode(&d)
			if h.Xid == proto.XidEvent {
				if !watched {
					r.t.Error("an event without a watch")
				}
				watched = false
				events++
				continue
			}
			got, err := strconv.Atoi(string(data(&d)))
			if err != nil || h.Xid != xid || got < seen || got != seen && watched {
				r.t.Errorf("xid %d: read %d after %d, watched %v; %v", h.Xid, got, seen, watched, err)
			}
			seen, watched = got, true
			break
		}
	}
	if events == 0 {
		r.t.Error("no events")
	}
}

// A read after a sync, or a linearizable read, does not see a later write of its own connection,
// and zxids do not decrease (V2, V5).
func TestEnsemble_WritesBehindSync(t *testing.T) {
	for _, linearizable := range []bool{false, true} {
		withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
			e.each(func(c *server.Config) { c.LinearizableReads = linearizable })
			e.startAll()
			c, path := e.connect(e.followers()[0], time.Minute), "/w"
			c.call(1, proto.OpCreate, create{path: path})
			c.set(path, -1)
			const n = 20
			var b []byte
			for i := range n {
				if !linearizable {
					b = append(b, frame(1, proto.OpSync, &proto.PathRequest{Path: &path})...)
				}
				b = append(b, frame(2, proto.OpGetData, &proto.PathWatchRequest{Path: path})...)
				b = append(b, frame(3, proto.OpSetData, &proto.SetDataRequest{Path: path, Data: strconv.AppendInt(nil, int64(i), 10), Version: -1})...)
			}
			if _, err := c.nc.Write(b); err != nil {
				t.Fatal(err)
			}
			var zxid proto.Zxid
			next := func(xid int32) *jute.Decoder {
				h, d := c.reply()
				if h.Xid != xid || h.Err != proto.OK || h.Zxid < zxid {
					t.Fatalf("%+v after zxid %v, want xid %d", h, zxid, xid)
				}
				zxid = h.Zxid
				return d
			}
			for i := range n {
				if !linearizable {
					next(1)
				}
				if got := number(t, next(2)); got != i-1 {
					t.Errorf("read %d between the writes of %d and %d", got, i-1, i)
				}
				next(3)
			}
		})
	}
}
