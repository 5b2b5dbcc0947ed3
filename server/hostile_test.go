package server_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/confighook"
	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/server"
)

// A bad frame costs its own connection and nothing else (V6).
func TestHostileFrames(t *testing.T) {
	header := func(xid int32, op proto.OpCode) []byte { return (&proto.RequestHeader{Xid: xid, Op: op}).Append(nil) }
	frame := func(b []byte) []byte { return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...) }
	connect := (&proto.ConnectRequest{TimeoutMs: 5000}).Append(nil)
	for name, bad := range map[string]struct {
		handshake bool
		bytes     []byte
	}{
		"first frame of negative length":  {false, []byte{0xff, 0xff, 0xff, 0xff}},
		"first frame too long":            {false, []byte{0x7f, 0xff, 0xff, 0xff}},
		"first frame empty":               {false, frame(nil)},
		"connect request cut short":       {false, frame(connect[:20])},
		"connect request, passwd of -2":   {false, frame(append(connect[:24:24], 0xff, 0xff, 0xff, 0xfe))},
		"a request as the first frame":    {false, frame(header(1, proto.OpPing))},
		"telnet's goodbye":                {false, []byte{0xff, 0xf4, 0xff, 0xfd, 0x06}},
		"frame of negative length":        {true, []byte{0x80, 0, 0, 0}},
		"frame one longer than the limit": {true, []byte{0x00, 0x10, 0x00, 0x00}},
		"empty frame":                     {true, frame(nil)},
		"frame shorter than its header":   {true, frame(header(1, proto.OpPing)[:7])},
		"a four-letter word mid-session":  {true, []byte("ruok")},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, ticks, func(t *testing.T, dial func() *raw) {
				good, c := dial(), dial()
				good.connect(60_000, 0, nil)
				if bad.handshake {
					c.connect(60_000, 0, nil)
				}
				go func() { _, _ = c.nc.Write(bad.bytes) }() // ends when it is read, or with the pipe
				if b := c.recv(); b != nil {
					t.Errorf("answered with %x", b)
				}
				if h, _ := good.call(1, proto.OpCreate, create{path: "/x"}); h.Err != proto.OK {
					t.Errorf("another connection: %v", h.Err)
				}
				if !bad.handshake {
					return
				}
				again := dial() // the session is not affected
				if resp := again.connect(60_000, c.id, c.pass); resp.SessionID != c.id {
					t.Errorf("the session after its connection's bad frame: %+v", resp)
				}
			})
		})
	}
}

// A request for which the protocol has an error code is answered with it, and the connection stays
// open.
func TestMalformedBodies(t *testing.T) {
	bubble(t, ticks, func(t *testing.T, dial func() *raw) {
		c := dial()
		c.connect(60_000, 0, nil)
		xid := int32(0)
		for _, op := range []proto.OpCode{
			proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL, proto.OpDelete, proto.OpExists,
			proto.OpGetData, proto.OpSetData, proto.OpGetACL, proto.OpSetACL, proto.OpGetChildren, proto.OpGetChildren2,
			proto.OpSync, proto.OpMulti, proto.OpMultiRead, proto.OpCheckWatches, proto.OpRemoveWatches, proto.OpSetWatches,
			proto.OpSetWatches2, proto.OpGetEphemerals, proto.OpGetAllChildrenNumber, proto.OpAddWatch, proto.OpReconfig,
		} {
			for _, body := range [][]byte{{}, {0, 0, 0, 9, '/'}, {0x7f, 0xff, 0xff, 0xff}} {
				xid++
				h, d := c.call(xid, op, bytesRecord(body))
				if h.Err != proto.ErrMarshallingError || d.Remaining() != 0 {
					t.Errorf("%v with body %x: %v and %d more bytes", op, body, h.Err, d.Remaining())
				}
			}
		}
		if h, _ := c.call(1000, proto.OpDeleteContainer, &proto.PathRequest{}); h.Err != proto.ErrBadArguments {
			t.Errorf("deleteContainer from a client: %v", h.Err)
		}
		if h, _ := c.call(1001, proto.OpCreateTTL, create{path: "/boom", op: proto.OpCreateTTL, ttl: -5}); h.Err != proto.ErrBadArguments {
			t.Errorf("the request that kills ZooKeeper: %v", h.Err)
		}
		for _, op := range []proto.OpCode{77, proto.OpCheck, proto.OpNotification, proto.OpError, proto.OpCreateSession} {
			c := dial()
			c.connect(60_000, 0, nil)
			if h, _ := c.call(1, op, nil); h.Err != proto.ErrUnimplemented || h.Zxid != proto.NoZxid {
				t.Errorf("%v: %+v", op, h)
			}
			if c.recv() != nil {
				t.Errorf("%v: the connection is still open", op)
			}
		}
	})
}

type bytesRecord []byte

func (b bytesRecord) Append(p []byte) []byte { return append(p, b...) }

// The connection of a client that does not read its events is closed, and the server's memory stays
// bounded.
func TestSlowReader(t *testing.T) {
	cfg := ticks
	part := exhaustive.Or[int32](10, 1)
	cfg.MaxBuffer, cfg.ClientMemory = server.DefaultMaxBuffer/part, 64<<20/int64(part)
	bubble(t, cfg, func(t *testing.T, dial func() *raw) {
		lazy, busy := dial(), dial()
		lazy.connect(3_600_000, 0, nil)
		busy.connect(3_600_000, 0, nil)
		long := make([]byte, 900_000/part)
		for i := range long {
			long[i] = 'p'
		}
		path := "/" + string(long)
		busy.call(1, proto.OpCreate, create{path: path})
		if h, _ := lazy.call(1, proto.OpAddWatch, &proto.AddWatchRequest{Path: path}); h.Err != proto.OK {
			t.Fatal(h)
		}
		for i := range int32(100) {
			if h, _ := busy.call(2+i, proto.OpSetData, &proto.SetDataRequest{Path: path, Version: -1}); h.Err != proto.OK {
				t.Fatal(h)
			}
		}
		frames := 0
		for lazy.recvSome() {
			frames++
		}
		if frames > 80 {
			t.Errorf("%d events that exceed MaxBuffer were kept for a client that does not read", frames)
		}
		if h, _ := busy.call(500, proto.OpExists, &proto.PathWatchRequest{Path: path}); h.Err != proto.OK {
			t.Error(h)
		}
	})
}

// recvSome reads one frame, complete or not. It returns false when the connection is closed.
func (r *raw) recvSome() bool {
	if r.nc.SetReadDeadline(time.Now().Add(time.Minute)) != nil {
		return false
	}
	b := make([]byte, 1<<20)
	_, err := r.nc.Read(b)
	return err == nil
}

// Replies leave in the order of the requests, reads see the writes before them and none after them
// (V1, V2), zxids never decrease (V5).
func TestOrder(t *testing.T) {
	cfg := ticks
	cfg.Dir, cfg.LogDir = t.TempDir(), "/log"
	confighook.Of(&cfg).LogFS = vfstest.NewFaulty(vfstest.NewMem(), func(op vfstest.Op) error {
		if op.Kind == vfstest.OpSync {
			time.Sleep(time.Millisecond) // so that requests arrive while writes are unfinished
		}
		return nil
	})
	bubble(t, cfg, func(t *testing.T, dial func() *raw) {
		c := dial()
		c.connect(60_000, 0, nil)
		c.call(1, proto.OpCreate, create{path: "/o"})
		const n = 600
		// Ends when all is read by the server.
		go func() {
			for i := range int32(n) {
				var b []byte
				switch xid := 10 + i; i % 6 {
				case 0, 3:
					b = (&proto.SetDataRequest{Path: "/o", Data: binary.BigEndian.AppendUint32(nil, uint32(i)), Version: -1}).
						Append((&proto.RequestHeader{Xid: xid, Op: proto.OpSetData}).Append(nil))
				case 2:
					b = (&proto.PathRequest{}).Append((&proto.RequestHeader{Xid: xid, Op: proto.OpSync}).Append(nil))
				case 5:
					b = (&proto.RequestHeader{Xid: proto.XidPing, Op: proto.OpPing}).Append(nil)
				default:
					b = (&proto.PathWatchRequest{Path: "/o"}).Append((&proto.RequestHeader{Xid: xid, Op: proto.OpGetData}).Append(nil))
				}
				_, _ = c.nc.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
			}
		}()
		last, zxid := uint32(0), proto.Zxid(0)
		for i := range int32(n) {
			h, d := c.reply()
			want := 10 + i
			if i%6 == 5 {
				want = proto.XidPing
			}
			if h.Xid != want || h.Err != proto.OK {
				t.Fatalf("reply %d: %+v, want xid %d", i, h, want)
			}
			if h.Zxid < zxid {
				t.Fatalf("reply %d: zxid %v after %v", i, h.Zxid, zxid)
			}
			zxid = h.Zxid
			switch i % 6 {
			case 0, 3:
				last = uint32(i)
			case 1, 4:
				if got := binary.BigEndian.Uint32(data(d)); got != last {
					t.Fatalf("read %d shows write %d, want %d", i, got, last)
				}
			}
		}
	})
}

func data(d *jute.Decoder) []byte {
	var r proto.DataResponse
	r.Decode(d)
	return r.Data
}
