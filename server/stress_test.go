package server_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/confighook"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// frame is a whole request frame.
func frame(xid int32, op proto.OpCode, body record) []byte {
	b := (&proto.RequestHeader{Xid: xid, Op: op}).Append(make([]byte, 4))
	if body != nil {
		b = body.Append(b)
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// disk is a file system whose syncs can be stalled.
type disk struct {
	mu   sync.Mutex
	gate chan error // nil: syncs do not wait. Otherwise a sync receives its error from it
}

func (d *disk) fs() vfs.FS {
	return vfstest.NewFaulty(vfstest.NewMem(), func(op vfstest.Op) error {
		if op.Kind != vfstest.OpSync {
			return nil
		}
		d.mu.Lock()
		gate := d.gate
		d.mu.Unlock()
		if gate == nil {
			return nil
		}
		return <-gate
	})
}

// stall makes syncs wait until the function it returns is called with their error.
func (d *disk) stall() (resume func(error)) {
	gate := make(chan error, 1)
	d.mu.Lock()
	d.gate = gate
	d.mu.Unlock()
	return func(err error) {
		d.mu.Lock()
		d.gate = nil
		d.mu.Unlock()
		if err != nil {
			gate <- err
		}
		close(gate)
	}
}

func onDisk(t *testing.T, d *disk) server.Config {
	cfg := ticks
	cfg.Dir, cfg.LogDir, confighook.Of(&cfg).LogFS = t.TempDir(), "/log", d.fs()
	cfg.MaxClientConns, cfg.Words = -1, []string{"*"}
	return cfg
}

// writeAll writes b while the test goes on; it ends when the server has read all, or with the pipe.
func (r *raw) writeAll(b []byte) {
	go func() { _, _ = r.nc.Write(b) }()
}

// monitored returns a number of mntr, for which it uses the connection up.
func (r *raw) monitored(name string) (n int64) {
	r.t.Helper()
	r.writeAll([]byte("mntr"))
	all, err := io.ReadAll(r.nc)
	if err != nil {
		r.t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(all), name+"\t")
	if _, err := fmt.Sscan(rest, &n); err != nil || !found {
		r.t.Fatalf("no %s in %s", name, all)
	}
	return n
}

// Short reads that wait for a write can ask for any amount of replies. They are made as the client
// takes them.
func TestStalledDisk_RepliesAreBounded(t *testing.T) {
	t.Parallel()
	var d disk
	bubble(t, onDisk(t, &d), func(t *testing.T, dial func() *raw) {
		c, other := dial(), dial()
		c.connect(3_600_000, 0, nil)
		other.connect(3_600_000, 0, nil)
		c.call(1, proto.OpCreate, create{path: "/big"})
		c.call(2, proto.OpSetData, &proto.SetDataRequest{Path: "/big", Data: make([]byte, 1_000_000), Version: -1})
		resume := d.stall()
		b := frame(3, proto.OpCreate, create{path: "/stalled"})
		for i := range int32(200) {
			b = append(b, frame(4+i, proto.OpGetData, &proto.PathWatchRequest{Path: "/big"})...)
		}
		c.writeAll(b)
		synctest.Wait()
		resume(nil)
		synctest.Wait()
		if h, _ := other.call(1, proto.OpExists, &proto.PathWatchRequest{Path: "/stalled"}); h.Err != proto.OK {
			t.Error(h)
		}
		if unread := dial().monitored("zk_gozkd_client_memory_unread_bytes"); unread > 2<<20 {
			t.Errorf("%d bytes of 200 MB of replies wait for a client that reads none", unread)
		}
		for i := range int32(201) {
			if h, _ := c.reply(); h.Xid != 3+i || h.Err != proto.OK {
				t.Fatalf("reply %d: %+v", i, h)
			}
		}
	})
}

// Requests that wait for the disk hold a bounded number of bytes, per connection and in all.
func TestStalledDisk_RequestsAreBounded(t *testing.T) {
	t.Parallel()
	const mb = 1_000_000
	for name, test := range map[string]struct {
		conns   int
		bytes   int64
		request []byte
	}{
		"writes of one connection":     {1, 6 * mb, frame(2, proto.OpSetData, &proto.SetDataRequest{Path: "/w", Data: make([]byte, mb)})},
		"syncs of one connection":      {1, 6 * mb, frame(2, proto.OpSync, bytesRecord(append([]byte{0, 0x0f, 0x42, 0x40}, make([]byte, mb)...)))},
		"writes of many connections":   {20, (67 + 2*20) * mb, frame(2, proto.OpSetData, &proto.SetDataRequest{Path: "/w", Data: make([]byte, mb)})},
		"deletes with no bytes at all": {1, mb, frame(2, proto.OpDelete, &proto.PathVersionRequest{Path: "/w"})},
	} {
		t.Run(name, func(t *testing.T) {
			var d disk
			bubble(t, onDisk(t, &d), func(t *testing.T, dial func() *raw) {
				conns := make([]*raw, test.conns)
				for i := range conns {
					conns[i] = dial()
					conns[i].connect(3_600_000, 0, nil)
				}
				resume := d.stall()
				var taken atomic.Int64
				for _, c := range conns {
					b := append(frame(1, proto.OpCreate, create{path: "/w"}), bytes.Repeat(test.request, 2*mb*6/len(test.request)/min(test.conns, 2))...)
					// Ends with the pipe.
					go func() {
						for len(b) > 0 {
							n, err := c.nc.Write(b[:min(len(b), 4096)])
							taken.Add(int64(n))
							if err != nil {
								return
							}
							b = b[n:]
						}
					}()
				}
				synctest.Wait()
				if got := taken.Load(); got > test.bytes {
					t.Errorf("%d bytes were read while the disk stood still, at most %d were expected", got, test.bytes)
				}
				resume(nil)
			})
		})
	}
}

// Expensive requests wait until the queue is empty. Order and visibility are not affected (V1, V2).
func TestStalledDisk_HeavyReadsInOrder(t *testing.T) {
	var d disk
	bubble(t, onDisk(t, &d), func(t *testing.T, dial func() *raw) {
		c := dial()
		c.connect(60_000, 0, nil)
		c.call(1, proto.OpCreate, create{path: "/p"})
		resume := d.stall()
		var b []byte
		const n = 20
		for i := range int32(n) {
			b = append(b, frame(10+2*i, proto.OpCreate, create{path: fmt.Sprintf("/p/%d", i)})...)
			b = append(b, frame(11+2*i, proto.OpGetAllChildrenNumber, bytesRecord("\x00\x00\x00\x02/p"))...)
		}
		c.writeAll(b)
		synctest.Wait()
		resume(nil)
		for i := range int32(n) {
			if h, _ := c.reply(); h.Xid != 10+2*i || h.Err != proto.OK {
				t.Fatalf("write %d: %+v", i, h)
			}
			if h, d := c.reply(); h.Xid != 11+2*i || h.Err != proto.OK || d.Int() != i+1 {
				t.Fatalf("read %d: %+v, it does not show exactly the writes before it", i, h)
			}
		}
	})
}

// When the disk fails, no request that waited for it is answered, every connection is closed, and
// Close returns.
func TestDiskFails(t *testing.T) {
	var d disk
	broken := errors.New("broken disk")
	cfg := onDisk(t, &d)
	cfg.OutstandingLimit = 50
	bubble(t, cfg, func(t *testing.T, dial func() *raw) {
		writer, flooder, reader, attaching, silent := dial(), dial(), dial(), dial(), dial()
		for _, c := range []*raw{writer, flooder, reader} {
			c.connect(3_600_000, 0, nil)
		}
		reader.call(1, proto.OpExists, &proto.PathWatchRequest{Path: "/x", Watch: true})
		resume := d.stall()
		writer.request(1, proto.OpCreate, create{path: "/x"})
		writer.request(2, proto.OpGetData, &proto.PathWatchRequest{Path: "/x"})
		writer.request(3, proto.OpSync, &proto.PathRequest{})
		flooder.writeAll(bytes.Repeat(frame(1, proto.OpDelete, &proto.PathVersionRequest{Path: "/x"}), 100)) // waits for the limit of writes
		attaching.send((&proto.ConnectRequest{TimeoutMs: 5000}).Append(nil))
		synctest.Wait()
		resume(broken)
		for name, c := range map[string]*raw{
			"writer": writer, "flooder": flooder, "reader": reader, "in the handshake": attaching, "silent": silent,
		} {
			if b := c.recv(); b != nil {
				t.Errorf("%s got %x from a server whose disk had failed", name, b)
			}
		}
		if dial().recv() != nil {
			t.Error("served after the disk failed")
		}
	})
}

// A request that is being handled when the clock jumps says nothing of the time after the jump.
func TestMoveClock_DuringARequest(t *testing.T) {
	var d disk
	var clock jumping
	cfg := onDisk(t, &d)
	cfg.Now, cfg.OutstandingLimit = clock.now, 50
	serverBubble(t, cfg, func(t *testing.T, s *server.Server, dial func() *raw) {
		c := dial()
		c.connect(10_000, 0, nil)
		resume := d.stall()
		c.writeAll(bytes.Repeat(frame(1, proto.OpDelete, &proto.PathVersionRequest{Path: "/x"}), 100)) // waits for the limit of writes
		synctest.Wait()
		s.MoveClock(func() []int64 { clock.by.Add(int64(11 * time.Second)); return []int64{} })
		time.Sleep(ticks.Tick) // sessions are judged
		resume(nil)
		synctest.Wait()
		if err := s.ExpireDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := s.Facts().Sessions(); len(got) > 0 {
			t.Errorf("after the timeout there are %+v", got)
		}
	})
}

// A client that closes its session and then does not read must not keep its connection: there is no
// session that could expire.
func TestClosing_ClientDoesNotRead(t *testing.T) {
	bubble(t, ticks, func(t *testing.T, dial func() *raw) {
		c := dial()
		c.connect(60_000, 0, nil)
		c.writeAll(append(frame(1, proto.OpExists, &proto.PathWatchRequest{Path: "/"}), frame(2, proto.OpCloseSession, nil)...))
		refused := dial()
		refused.send((&proto.ConnectRequest{TimeoutMs: 5000, SessionID: 77, Passwd: make([]byte, 16)}).Append(nil))
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if c.recv() != nil || refused.recv() != nil {
			t.Error("open long after the end")
		}
	})
}

// The identities of a connection are bounded, because each write carries them into the log.
func TestAuth_IdentitiesAreBounded(t *testing.T) {
	bubble(t, ticks, func(t *testing.T, dial func() *raw) {
		c := dial()
		c.connect(60_000, 0, nil)
		for i := range 10_000 {
			h, _ := c.call(proto.XidAuth, proto.OpAuth, &proto.AuthRequest{Scheme: "digest", Auth: fmt.Appendf(nil, "user%d:secret", i)})
			switch {
			case h.Err == proto.OK:
				continue
			case h.Err != proto.ErrAuthFailed || i < 50:
				t.Errorf("identity %d: %v", i, h.Err)
			}
			if c.recv() != nil {
				t.Error("open after a failed authentication")
			}
			return
		}
		t.Error("10,000 identities were taken")
	})
}

// Data that came right before a connection broke counts: a session never expires early.
func TestExpiry_LastWordsCount(t *testing.T) {
	cfg := ticks
	cfg.Tick = 20 * time.Second // sessions are checked every 10 s
	bubble(t, cfg, func(t *testing.T, dial func() *raw) {
		c := dial()
		c.connect(30_000, 0, nil)
		time.Sleep(19 * time.Second)
		c.call(proto.XidPing, proto.OpPing, nil)
		_ = c.nc.Close()
		time.Sleep(29 * time.Second)
		if again := dial().connect(30_000, c.id, c.pass); again.SessionID != c.id {
			t.Error("a session with a timeout of 30 s was gone 29 s after a ping")
		}
	})
}

// during calls f once, in the goroutine that logs, at the first line that contains mark.
type during struct {
	mark string
	f    atomic.Pointer[func()]
}

func (d *during) Write(p []byte) (int, error) {
	if strings.Contains(string(p), d.mark) {
		if f := d.f.Swap(nil); f != nil {
			(*f)()
		}
	}
	return len(p), nil
}

// A client that re-attaches its session while the server is about to expire it keeps the session.
func TestExpiry_ReattachInBetween(t *testing.T) {
	hook := &during{mark: "session expires"}
	cfg := ticks
	cfg.Logger = hclog.New(&hclog.LoggerOptions{Output: hook, Level: hclog.Info})
	bubble(t, cfg, func(t *testing.T, dial func() *raw) {
		first, last := dial(), dial()
		first.connect(5000, 0, nil)
		last.connect(5000, 0, nil)
		_, _ = first.nc.Close(), last.nc.Close()
		back := make(chan *raw, 1)
		reattach := func() { // the first of two sessions expires
			c := dial()
			if resp := c.connect(60_000, last.id, last.pass); resp.SessionID != last.id {
				t.Error("the session was gone before it was closed")
			}
			back <- c
		}
		hook.f.Store(&reattach)
		c := <-back
		time.Sleep(time.Second)
		synctest.Wait()
		if h, _ := c.call(1, proto.OpExists, &proto.PathWatchRequest{Path: "/"}); h.Err != proto.OK {
			t.Error(h)
		}
	})
}

// Two connections compete for a session: one of them gets it in the end, and it works.
func TestReattach_Race(t *testing.T) {
	bubble(t, ticks, func(t *testing.T, dial func() *raw) {
		c := dial()
		c.connect(60_000, 0, nil)
		for range 50 {
			pair := []*raw{dial(), dial()}
			ping := frame(proto.XidPing, proto.OpPing, nil)
			for _, r := range pair {
				hello := (&proto.ConnectRequest{TimeoutMs: 60_000, SessionID: c.id, Passwd: c.pass}).Append(nil)
				r.writeAll(bytes.Join([][]byte{frameOf(hello), ping, ping}, nil))
			}
			synctest.Wait()
			alive := 0
			for _, r := range pair { // the loser may be closed before it was answered
				n := 0
				for ; n < 3 && r.recv() != nil; n++ {
				}
				if n == 3 {
					alive++
				}
			}
			if alive == 0 {
				t.Fatal("no connection has the session")
			}
			for _, r := range pair {
				_ = r.nc.Close()
			}
		}
		if h := dial().connect(60_000, c.id, c.pass); h.SessionID != c.id {
			t.Error("the session is gone")
		}
	})
}

func frameOf(b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

// A client has pipelined more reads than may wait between two writes, and never reads: after the
// first write the server waits for the client, so its session expires.
func TestStalledDisk_ClientHangs(t *testing.T) {
	var d disk
	bubble(t, onDisk(t, &d), func(t *testing.T, dial func() *raw) {
		c, other := dial(), dial()
		c.connect(10_000, 0, nil)
		other.connect(3_600_000, 0, nil)
		c.call(1, proto.OpCreate, create{path: "/e", mode: proto.ModeEphemeral})
		c.call(2, proto.OpCreate, create{path: "/big"})
		c.call(3, proto.OpSetData, &proto.SetDataRequest{Path: "/big", Data: make([]byte, 1_000_000), Version: -1})
		resume := d.stall()
		b := frame(4, proto.OpSetData, &proto.SetDataRequest{Path: "/e", Version: -1})
		for i := range int32(1100) {
			b = append(b, frame(5+i, proto.OpGetData, &proto.PathWatchRequest{Path: "/big"})...)
		}
		c.writeAll(append(b, frame(2000, proto.OpSetData, &proto.SetDataRequest{Path: "/e", Version: -1})...))
		synctest.Wait()
		resume(nil)
		for range 60 {
			time.Sleep(time.Second)
			if h, _ := other.call(1, proto.OpExists, &proto.PathWatchRequest{Path: "/e"}); h.Err == proto.ErrNoNode {
				return
			}
		}
		t.Error("the session lives a minute after its client has stopped reading")
	})
}

// Lists between two writes are answered, however long they are together.
func TestStalledDisk_ListsBetweenWrites(t *testing.T) {
	var d disk
	bubble(t, onDisk(t, &d), func(t *testing.T, dial func() *raw) {
		c := dial()
		c.connect(3_600_000, 0, nil)
		c.call(1, proto.OpCreate, create{path: "/p"})
		for i := range int32(60) {
			c.call(2+i, proto.OpCreate, create{path: fmt.Sprintf("/p/%01000d", i)})
		}
		resume := d.stall()
		b := frame(100, proto.OpSetData, &proto.SetDataRequest{Path: "/p", Version: -1})
		for i := range int32(100) {
			b = append(b, frame(101+i, proto.OpGetChildren, &proto.PathWatchRequest{Path: "/p"})...)
		}
		c.writeAll(append(b, frame(201, proto.OpSetData, &proto.SetDataRequest{Path: "/p", Version: -1})...))
		synctest.Wait()
		resume(nil)
		for i := range int32(102) {
			if h, _ := c.reply(); h.Xid != 100+i || h.Err != proto.OK {
				t.Fatalf("reply %d: %+v", i, h)
			}
		}
	})
}
