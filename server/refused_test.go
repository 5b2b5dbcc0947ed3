package server_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// What clients send to a full server without end, to be refused, costs it a bounded number of bytes
// and refusals. Nobody else waits; those who are refused delete and ping within a pause for each
// request before.
func TestRefused_Wait(t *testing.T) {
	t.Parallel()
	const (
		longest, clients, pipelined = 200 << 10, 8, 3
		length                      = 500 * time.Millisecond
		// More than a client can make before all send too many bytes.
		deletes = 400
	)
	cfg := ticks
	cfg.MaxBuffer, cfg.MaxClientConns = longest, -1
	long, short := make([]byte, longest-500), make([]byte, 100)
	creates := func(data []byte) record {
		return &createRecord{proto.CreateRequest{Path: "/p/new-", Data: data, ACL: proto.OpenACL(), Mode: proto.ModePersistentSequential}, proto.OpCreate}
	}
	for what, refused := range map[string][]byte{
		"long creates":  frame(1, proto.OpCreate, creates(long)),
		"short creates": frame(1, proto.OpCreate, creates(short)),
		"sets":          frame(1, proto.OpSetData, &proto.SetDataRequest{Path: "/p", Data: short, Version: -1}),
		"long sets":     frame(1, proto.OpSetData, &proto.SetDataRequest{Path: "/p", Data: long, Version: -1}),
	} {
		serverBubble(t, cfg, func(t *testing.T, s *server.Server, dial func() *raw) {
			other := connected(dial)
			other.call(1, proto.OpCreate, create{path: "/p"})
			for i := range clients {
				var ops []proto.MultiOp
				for j := range deletes {
					ops = append(ops, proto.MultiOp{Op: proto.OpCreate, Path: fmt.Sprintf("/p/%d-%d", i, j), ACL: proto.OpenACL()})
				}
				if h, _ := other.call(1, proto.OpMulti, &proto.MultiRequest{Ops: ops}); h.Err != proto.OK {
					t.Fatal(h.Err)
				}
			}
			server.MakeFull(s)
			sentBytes, begin := 0, time.Now()
			var mu sync.Mutex // guards sentBytes
			// The rate, and what each client may send before it is refused.
			most := int(64<<20*length.Seconds()) + clients*2*(pipelined+1)*(len(refused)+64<<10)
			var sending sync.WaitGroup
			for i := range clients {
				c := dial()
				c.connect(8_000, 0, nil)
				_ = c.nc.SetReadDeadline(time.Time{}) // fails if the connection is closed
				sending.Go(func() {
					for j := 0; time.Since(begin) < length; j++ {
						mu.Lock()
						sentBytes += pipelined * (len(refused) + 64<<10)
						over := sentBytes > most
						mu.Unlock()
						if over {
							t.Errorf("%s: more than %d bytes in %v", what, most, time.Since(begin))
							return
						}
						sent := time.Now()
						go func() { // ends when the server has read all, or with the pipe
							for range pipelined {
								_, _ = c.nc.Write(refused)
							}
							_, _ = c.nc.Write(frame(2, proto.OpDelete, &proto.PathVersionRequest{Path: fmt.Sprintf("/p/%d-%d", i, j), Version: -1}))
							_, _ = c.nc.Write(frame(proto.XidPing, proto.OpPing, nil))
						}()
						for n := range pipelined + 2 {
							want := proto.ErrQuotaExceeded
							if n >= pipelined { // the delete and the ping
								want = proto.OK
							}
							b := c.next()
							if b == nil {
								t.Errorf("%s: the connection is closed after %v", what, time.Since(begin))
								return
							}
							if h, _ := decodeReply(b); h.Err != want {
								t.Errorf("%s: reply %d is %+v", what, n, h)
							}
						}
						if took := time.Since(sent); took > pipelined*time.Second {
							t.Errorf("%s: a delete after %d of them took %v", what, pipelined, took)
						}
					}
				})
			}
			othersGoOn(t, what, &sending, 10*time.Millisecond, func(xid int32) {
				other.call(xid, proto.OpGetData, &proto.PathWatchRequest{Path: "/p"})
				other.call(xid, proto.OpDelete, &proto.PathVersionRequest{Path: "/missing", Version: -1})
			})
			if sentBytes < most/3 {
				t.Errorf("%s: only %d of %d bytes were sent, so this test shows nothing", what, sentBytes, most)
			}
		})
	}
}

// A full server closes the connection of a client whose session it refuses after a pause, so that
// clients that try again at once cost little.
func TestRefused_Sessions(t *testing.T) {
	t.Parallel()
	const kept, attempts = 1000, 50 // sessions for which a full state has room
	cfg := ticks
	cfg.MaxClientConns = -1
	serverBubble(t, cfg, func(t *testing.T, s *server.Server, dial func() *raw) {
		server.MakeFull(s)
		for range kept {
			connected(dial)
		}
		began := time.Now()
		for range attempts {
			c := dial()
			c.send((&proto.ConnectRequest{TimeoutMs: 40_000, Passwd: make([]byte, proto.PasswdBytes)}).Append(nil))
			if b := c.recv(); b != nil {
				t.Fatalf("a session beyond %d is answered with %x", kept, b)
			}
		}
		if took, least := time.Since(began), attempts*time.Second*(64<<10)/(64<<20); took < least || took > 2*least {
			t.Errorf("%d sessions are refused in %v, want %v", attempts, took, least)
		}
	})
}

// A client that must wait does not do so while a long frame of it has a place.
func TestRefused_HoldsNoPlace(t *testing.T) {
	const longest = 200 << 10
	var d disk
	cfg := onDisk(t, &d)
	cfg.MaxBuffer = longest
	serverBubble(t, cfg, func(t *testing.T, s *server.Server, dial func() *raw) {
		server.BoundWrites(s, longest)
		set := func(path string, bytes int) []byte {
			return frame(2, proto.OpSetData, &proto.SetDataRequest{Path: path, Data: make([]byte, bytes), Version: -1})
		}
		c, other := connected(dial), connected(dial)
		other.call(1, proto.OpCreate, create{path: "/short"})
		other.call(1, proto.OpCreate, create{path: "/long"})
		other.writeAll(set("/long", longest-100))
		if h, _ := other.reply(); h.Err != proto.OK {
			t.Fatal(h)
		}
		server.MakeFull(s)
		resume, long := d.stall(), set("/long", longest-200)
		if _, err := c.nc.Write(append(set("/short", 1000), long[:100<<10]...)); err != nil {
			t.Fatal(err)
		}
		if synctest.Wait(); server.HeldByLong(s) == 0 {
			t.Fatal("the second request has no place before the first is refused, so this test shows nothing")
		}
		resume(nil)
		synctest.Wait()
		sent := time.Now()
		c.writeAll(long[100<<10:])
		other.writeAll(set("/long", longest-300))
		if h, _ := other.reply(); h.Err != proto.OK || time.Since(sent) > 0 {
			t.Errorf("%v after %v: a client that must wait holds a place", h.Err, time.Since(sent))
		}
		for _, want := range []proto.ErrCode{proto.ErrQuotaExceeded, proto.OK} {
			if h, _ := c.reply(); h.Err != want {
				t.Errorf("%v, want %v", h.Err, want)
			}
		}
	})
}

// Requests of all kinds that are pipelined to a full server in pieces, with pauses in between, are
// answered in order, each as if it came alone, whatever was refused before. A client that leaves in
// the middle leaves nothing behind.
func TestRefused_Pipelines(t *testing.T) {
	const longest = 200 << 10
	cfg := ticks
	cfg.MaxBuffer = longest
	data := make([]byte, 100<<10)
	for i := range data {
		data[i] = byte(i >> 8)
	}
	exhaustive.Checks(t, 200, 2000)
	rapid.Check(t, func(rt *rapid.T) {
		serverBubble(t, cfg, func(t *testing.T, s *server.Server, dial func() *raw) {
			server.BoundWrites(s, longest)
			other := connected(dial)
			other.call(1, proto.OpCreate, &createRecord{proto.CreateRequest{Path: "/z", Data: data, ACL: proto.OpenACL()}, proto.OpCreate})
			other.call(1, proto.OpCreate, create{path: "/small"})
			server.MakeFull(s)
			c := connected(dial)
			size := rapid.OneOf(rapid.IntRange(0, 3000), rapid.IntRange(0, len(data)))
			var stream []byte
			var want []proto.ErrCode
			var stored [][]byte // what each get finds
			now, full := data, 0
			for i := range rapid.IntRange(1, 8).Draw(rt, "requests") {
				xid := int32(i)
				at := func(under string) record {
					path := under + strings.Repeat("p", rapid.SampledFrom([]int{1, 100, 16_340, 30 << 10, 60 << 10}).Draw(rt, "path"))
					return &createRecord{proto.CreateRequest{Path: path, Data: data[:size.Draw(rt, "data")], ACL: proto.OpenACL()}, proto.OpCreate}
				}
				set := func(path string, data []byte) []byte {
					return frame(xid, proto.OpSetData, &proto.SetDataRequest{Path: path, Data: data, Version: -1})
				}
				code, b := proto.OK, []byte(nil)
				switch rapid.IntRange(0, 6).Draw(rt, "kind") {
				case 0, 1:
					code, b = proto.ErrQuotaExceeded, frame(xid, proto.OpCreate, at("/"))
				case 2:
					code, b = proto.ErrNoNode, frame(xid, proto.OpCreate, at("/none/"))
				case 3:
					code, b = proto.ErrQuotaExceeded, set("/small", data[:2+size.Draw(rt, "grown")%(len(data)-2)])
				case 4:
					code, b = proto.ErrNoNode, frame(xid, proto.OpDelete, &proto.PathVersionRequest{Path: "/none", Version: -1})
				case 5:
					now = bytes.Repeat([]byte{byte(xid)}, len(data))
					b = set("/z", now)
				case 6:
					b = frame(xid, proto.OpGetData, &proto.PathWatchRequest{Path: "/z"})
				}
				if code == proto.ErrQuotaExceeded {
					full++
				}
				found := []byte(nil)
				if code == proto.OK && len(b) < 1000 {
					found = now
				}
				stream, want, stored = append(stream, b...), append(want, code), append(stored, found)
			}
			leaves := len(stream)
			if rapid.IntRange(0, 3).Draw(rt, "leaves early") == 0 {
				leaves = rapid.IntRange(0, len(stream)).Draw(rt, "after")
			}
			piece := len(stream)/rapid.IntRange(1, 30).Draw(rt, "pieces") + 1
			pause := time.Duration(rapid.IntRange(0, 20).Draw(rt, "pause")) * time.Millisecond
			var sending sync.WaitGroup
			sending.Go(func() { // ends with the stream, or with the connection
				for b := range slices.Chunk(stream[:leaves], piece) {
					if _, err := c.nc.Write(b); err != nil {
						return
					}
					time.Sleep(pause)
				}
				if leaves < len(stream) {
					_ = c.nc.Close()
				}
			})
			began := time.Now()
			for i, code := range want {
				b := c.tryRecv()
				if b == nil && leaves < len(stream) {
					break
				}
				if b == nil {
					t.Fatalf("no reply %d of %d", i, len(want))
				}
				h, d := decodeReply(b)
				if h.Xid != int32(i) || h.Err != code || stored[i] != nil && !bytes.Contains(d.Rest(), stored[i]) {
					t.Fatalf("reply %d is %+v, want %v", i, h, code)
				}
			}
			if took := time.Since(began) - 31*pause; took > time.Duration(full)*10*time.Millisecond {
				t.Errorf("%d refusals took %v", full, took)
			}
			sending.Wait()
			_ = c.nc.Close()
			if synctest.Wait(); server.HeldByLong(s) != 0 {
				t.Fatalf("long requests hold %d bytes", server.HeldByLong(s))
			}
			other.writeAll(frame(1, proto.OpSetData, &proto.SetDataRequest{Path: "/z", Data: data, Version: -1}))
			if h, _ := other.reply(); h.Err != proto.OK {
				t.Fatal(h)
			}
		})
	})
}
