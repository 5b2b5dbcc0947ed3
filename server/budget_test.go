package server_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/confighook"
	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// littleMemory lets all clients together hold 512 KiB.
func littleMemory() server.Config {
	cfg := ticks
	cfg.MaxBuffer, cfg.ClientMemory, cfg.MaxClientConns = 64<<10, 512<<10, -1
	return cfg
}

const slowClients = "gozkd_slow_clients_closed_total"

// holds returns what clients hold when nothing is under way, and checks the sums.
func holds(t *testing.T, s *server.Server) (unread, queued int64) {
	t.Helper()
	synctest.Wait()
	unread, queued, err := server.ClientMemory(s)
	if err != nil {
		t.Error(err)
	}
	return unread, queued
}

// Clients that do not read their events are disconnected when the memory of all clients is used up.
// A client that reads the same events stays connected, and all memory is given back.
func TestClientMemory_WatchersThatDoNotRead(t *testing.T) {
	cfg := littleMemory()
	cfg.ClientMemory = 2 << 20
	serverBubble(t, cfg, func(t *testing.T, s *server.Server, dial func() *raw) {
		path := "/" + strings.Repeat("p", 30_000)
		writer, reader := dial(), dial()
		writer.connect(3_600_000, 0, nil)
		writer.call(1, proto.OpCreate, create{path: path})
		reader.connect(3_600_000, 0, nil)
		reader.call(1, proto.OpAddWatch, &proto.AddWatchRequest{Path: path})
		var lazy []*raw
		for range 20 {
			c := dial()
			c.connect(3_600_000, 0, nil)
			c.call(1, proto.OpAddWatch, &proto.AddWatchRequest{Path: path})
			lazy = append(lazy, c)
		}
		for i := range int32(80) {
			if h, _ := writer.call(2+i, proto.OpSetData, &proto.SetDataRequest{Path: path, Version: -1}); h.Err != proto.OK {
				t.Fatal(h)
			}
			if _, e := reader.event(); e.Type != proto.EventDataChanged {
				t.Fatal(e)
			}
			if unread, _ := holds(t, s); unread > cfg.ClientMemory {
				t.Fatalf("after write %d clients hold %d bytes, allowed are %d", i, unread, cfg.ClientMemory)
			}
			time.Sleep(time.Millisecond)
		}
		if n := counted(s)[slowClients]; n != 20 {
			t.Errorf("%d of 20 clients that do not read were disconnected", n)
		}
		if h, _ := reader.call(100, proto.OpExists, &proto.PathWatchRequest{Path: path}); h.Err != proto.OK {
			t.Error(h)
		}
		for _, c := range lazy {
			_ = c.nc.Close()
		}
		if unread, queued := holds(t, s); unread != 0 || queued != 0 {
			t.Errorf("%d and %d bytes are held at the end", unread, queued)
		}
	})
}

// Clients that read are not disconnected if a single transaction makes more output for them than
// all clients may hold: the output is offered to their sockets first.
func TestClientMemory_OneTransactionForManyReaders(t *testing.T) {
	cfg := littleMemory()
	s := start(t, cfg)
	dial := func() *raw {
		nc, err := net.Dial("tcp", s.ConnectString())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = nc.Close() })
		c := &raw{t: t, nc: nc}
		c.connect(30_000, 0, nil)
		return c
	}
	const events, watchers = 20, 40
	path := "/" + strings.Repeat("p", 1000)
	writer := dial()
	writer.call(1, proto.OpCreate, create{path: path})
	ops := make([]proto.MultiOp, events)
	for i := range ops {
		ops[i] = proto.MultiOp{Op: proto.OpSetData, Path: path, Version: -1}
	}
	var reading sync.WaitGroup
	defer reading.Wait()
	for range watchers {
		c := dial()
		c.call(1, proto.OpAddWatch, &proto.AddWatchRequest{Path: path})
		// Ends after the events, or with the connection.
		reading.Go(func() {
			for i := range events {
				if c.tryRecv() == nil {
					t.Errorf("disconnected after %d of %d events", i, events)
					return
				}
			}
		})
	}
	if h, _ := writer.call(2, proto.OpMulti, &proto.MultiRequest{Ops: ops}); h.Err != proto.OK {
		t.Error(h)
	}
	reading.Wait()
	if n := counted(s)[slowClients]; n != 0 {
		t.Errorf("%d clients were disconnected as slow", n)
	}
}

// Frames that their clients do not finish are part of the memory of all clients: the oldest are
// given up, the others can still be finished.
func TestClientMemory_PartialFrames(t *testing.T) {
	serverBubble(t, littleMemory(), func(t *testing.T, s *server.Server, dial func() *raw) {
		set := frame(1, proto.OpSetData, &proto.SetDataRequest{Path: "/none", Data: make([]byte, 25_000), Version: -1})
		var clients []*raw
		for range 30 {
			c := dial()
			c.connect(3_600_000, 0, nil)
			if _, err := c.nc.Write(set[:20_000]); err != nil {
				t.Fatal(err)
			}
			clients = append(clients, c)
			time.Sleep(time.Millisecond)
		}
		if unread, _ := holds(t, s); unread > 512<<10 || unread < 256<<10 {
			t.Errorf("%d bytes are held", unread)
		}
		closed := counted(s)[slowClients]
		if closed < 11 || closed > 16 {
			t.Errorf("%d connections were closed, of 30 that hold 25 kB each", closed)
		}
		for i, c := range clients {
			if _, err := c.nc.Write(set[20_000:]); err != nil {
				if i >= int(closed) {
					t.Errorf("client %d is not one of the %d oldest: %v", i, closed, err)
				}
				continue
			}
			if h, _ := c.reply(); h.Err != proto.ErrNoNode {
				t.Errorf("client %d: %v", i, h.Err)
			}
		}
		if unread, queued := holds(t, s); unread != 0 || queued != 0 {
			t.Errorf("%d and %d bytes are held when all frames are complete", unread, queued)
		}
	})
}

// Connections with a part of a connect request hold little memory, and end with the time of a
// handshake. A connect request that is far longer than any client's is refused.
func TestClientMemory_Handshakes(t *testing.T) {
	cfg := ticks
	cfg.MaxClientConns = -1
	serverBubble(t, cfg, func(t *testing.T, s *server.Server, dial func() *raw) {
		part := append([]byte{0, 0, 3, 0xe8}, make([]byte, 900)...) // of 1000 bytes
		const n = 50
		var clients []*raw
		for range n {
			c := dial()
			if _, err := c.nc.Write(part); err != nil {
				t.Fatal(err)
			}
			clients = append(clients, c)
		}
		if unread, _ := holds(t, s); unread > n<<10 {
			t.Errorf("%d bytes are held for %d handshakes", unread, n)
		}
		long := dial()
		if _, err := long.nc.Write([]byte{0, 0, 4, 0}); err != nil {
			t.Fatal(err)
		}
		if b := long.recv(); b != nil {
			t.Errorf("%x", b)
		}
		time.Sleep(11 * time.Second)
		if unread, queued := holds(t, s); unread != 0 || queued != 0 {
			t.Errorf("%d and %d bytes are held after the time of a handshake", unread, queued)
		}
		for _, c := range clients {
			if c.recvSome() {
				t.Error("still connected")
			}
		}
	})
}

// Requests that come together with the connect request are answered, whatever their length.
func TestHandshake_RequestsBehindIt(t *testing.T) {
	bubble(t, ticks, func(t *testing.T, dial func() *raw) {
		for _, size := range []int{0, 900, 5000, 100_000} {
			c := dial()
			b := frameOf((&proto.ConnectRequest{TimeoutMs: 40_000}).Append(nil))
			for xid := range int32(3) {
				b = append(b, frame(1+xid, proto.OpSetData, &proto.SetDataRequest{Path: "/none", Data: make([]byte, size), Version: -1})...)
			}
			go func() { _, _ = c.nc.Write(b) }() // ends when all is read, or with the pipe
			if c.recv() == nil {
				t.Fatal("not connected")
			}
			for xid := range int32(3) {
				if h, _ := c.reply(); h.Xid != 1+xid || h.Err != proto.ErrNoNode {
					t.Errorf("requests of %d bytes, reply %d: %+v", size, xid, h)
				}
			}
		}
	})
}

// While the disk hangs, the requests that clients may queue are bounded in all, and nobody is
// disconnected for it.
func TestClientMemory_QueuesBehindAHungDisk(t *testing.T) {
	var stall atomic.Bool
	cfg := littleMemory()
	cfg.ClientMemory = 16 << 20
	cfg.Dir, cfg.SyncWarning = t.TempDir(), time.Hour
	confighook.Of(&cfg).LogFS = vfstest.NewFaulty(vfs.OS{}, func(op vfstest.Op) error {
		if op.Kind == vfstest.OpSync && stall.CompareAndSwap(true, false) {
			time.Sleep(20 * time.Second) // the bubble's time
		}
		return nil
	})
	serverBubble(t, cfg, func(t *testing.T, s *server.Server, dial func() *raw) {
		const reads, n = 1000, 10
		path := "/" + strings.Repeat("p", 2000)
		pipelined := frame(1, proto.OpSetData, &proto.SetDataRequest{Path: "/none", Version: -1})
		for i := range int32(reads) {
			pipelined = append(pipelined, frame(2+i, proto.OpExists, &proto.PathWatchRequest{Path: path})...)
		}
		var clients []*raw
		for range n {
			c := dial()
			c.connect(3_600_000, 0, nil)
			clients = append(clients, c)
		}
		stall.Store(true)
		var work sync.WaitGroup
		defer work.Wait()
		for _, c := range clients {
			work.Go(func() { _, _ = c.nc.Write(pipelined) }) // ends when all is read
			work.Go(func() {                                 // ends after the replies, or with the connection
				for i := range 1 + reads {
					if c.tryRecv() == nil {
						t.Errorf("disconnected after %d replies", i)
						return
					}
				}
			})
		}
		time.Sleep(10 * time.Second)
		if _, queued := holds(t, s); queued > 12<<20 {
			t.Errorf("%d bytes are queued", queued)
		}
		work.Wait()
		if unread, queued := holds(t, s); unread != 0 || queued != 0 {
			t.Errorf("%d and %d bytes are held at the end", unread, queued)
		}
	})
}

// Whatever clients do, the counters are the sums of what the connections hold, the unread bytes
// stay within the bound, and nothing is held in the end.
func TestClientMemory_Sums(t *testing.T) {
	exhaustive.Checks(t, 20, 300)
	type step struct {
		client, size int
		what         string
	}
	const nClients = 6
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
			return step{
				rapid.IntRange(0, nClients-1).Draw(t, "client"), rapid.IntRange(0, 60_000).Draw(t, "size"),
				rapid.SampledFrom([]string{"connect", "watch", "set", "set", "get", "get", "bytes", "read", "wait", "close"}).Draw(t, "what"),
			}
		}), 1, 60).Draw(rt, "steps")
		cfg, wrong := littleMemory(), ""
		serverBubble(t, cfg, func(t *testing.T, s *server.Server, dial func() *raw) {
			writer := dial()
			writer.connect(3_600_000, 0, nil)
			writer.call(1, proto.OpCreate, create{path: "/a"})
			var clients [nClients]*raw
			for i, st := range steps {
				c := clients[st.client]
				if c != nil && (st.what == "connect" || st.what == "close") {
					_ = c.nc.Close()
					c = nil
				}
				if c == nil {
					c = dial()
					c.connect(3_600_000, 0, nil)
					clients[st.client] = c
				}
				var b []byte
				switch st.what {
				case "watch":
					b = frame(1, proto.OpAddWatch, &proto.AddWatchRequest{Path: "/a"})
				case "set":
					b = frame(2, proto.OpSetData, &proto.SetDataRequest{Path: "/a", Data: make([]byte, st.size), Version: -1})
				case "get":
					b = bytes.Repeat(frame(3, proto.OpGetData, &proto.PathWatchRequest{Path: "/a"}), 1+st.size/2000)
				case "bytes": // a part of a frame, or nonsense in the middle of one
					b = append([]byte{0, 0, 0xff, 0}, make([]byte, st.size)...)
				case "read":
					_ = c.nc.SetReadDeadline(time.Now().Add(time.Millisecond))
					_, _ = io.CopyN(io.Discard, c.nc, 4*int64(st.size))
				case "wait":
					time.Sleep(time.Duration(st.size) * time.Microsecond)
				}
				_ = c.nc.SetWriteDeadline(time.Now().Add(time.Millisecond))
				_, _ = c.nc.Write(b) // in part if the server does not read
				unread, _ := holds(t, s)
				if t.Failed() || unread > cfg.ClientMemory {
					wrong = fmt.Sprintf("step %d, %+v: %d bytes are held", i, st, unread)
					return
				}
			}
			for _, c := range clients {
				if c != nil {
					_ = c.nc.Close()
				}
			}
			time.Sleep(time.Second)
			if unread, queued := holds(t, s); unread != 0 || queued != 0 {
				wrong = fmt.Sprintf("%d and %d bytes are held in the end", unread, queued)
			}
		})
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

// The clients with most watches are disconnected when the watches of all exceed their memory. A
// client with few stays, and may add more.
func TestWatchMemory(t *testing.T) {
	cfg := littleMemory()
	cfg.WatchMemory = 1 << 20
	serverBubble(t, cfg, func(t *testing.T, s *server.Server, dial func() *raw) {
		few := dial()
		few.connect(3_600_000, 0, nil)
		few.call(1, proto.OpExists, &proto.PathWatchRequest{Path: "/few", Watch: true})
		for range 3 {
			c := dial()
			c.connect(3_600_000, 0, nil)
			for i := range int32(3000) { // 3000 times 1,160 bytes
				path := fmt.Sprintf("/%0999d", i)
				if !c.exchanged(frame(1+i, proto.OpExists, &proto.PathWatchRequest{Path: path, Watch: true})) {
					break
				}
				if i == 2999 {
					t.Error("3 MB of watches are held")
				}
			}
		}
		synctest.Wait()
		counts := counted(s)
		if n, held := counts["gozkd_watching_clients_closed_total"], counts["gozkd_watch_memory_bytes"]; n != 3 || held > cfg.WatchMemory {
			t.Errorf("%d of 3 clients were disconnected, the others hold %d bytes", n, held)
		}
		if h, _ := few.call(2, proto.OpExists, &proto.PathWatchRequest{Path: "/few2", Watch: true}); h.Err != proto.ErrNoNode {
			t.Error(h)
		}
	})
}

// exchanged sends a frame and reports whether a frame came back.
func (r *raw) exchanged(b []byte) bool {
	if _, err := r.nc.Write(b); err != nil {
		return false
	}
	return r.tryRecv() != nil
}
