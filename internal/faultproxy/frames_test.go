package faultproxy

import (
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"testing"

	"github.com/gozkd/gozkd/proto"
)

// Frames that arrive byte by byte, or are longer than any buffer, are judged like others.
func TestFrames_AnySize(t *testing.T) {
	w := tcpWorld(t)
	a := w.arm(Fault{Kind: Fail, Op: "set", PathPrefix: "/a", Code: proto.ErrBadVersion, Times: -1})
	c, _ := w.connect()
	set := func(p string, size int) record { return &proto.SetDataRequest{Path: p, Data: make([]byte, size)} }
	for _, b := range requestFrame(1, proto.OpSetData, set("/a", 3)) {
		c.send([]byte{b})
	}
	c.expect(replyFrame(1, 101, proto.ErrBadVersion, nil))
	big := requestFrame(2, proto.OpSetData, set("/a", 5<<20))
	next := requestFrame(3, proto.OpSetData, set("/b", 5<<20))
	c.send(append(big, next...))
	c.expect(replyFrame(2, 102, proto.ErrBadVersion, nil))
	c.expect(replyFrame(3, 103, proto.OK, next[requestBytes:]))
	expectCount(t, a, 2, true)
}

// A failed request is discarded to its end, in whatever pieces it arrives.
func TestFail_SwallowsTheRest(t *testing.T) {
	for _, size := range []int{1, 10, readBytes, 10 * readBytes} {
		var rules Rules
		next := requestFrame(2, proto.OpGetData, path("/b"))
		in := slices.Concat(connectFrame(0), requestFrame(1, proto.OpSetData, bare(make([]byte, size))), next)
		for _, piece := range []int{20, 100, 3 * readBytes} {
			rules.Clear()
			if _, err := rules.Add(Fault{Kind: Fail, Op: "set", Code: proto.ErrNoAuth}); err != nil {
				t.Fatal(err)
			}
			c := newConn(NewGate(nil, &rules), &script{in: in, piece: func(most int) int { return min(most, piece) }})
			got, err := io.ReadAll(c)
			if want := slices.Concat(connectFrame(0), requestFrame(1, proto.OpExists, path("/")), next); err != nil || !slices.Equal(got, want) {
				t.Errorf("%d bytes in pieces of %d: %d bytes, %v, want %d", size, piece, len(got), err, len(want))
			}
		}
	}
}

// The reply to a request with the xid of events looks like an event, so such a request can be
// delayed but not failed.
func TestRules_XidOfEvents(t *testing.T) {
	w := tcpWorld(t)
	w.arm(Fault{Kind: Fail, Op: OpAny, Code: proto.ErrNoAuth})
	w.arm(Fault{Kind: DropReply, Op: OpAny})
	late := w.arm(Fault{Kind: Delay, Op: OpAny, Delay: 1})
	c, _ := w.connect()
	f := requestFrame(proto.XidEvent, proto.OpGetData, path("/"))
	c.send(f)
	c.expect(replyFrame(proto.XidEvent, 99, proto.OK, f[requestBytes:]))
	expectCount(t, late, 1, true)
}

// After bytes that are not a frame the gate stops parsing: the client's bytes if these were the
// client's, both directions if they were the server's.
func TestBlind(t *testing.T) {
	var rules Rules
	a, err := rules.Add(Fault{Kind: Fail, Op: "get", Code: proto.ErrNoAuth, Times: -1})
	if err != nil {
		t.Fatal(err)
	}
	get := requestFrame(1, proto.OpGetData, path("/"))
	bad := []byte{0, 0, 0, 7, 1, 2, 3, 4, 5, 6, 7}
	all := func(n int) int { return n }
	inner := &script{in: slices.Concat(connectFrame(0), get, bad, get), piece: all}
	c := newConn(NewGate(nil, &rules), inner)
	got, err := io.ReadAll(c)
	if want := slices.Concat(connectFrame(0), requestFrame(1, proto.OpExists, path("/")), bad, get); err != nil || !slices.Equal(got, want) {
		t.Errorf("the server got %x, %v", got, err)
	}
	if _, err := c.Write(slices.Concat(welcomeFrame(1), replyFrame(1, 1, 0, nil), replyFrame(1, 2, 0, nil))); err != nil {
		t.Error(err)
	}
	if want := slices.Concat(welcomeFrame(1), replyFrame(1, 1, proto.ErrNoAuth, nil), replyFrame(1, 2, 0, nil)); !slices.Equal(inner.out.Bytes(), want) {
		t.Errorf("the client got %x", inner.out.Bytes())
	}

	inner = &script{in: connectFrame(0), piece: all}
	c = newConn(NewGate(nil, &rules), inner)
	if _, err := c.Read(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(slices.Concat(welcomeFrame(1), bad)); err != nil {
		t.Fatal(err)
	}
	inner.in = get
	if got, err := io.ReadAll(c); err != nil || !slices.Equal(got, get) {
		t.Errorf("the server got %x, %v", got, err)
	}
	expectCount(t, a, 1, true)
}

// A connection that breaks while a request is being read uses up no rule.
func TestRules_NotTakenByTheDead(t *testing.T) {
	var rules Rules
	var armed []*Armed
	for _, f := range []Fault{{Kind: DropReply, Op: OpConnect}, {Kind: DropReply, Op: "get"}} {
		a, err := rules.Add(f)
		if err != nil {
			t.Fatal(err)
		}
		armed = append(armed, a)
	}
	inner := &script{in: slices.Concat(connectFrame(0), requestFrame(1, proto.OpGetData, path("/"))), piece: func(n int) int { return n }}
	c := newConn(NewGate(nil, &rules), inner)
	inner.piece = func(n int) int { _ = c.Close(); return n }
	_, _ = c.Read(make([]byte, 1000))
	for _, a := range armed {
		if a.taken != 0 {
			t.Errorf("%v: taken %d times", a, a.taken)
		}
	}
	inner = &script{in: inner.in, piece: func(n int) int { return n }}
	inner.in = slices.Concat(connectFrame(0), requestFrame(1, proto.OpGetData, path("/")))
	c = newConn(NewGate(nil, &rules), inner)
	_, _ = c.Read(make([]byte, 1000))
	for _, a := range armed {
		if a.taken != 1 {
			t.Errorf("%v: taken %d times", a, a.taken)
		}
	}
	_ = c.Close()
	for _, a := range armed {
		if a.taken != 0 {
			t.Errorf("%v: taken %d times by who is gone", a, a.taken)
		}
	}
}

// Bytes returned together with an error of the wrapped connection are not lost.
func TestRead_BytesWithAnError(t *testing.T) {
	for _, size := range []int{10, 100} {
		get := requestFrame(1, proto.OpGetData, path("/"))
		c := newConn(NewGate(nil, new(Rules)), &hasty{in: slices.Concat(connectFrame(0), get)})
		var got []byte
		for {
			p := make([]byte, size)
			n, err := c.Read(p)
			got = append(got, p[:n]...)
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if want := slices.Concat(connectFrame(0), get); !slices.Equal(got, want) {
			t.Errorf("got %x, want %x", got, want)
		}
	}
}

// hasty returns bytes together with a timeout, and at last together with the end of the stream.
type hasty struct {
	net.Conn
	in []byte
}

func (h *hasty) Read(p []byte) (int, error) {
	n := copy(p[:min(len(p), 7)], h.in)
	h.in = h.in[n:]
	if len(h.in) == 0 {
		return n, io.EOF
	}
	return n, os.ErrDeadlineExceeded
}
