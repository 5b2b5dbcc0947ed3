package rawclient_test

import (
	"encoding/hex"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/rawclient"
	"github.com/gozkd/gozkd/proto"
)

// peer accepts a connection, reads n bytes and writes answer; if hold is not nil, it keeps the
// connection open until hold is closed. It returns the address and a channel that gets the bytes
// read.
func peer(t *testing.T, n int, answer []byte, hold <-chan struct{}) (string, <-chan []byte) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	got, done := make(chan []byte, 1), make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		b := make([]byte, n)
		if _, err := io.ReadFull(c, b); err != nil {
			return
		}
		got <- b
		if _, err := c.Write(answer); err != nil {
			return
		}
		if hold != nil {
			<-hold
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String(), got
}

func dial(t *testing.T, addr string) *rawclient.Conn {
	t.Helper()
	c, err := rawclient.Dial(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestRequestBytes(t *testing.T) {
	want := "00000012" + "00000007" + "00000009" + "00000006" + hex.EncodeToString([]byte("/a/b/c"))
	if got := hex.EncodeToString(rawclient.AppendRequest(nil, 7, proto.OpSync, []byte("\x00\x00\x00\x06/a/b/c"))); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestConn_FramesThenClosed(t *testing.T) {
	answer := rawclient.AppendFrame(rawclient.AppendFrame(nil, []byte("one")), nil)
	addr, got := peer(t, 4, answer, nil)
	c := dial(t, addr)
	if err := c.Write([]byte("ruok"), time.Minute); err != nil {
		t.Fatal(err)
	}
	if s := string(<-got); s != "ruok" {
		t.Errorf("the server read %q", s)
	}
	for _, want := range []string{"one", ""} {
		frame, err := c.ReadFrame(time.Minute)
		if err != nil || string(frame) != want {
			t.Errorf("got %q, %v; want %q", frame, err, want)
		}
	}
	if _, err := c.ReadFrame(time.Minute); !errors.Is(err, rawclient.ErrClosed) {
		t.Errorf("after the last frame: %v", err)
	}
}

func TestConn_TimeoutAndBadLength(t *testing.T) {
	hold := make(chan struct{})
	addr, _ := peer(t, 1, []byte{0, 0, 0, 9, 'x'}, hold)
	c := dial(t, addr)
	if err := c.Write([]byte("x"), time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ReadFrame(20 * time.Millisecond); !errors.Is(err, rawclient.ErrTimeout) {
		t.Errorf("half a frame: %v", err)
	}
	close(hold)
	addr, _ = peer(t, 1, []byte{0xff, 0xff, 0xff, 0xff}, nil)
	c = dial(t, addr)
	if err := c.Write([]byte("x"), time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ReadFrame(time.Minute); err == nil || errors.Is(err, rawclient.ErrClosed) || errors.Is(err, rawclient.ErrTimeout) {
		t.Errorf("length -1: %v", err)
	}
}
