package server_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/server/facts"
)

// Long requests of clients that send at different speeds, some of which stop in the middle, hold no
// more bytes than they may together. All that are sent as a whole are answered, and short requests
// of others do not wait for them.
func TestLongFrames_ShareABudget(t *testing.T) {
	t.Parallel()
	const longest, patience = 200 << 10, 10 * time.Second
	cfg := ticks
	cfg.MaxBuffer, cfg.MaxClientConns = longest, -1
	for seed := range exhaustive.Or[uint64](4, 12) {
		serverBubble(t, cfg, func(t *testing.T, s *server.Server, dial func() *raw) {
			server.BoundWrites(s, longest)
			rng := rand.New(rand.NewPCG(seed, 0))
			dialed := func() *raw {
				c := dial()
				c.connect(3_600_000, 0, nil)
				return c
			}
			other := dialed()
			other.call(1, proto.OpCreate, create{path: "/z"})
			set := func(c *raw, bytes int) []byte {
				return frame(2, proto.OpSetData, &proto.SetDataRequest{Path: "/z", Data: make([]byte, bytes), Version: -1})
			}
			var mu sync.Mutex // guards most
			most := 0
			held := func() {
				mu.Lock()
				defer mu.Unlock()
				if most = max(most, server.HeldByLong(s)); most > longest {
					t.Errorf("seed %d: long requests hold %d bytes", seed, most)
				}
			}
			var whole, stopped sync.WaitGroup
			start := time.Now()
			n := 3 + rng.IntN(30)
			for range n {
				c, b := dialed(), set(nil, 20<<10+rng.IntN(longest-21<<10))
				piece, pause, stops := len(b)/(1+rng.IntN(6))+1, time.Duration(rng.IntN(1000))*time.Millisecond, rng.IntN(4) == 0
				if stops && len(b) > 40<<10 {
					stopped.Go(func() {
						_, _ = c.nc.Write(b[:len(b)*9/10])
						c.tryRecv() // closed because others wait, or after a minute
						_ = c.nc.Close()
					})
					continue
				}
				_ = c.nc.SetReadDeadline(time.Time{}) // connect has set one; fails if the connection is closed
				whole.Go(func() {
					for ; len(b) > 0; b = b[min(piece, len(b)):] {
						if _, err := c.nc.Write(b[:min(piece, len(b))]); err != nil {
							t.Errorf("seed %d: closed after %v: %v", seed, time.Since(start), err)
							return
						}
						held()
						time.Sleep(pause)
					}
					if b := c.next(); b == nil {
						t.Errorf("seed %d: no reply after %v", seed, time.Since(start))
					} else if h, _ := decodeReply(b); h.Err != proto.OK {
						t.Errorf("seed %d: %v", seed, h.Err)
					}
				})
			}
			othersGoOn(t, fmt.Sprint("seed ", seed), &whole, 50*time.Millisecond, func(xid int32) {
				other.call(xid, proto.OpCreate, create{path: fmt.Sprint("/z", xid)})
			})
			if took := time.Since(start); took > time.Duration(n)*patience {
				t.Errorf("seed %d: %d long requests took %v", seed, n, took)
			}
			stopped.Wait()
			if synctest.Wait(); server.HeldByLong(s) != 0 {
				t.Errorf("seed %d: in the end long requests hold %d bytes", seed, server.HeldByLong(s))
			}
			if most < longest/2 {
				t.Errorf("seed %d: long requests held only %d bytes, so this test shows nothing", seed, most)
			}
		})
	}
}

// besideStalled runs a server in a bubble whose long requests may hold 100 KiB together. A client
// has stopped in the middle of one, set, and f is called while it holds most of that.
func besideStalled(t *testing.T, cfg server.Config, f func(t *testing.T, dial func() *raw, stops *raw, set []byte)) {
	t.Helper()
	const longest = 100 << 10
	cfg.MaxBuffer = longest
	serverBubble(t, cfg, func(t *testing.T, s *server.Server, dial func() *raw) {
		server.BoundWrites(s, longest)
		set := frame(1, proto.OpSetData, &proto.SetDataRequest{Path: "/", Data: make([]byte, 90<<10), Version: -1})
		stops := dial()
		stops.connect(3_600_000, 0, nil)
		if _, err := stops.nc.Write(set[:80<<10]); err != nil { // the rest never comes
			t.Fatal(err)
		}
		synctest.Wait()
		f(t, dial, stops, set)
	})
}

// The session of a client whose long request waits for its turn lives, although nothing is read:
// others hold the places until they are disconnected for not sending on.
func TestLongFrames_WaitersAreAlive(t *testing.T) {
	cfg := ticks
	cfg.HandshakeTimeout = 30 * time.Second
	besideStalled(t, cfg, func(t *testing.T, dial func() *raw, stops *raw, set []byte) {
		waits := dial()
		waits.connect(6_000, 0, nil)
		waits.writeAll(set)
		if h, _ := waits.reply(); h.Err != proto.OK {
			t.Errorf("the request is answered with %v", h.Err)
		}
		if stops.recv() != nil {
			t.Error("the client that stops is not disconnected")
		}
		waits.ping()
	})
}

// Many long requests that wait for their turn do not exceed the memory of all clients: each holds
// little of its frame.
func TestLongFrames_ManyWaiters(t *testing.T) {
	cfg := ticks
	cfg.ClientMemory, cfg.MaxClientConns = 800<<10, -1
	besideStalled(t, cfg, func(t *testing.T, dial func() *raw, stops *raw, set []byte) {
		var waiters sync.WaitGroup
		for range 60 {
			c := dial()
			c.connect(3_600_000, 0, nil)
			_ = c.nc.SetReadDeadline(time.Time{}) // fails if the connection is closed
			waiters.Go(func() {
				if _, err := c.nc.Write(set); err != nil {
					t.Errorf("closed while its request waits: %v", err)
				} else if b := c.next(); b == nil {
					t.Error("no reply")
				}
			})
			synctest.Wait()
		}
		waiters.Wait()
		_ = stops.nc.Close()
	})
}

// A client that takes its replies slowly does not keep the place of a long request that waits for
// that, if others wait for a place.
func TestLongFrames_SlowReader(t *testing.T) {
	const longest, patience = 400 << 10, 10 * time.Second
	cfg := ticks
	cfg.MaxBuffer = longest
	serverBubble(t, cfg, func(t *testing.T, s *server.Server, dial func() *raw) {
		server.BoundWrites(s, longest)
		other, slow := dial(), dial()
		other.connect(3_600_000, 0, nil)
		slow.connect(3_600_000, 0, nil)
		other.call(1, proto.OpCreate, create{path: "/z"})
		slow.call(1, proto.OpAddWatch, &proto.AddWatchRequest{Path: "/z", Mode: proto.AddWatchPersistentRecursive})
		set := frame(2, proto.OpSetData, &proto.SetDataRequest{Path: "/z", Data: make([]byte, longest*3/4), Version: -1})
		if _, err := slow.nc.Write(set[:longest/4]); err != nil {
			t.Fatal(err)
		}
		xid := int32(1)
		events := func(n int) { // 8 KB each, which slow does not take
			for range n {
				xid++
				other.call(xid, proto.OpCreate, create{path: "/z/" + strings.Repeat("e", 8000) + fmt.Sprint(xid)})
			}
		}
		events(1)
		// The first write is this event alone. Without the wait it would have as many events as the
		// schedule lets come before it, and the others would not be sent by one more write.
		synctest.Wait()
		events(399)
		piece := make([]byte, 70_000)
		if _, err := io.ReadFull(slow.nc, piece); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // all other events are being sent
		events(60)      // more than may wait when a request is handled
		var taking sync.WaitGroup
		defer taking.Wait()
		taking.Go(func() {
			_, _ = slow.nc.Write(set[longest/4:])
			for slow.nc.SetReadDeadline(time.Now().Add(time.Minute)) == nil {
				if _, err := slow.nc.Read(piece); err != nil {
					return
				}
				time.Sleep(5 * time.Second)
			}
		})
		if synctest.Wait(); server.HeldByLong(s) < longest/2 {
			t.Fatal("the request of the slow client does not wait, so this test shows nothing")
		}
		_ = other.nc.SetReadDeadline(time.Time{})
		start := time.Now()
		if _, err := other.nc.Write(set); err != nil {
			t.Fatal(err)
		}
		if b := other.next(); b == nil || time.Since(start) > 2*patience {
			t.Errorf("a long request took %v", time.Since(start))
		}
		_ = slow.nc.Close()
	})
}

// While the state is full, a long create is refused by its head: it takes no memory and waits for
// no place, and gets its answer in its turn after its last byte. What may be refused for another
// reason, or may not grow the state, waits for a place and is left to the tree.
func TestLongFrames_RefusedByTheirHeads(t *testing.T) {
	const longest = 200 << 10
	cfg := ticks
	cfg.MaxBuffer = longest
	serverBubble(t, cfg, func(t *testing.T, s *server.Server, dial func() *raw) {
		server.BoundWrites(s, longest)
		c, stops := connected(dial), connected(dial)
		c.call(1, proto.OpCreate, create{path: "/p"})
		c.call(2, proto.OpCreate, create{path: "/paid"})
		c.budget("/paid", 0, longest/2)
		server.MakeFull(s)
		data, xid := make([]byte, longest-500), int32(10)
		of := func(op proto.OpCode, path string) []byte {
			xid++
			return frame(xid, op, &createRecord{proto.CreateRequest{Path: path, Data: data, ACL: proto.OpenACL(), Mode: proto.ModePersistentSequential}, op})
		}
		hold := func() {
			if _, err := stops.nc.Write(frame(1, proto.OpSetData, &proto.SetDataRequest{Path: "/p", Data: data})[:longest/2]); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		hold()
		held := server.HeldByLong(s)
		for _, piece := range []int{1000, 5000, 40 << 10, longest / 2, longest - 600, longest} {
			for _, op := range []proto.OpCode{proto.OpCreate, proto.OpCreate2} {
				b, start := of(op, "/p/new-"), time.Now()
				for last := len(b) - 1; last > 0; {
					n := min(piece, last)
					if _, err := c.nc.Write(b[:n]); err != nil {
						t.Fatal(err)
					}
					b, last = b[n:], last-n
					if synctest.Wait(); server.HeldByLong(s) != held {
						t.Fatalf("pieces of %d bytes: the create has a place", piece)
					}
				}
				_ = c.nc.SetReadDeadline(time.Now()) // fails if the connection is closed
				if c.next() != nil {
					t.Fatalf("pieces of %d bytes: an answer before the last byte", piece)
				}
				c.writeAll(append(append(b, frame(5, proto.OpExists, &proto.PathWatchRequest{Path: "/p"})...), of(op, "/p/other-")...))
				for i, want := range []proto.ErrCode{proto.ErrQuotaExceeded, proto.OK, proto.ErrQuotaExceeded} {
					if h, _ := c.reply(); h.Err != want || h.Xid != []int32{xid - 1, 5, xid}[i] {
						t.Fatalf("pieces of %d bytes: reply %d is %+v", piece, i, h)
					}
				}
				if took := time.Since(start); took > 9*time.Millisecond { // the pauses after two refusals
					t.Errorf("pieces of %d bytes: a create waited for %v", piece, took)
				}
			}
		}
		for what, other := range map[string]struct {
			b    []byte
			want proto.ErrCode
		}{
			"no parent": {of(proto.OpCreate, "/none/x"), proto.ErrNoNode},
			"a set":     {frame(0, proto.OpSetData, &proto.SetDataRequest{Path: "/p", Data: data, Version: -1}), proto.ErrQuotaExceeded},
			"a multi": {frame(0, proto.OpMulti, &proto.MultiRequest{Ops: []proto.MultiOp{
				{Op: proto.OpCreate, Path: "/p/x", Data: data, ACL: proto.OpenACL()},
				{Op: proto.OpDelete, Path: "/none", Version: -1}}}), proto.OK},
		} {
			start := time.Now()
			c.writeAll(other.b)
			if h, _ := c.reply(); h.Err != other.want || time.Since(start) == 0 {
				t.Errorf("%s: %v after %v", what, h.Err, time.Since(start))
			}
			if stops.recv() != nil {
				t.Error("a client that stops keeps its place")
			}
			stops = connected(dial)
			hold()
		}
		c.writeAll(of(proto.OpCreate, "/paid/new-"))
		if h, _ := c.reply(); h.Err != proto.ErrQuotaExceeded {
			t.Error(h)
		}
		if code, took := c.seek("/paid"); code != proto.OK || took == 0 {
			t.Errorf("the bytes that were left out cost nothing: %v after %v", code, took)
		}
	})
}

// createRecord is a record for frame.
type createRecord struct {
	proto.CreateRequest
	op proto.OpCode
}

func (c *createRecord) Append(b []byte) []byte { return c.CreateRequest.Append(b, c.op) }

// On a full server, long creates with paths of any length have their answers in order, hold no
// place afterwards, and leave the requests around them as they are.
func TestLongFrames_LongPathsOnFullServer(t *testing.T) {
	const longest = 200 << 10
	cfg := ticks
	cfg.MaxBuffer = longest
	serverBubble(t, cfg, func(t *testing.T, s *server.Server, dial func() *raw) {
		server.BoundWrites(s, longest)
		c, other := connected(dial), connected(dial)
		data := make([]byte, 100<<10)
		for i := range data {
			data[i] = byte(i >> 8)
		}
		other.call(1, proto.OpCreate, &createRecord{proto.CreateRequest{Path: "/z", Data: data, ACL: proto.OpenACL()}, proto.OpCreate})
		server.MakeFull(s)
		received := func() int64 {
			m := s.Facts().Monitor()
			return m[slices.IndexFunc(m, func(v facts.Value) bool { return v.Name == "bytes_received_count" })].Is.(int64)
		}
		xid := int32(10)
		for _, path := range []int{1, 16_330, 16_340, 16_350, 20 << 10, 30 << 10, 33 << 10, 35 << 10, 150 << 10} {
			for _, size := range []int{2 << 10, 24 << 10, 30 << 10, 40 << 10, 100 << 10} {
				create := &createRecord{proto.CreateRequest{
					Path: "/" + strings.Repeat("p", path), Data: data[:min(size, longest-path-100)], ACL: proto.OpenACL(),
				}, proto.OpCreate}
				var stream []byte
				for range 100 {
					stream = append(stream, frame(xid, proto.OpExists, &proto.PathWatchRequest{Path: "/z"})...)
				}
				stream = append(stream, frame(xid+1, proto.OpCreate, create)...)
				middle := len(stream) - len(create.Data)*9/10 // the path and some of the data have arrived
				stream = append(stream, frame(xid+2, proto.OpSetData, &proto.SetDataRequest{Path: "/z", Data: data, Version: -1})...)
				stream = append(stream, frame(xid+3, proto.OpSetData, &proto.SetDataRequest{Path: "/missing", Data: data, Version: -1})...)
				before := received()
				goOn := make(chan struct{})
				var sending sync.WaitGroup
				sending.Go(func() { // what is missing shows in the replies
					_, _ = c.nc.Write(stream[:middle])
					<-goOn
					_, _ = c.nc.Write(stream[middle:])
				})
				for i := range int32(103) {
					if i == 100 {
						synctest.Wait()
						close(goOn)
					}
					h, _ := c.reply()
					want, code := xid+max(0, i-99), []proto.ErrCode{proto.OK, proto.ErrQuotaExceeded, proto.OK, proto.ErrNoNode}[max(0, i-99)]
					if h.Xid != want || h.Err != code {
						t.Fatalf("a path of %d, data of %d bytes: reply %d has xid %d and %v, want %d and %v", path, size, i, h.Xid, h.Err, want, code)
					}
				}
				sending.Wait()
				if synctest.Wait(); server.HeldByLong(s) != 0 {
					t.Fatalf("a path of %d, data of %d bytes: long requests hold %d bytes", path, size, server.HeldByLong(s))
				}
				if got := received() - before; got != int64(len(stream)) {
					t.Errorf("a path of %d, data of %d bytes: %d bytes sent, %d counted", path, size, len(stream), got)
				}
				if _, d := other.call(xid, proto.OpGetData, &proto.PathWatchRequest{Path: "/z"}); !bytes.Contains(d.Rest(), data) {
					t.Fatalf("a path of %d, data of %d bytes: the next request wrote other data", path, size)
				}
				xid += 4
			}
		}
	})
}

// Of long writes that have arrived, few are under way at the same time, so that few are before a
// short write in the log. All are answered in order, and those of clients that are gone keep no
// others out.
func TestLongFrames_FewUnderWay(t *testing.T) {
	t.Parallel()
	var d disk
	cfg := onDisk(t, &d)
	serverBubble(t, cfg, func(t *testing.T, s *server.Server, dial func() *raw) {
		server.BoundWrites(s, 16<<20)
		const longest, n = 200_000, 12
		set := func(xid int32, path string) []byte {
			return frame(xid, proto.OpSetData, &proto.SetDataRequest{Path: path, Data: make([]byte, longest), Version: -1})
		}
		clients := make([]*raw, n)
		for i := range clients {
			clients[i] = dial()
			clients[i].connect(3_600_000, 0, nil)
			clients[i].call(1, proto.OpCreate, create{path: fmt.Sprint("/z", i)})
		}
		other := dial()
		other.connect(3_600_000, 0, nil)
		for round := range int32(3) {
			gone := dial()
			gone.connect(3_600_000, 0, nil)
			resume := d.stall()
			for i, c := range clients {
				c.writeAll(append(set(2+2*round, fmt.Sprint("/z", i)), frame(3+2*round, proto.OpExists, &proto.PathWatchRequest{Path: fmt.Sprint("/z", i)})...))
			}
			synctest.Wait()
			if got := server.UnderWay(s); got < 1 || got > 1<<20/longest {
				t.Errorf("%d of %d long writes are under way", got, n)
			}
			gone.writeAll(set(1, "/z0"))
			synctest.Wait()
			_ = gone.nc.Close()
			long := server.UnderWay(s)
			other.writeAll(frame(1+round, proto.OpCreate, create{path: fmt.Sprint("/short", round)}))
			if synctest.Wait(); server.UnderWay(s) != long+1 {
				t.Error("a short write waits for long ones that are not under way")
			}
			resume(nil)
			if h, _ := other.reply(); h.Err != proto.OK {
				t.Errorf("the short write: %v", h.Err)
			}
			for i, c := range clients {
				for xid := 2 + 2*round; xid <= 3+2*round; xid++ {
					if h, _ := c.reply(); h.Err != proto.OK || h.Xid != xid {
						t.Fatalf("client %d: reply to %d is %+v", i, xid, h)
					}
				}
			}
			if synctest.Wait(); server.HeldByLong(s) != 0 || server.UnderWay(s) != 0 {
				t.Errorf("in the end long requests hold %d bytes, %d writes are under way", server.HeldByLong(s), server.UnderWay(s))
			}
		}
	})
}

// A client that has entered the window, and does not take the replies to its earlier requests,
// leaves the window to others until it takes them.
func TestLongFrames_NotTakingReplies(t *testing.T) {
	t.Parallel()
	for op, body := range map[proto.OpCode]record{
		proto.OpSetData: &proto.SetDataRequest{Path: "/z", Data: make([]byte, 300_000), Version: -1},
		proto.OpMulti:   multi{{Op: proto.OpSetData, Path: "/z", Data: make([]byte, 300_000), Version: -1}},
	} {
		var d disk
		cfg := onDisk(t, &d)
		serverBubble(t, cfg, func(t *testing.T, s *server.Server, dial func() *raw) {
			server.BoundWrites(s, 16<<20)
			clients := make([]*raw, 16)
			for i := range clients {
				clients[i] = dial()
				clients[i].connect(3_600_000, 0, nil)
			}
			clients[0].call(1, proto.OpCreate, create{path: "/z"})
			clients[0].call(2, proto.OpCreate, create{path: "/large"})
			clients[0].call(3, proto.OpSetData, &proto.SetDataRequest{Path: "/large", Data: make([]byte, 900_000), Version: -1})
			resume := d.stall()
			for i, c := range clients {
				var b []byte
				if i >= len(clients)/2 { // it stops
					b = frame(3, proto.OpSetData, &proto.SetDataRequest{Path: "/z", Version: -1})
					for range 20 {
						b = append(b, frame(4, proto.OpGetData, &proto.PathWatchRequest{Path: "/large"})...)
					}
				}
				c.writeAll(append(b, frame(5, op, body)...))
			}
			synctest.Wait()
			resume(nil)
			start := time.Now()
			for round := range 3 {
				for i, c := range clients[:len(clients)/2] {
					if h, _ := c.reply(); h.Err != proto.OK {
						t.Fatalf("%v, round %d, client %d: %v", op, round, i, h.Err)
					}
					c.writeAll(frame(6, op, body))
				}
			}
			if took := time.Since(start); took > time.Second {
				t.Errorf("%v: others waited for %v", op, took)
			}
			for _, c := range clients {
				_ = c.nc.Close()
			}
		})
	}
}
