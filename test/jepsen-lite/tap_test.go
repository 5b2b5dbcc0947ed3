package jepsenlite

import (
	"io"
	"net"
	"reflect"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/rawclient"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// tapped returns a tapped connection and the server's end of it, past the handshake: session 7, a
// timeout of a second.
func tapped(t *testing.T) (*tap, net.Conn, *Recorder) {
	t.Helper()
	near, far := net.Pipe()
	rec := NewRecorder()
	c := newTap(near, rec, "set-0", 2)
	t.Cleanup(func() {
		_ = c.Close()
		_ = far.Close()
	})
	pass(t, c, far, rawclient.AppendFrame(nil, (&proto.ConnectRequest{Passwd: make([]byte, proto.PasswdBytes)}).Append(nil)))
	resp := proto.ConnectResponse{TimeoutMs: 1000, SessionID: 7, Passwd: make([]byte, proto.PasswdBytes)}
	pass(t, far, c, rawclient.AppendFrame(nil, resp.Append(nil)))
	return c, far, rec
}

// pass writes b at one end and reads it at the other, a few bytes at a time.
func pass(t *testing.T, from io.Writer, to io.Reader, b []byte) {
	t.Helper()
	wrote := make(chan error, 1)
	go func() {
		_, err := from.Write(b)
		wrote <- err
	}()
	for got := 0; got < len(b); {
		n, err := to.Read(make([]byte, min(7, len(b)-got)))
		if err != nil {
			t.Fatal(err)
		}
		got += n
	}
	if err := <-wrote; err != nil {
		t.Fatal(err)
	}
}

// frame is a frame with a reply.
func frame(xid int32, zxid proto.Zxid, code proto.ErrCode, body []byte) []byte {
	return rawclient.AppendFrame(nil, append((&proto.ReplyHeader{Xid: xid, Zxid: zxid, Err: code}).Append(nil), body...))
}

func TestTap_RecordsWhatPasses(t *testing.T) {
	c, far, rec := tapped(t)
	path := "/a"
	get := (&proto.PathWatchRequest{Path: path, Watch: true}).Append(nil)
	sync := (&proto.PathRequest{Path: &path}).Append(nil)
	set := (&proto.SetDataRequest{Path: path, Data: []byte("new"), Version: 3}).Append(nil)
	requests := rawclient.AppendRequest(nil, 1, proto.OpSync, sync)
	requests = rawclient.AppendRequest(requests, 2, proto.OpGetData, get)
	requests = rawclient.AppendRequest(requests, 3, proto.OpSetData, set)
	requests = rawclient.AppendRequest(requests, 4, proto.OpGetData, get)
	pass(t, c, far, requests)
	pass(t, far, c, frame(1, 10, proto.OK, sync))
	pass(t, far, c, frame(2, 10, proto.OK, (&proto.DataResponse{Data: []byte("old"), Stat: proto.Stat{Mzxid: 9}}).Append(nil)))
	event := proto.WatcherEvent{Type: proto.EventDataChanged, State: proto.StateConnected, Path: path}
	pass(t, far, c, frame(-1, -1, proto.OK, event.Append(nil)))
	pass(t, far, c, frame(3, 11, proto.ErrBadVersion, nil))
	if err := far.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Fatal("read from a closed connection")
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	h := rec.Take()
	for i, r := range h {
		if r.Seq != int64(i+1) || r.Conn != 1 || r.Session != 7 || r.Member != 2 || r.Client != "set-0" {
			t.Errorf("record %+v", r)
		}
	}
	type summary struct {
		kind, path, data, got, why string
		op                         proto.OpCode
		number                     int
		err                        proto.ErrCode
		zxid                       proto.Zxid
		answered, synced, watch    bool
	}
	var got []summary
	for _, r := range h {
		s := summary{kind: r.Kind, path: r.Path(), op: r.Op, number: r.Number, err: r.Err, zxid: r.Zxid, answered: r.Answered(),
			synced: r.Synced != 0, watch: r.Watch, why: r.Why}
		if len(r.Parts) > 0 {
			s.data, s.got = r.Parts[0].Data, r.Parts[0].Got
		}
		got = append(got, s)
	}
	want := []summary{
		{kind: KindOpen},
		{kind: KindReply, path: path, op: proto.OpSync, number: 1, zxid: 10, answered: true},
		{kind: KindReply, path: path, op: proto.OpGetData, number: 2, zxid: 10, answered: true, synced: true, watch: true, got: "old"},
		{kind: KindEvent, path: path, zxid: -1},
		{kind: KindReply, path: path, op: proto.OpSetData, number: 3, zxid: 11, answered: true, err: proto.ErrBadVersion, data: "new"},
		{kind: KindReply, path: path, op: proto.OpGetData, number: 4, watch: true},
		{kind: KindClose, why: WhyServer},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if h[0].Timeout != time.Second {
		t.Errorf("a timeout of %v", h[0].Timeout)
	}
	if sync, read := h[1], h[2]; read.Synced != sync.Call || read.Call > read.Return {
		t.Errorf("times of %+v and %+v", sync, read)
	}
}

// After a refusal one frame without a request may come: why the session ended. It is that of the
// session for which the client has asked.
func TestTap_Story(t *testing.T) {
	refusal := rawclient.AppendFrame(nil, (&proto.ConnectResponse{Passwd: make([]byte, proto.PasswdBytes)}).Append(nil))
	granted := rawclient.AppendFrame(nil, (&proto.ConnectResponse{TimeoutMs: 1000, SessionID: 0x10, Passwd: make([]byte, proto.PasswdBytes)}).Append(nil))
	body := func(text string) []byte { return jute.AppendBuffer(nil, []byte(text)) }
	story := frame(pingXid, 0, proto.OK, body(`{"session":"0x10","how":"expired"}`))
	for name, c := range map[string]struct {
		answer []byte
		frames [][]byte
		want   int // replies without a request
	}{
		"a story":         {refusal, [][]byte{story}, 0},
		"two":             {refusal, [][]byte{story, story}, 1},
		"not refused":     {granted, [][]byte{story}, 1},
		"another session": {refusal, [][]byte{frame(pingXid, 0, proto.OK, body(`{"session":"0x11"}`))}, 1},
		"no text":         {refusal, [][]byte{frame(pingXid, 0, proto.OK, nil)}, 1},
		"no JSON":         {refusal, [][]byte{frame(pingXid, 0, proto.OK, body(`0x10`))}, 1},
		"bytes after it":  {refusal, [][]byte{frame(pingXid, 0, proto.OK, append(body(`{"session":"0x10"}`), 0))}, 1},
		"a zxid":          {refusal, [][]byte{frame(pingXid, 1, proto.OK, body(`{"session":"0x10"}`))}, 1},
		"another xid":     {refusal, [][]byte{frame(1, 0, proto.OK, body(`{"session":"0x10"}`))}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := net.Pipe()
			rec := NewRecorder()
			tap := newTap(near, rec, "set-0", 2)
			defer func() { _, _ = tap.Close(), far.Close() }() // nothing is read any more
			claim := proto.ConnectRequest{SessionID: 0x10, Passwd: make([]byte, proto.PasswdBytes)}
			pass(t, tap, far, rawclient.AppendFrame(nil, claim.Append(nil)))
			pass(t, far, tap, c.answer)
			for _, f := range c.frames {
				pass(t, far, tap, f)
			}
			replies := 0
			for _, r := range rec.Take() {
				if r.Answered() && r.Number == 0 {
					replies++
				}
			}
			if replies != c.want {
				t.Errorf("%d replies without a request, want %d", replies, c.want)
			}
		})
	}
}

func TestTap_Multi(t *testing.T) {
	for name, c := range map[string]struct {
		results []proto.MultiResult
		want    proto.ErrCode
	}{
		"right": {results: []proto.MultiResult{{Op: proto.OpCreate, Path: "/a"}, {Op: proto.OpSetData, Stat: proto.Stat{Version: 4}}}},
		"wrong": {results: []proto.MultiResult{{Op: proto.OpError}, {Op: proto.OpError, Err: proto.ErrBadVersion}}, want: proto.ErrBadVersion},
	} {
		t.Run(name, func(t *testing.T) {
			tap, far, rec := tapped(t)
			multi := proto.MultiRequest{Ops: []proto.MultiOp{{Op: proto.OpCreate, Path: "/a"}, {Op: proto.OpSetData, Path: "/b", Version: 3}}}
			pass(t, tap, far, rawclient.AppendRequest(nil, 1, proto.OpMulti, multi.Append(nil)))
			pass(t, far, tap, frame(1, 5, proto.OK, (&proto.MultiResponse{Results: c.results}).Append(nil)))
			h := rec.Take()
			r := h[len(h)-1]
			if r.Err != c.want || len(r.Parts) != 2 || r.Parts[1].Path != "/b" || r.Parts[1].Version != 3 {
				t.Errorf("%+v", r)
			}
			if c.want == proto.OK && (r.Parts[0].Made != "/a" || r.Parts[1].Stat.Version != 4) {
				t.Errorf("%+v", r.Parts)
			}
		})
	}
}

// A reply that nobody waits for is in the history, so that a check can find it.
func TestTap_Unasked(t *testing.T) {
	c, far, rec := tapped(t)
	pass(t, far, c, frame(5, 5, proto.OK, nil))
	for range 2 {
		pass(t, c, far, rawclient.AppendRequest(nil, 1, proto.OpDelete, (&proto.PathVersionRequest{Path: "/a"}).Append(nil)))
	}
	for range 3 {
		pass(t, far, c, frame(1, 5, proto.OK, nil))
	}
	var numbers []int
	for _, r := range rec.Take() {
		if r.Kind == KindReply {
			numbers = append(numbers, r.Number)
		}
	}
	if want := []int{0, 1, 2, 0}; !reflect.DeepEqual(numbers, want) {
		t.Errorf("replies to %v, want %v", numbers, want)
	}
}
