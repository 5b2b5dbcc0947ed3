package memnet_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/internal/memnet"
)

// The promises that do not depend on a network hold for both kinds of connections.
func TestConn(t *testing.T) {
	kinds := map[string]func(t *testing.T) (a, b net.Conn){
		"network": func(t *testing.T) (_, _ net.Conn) { return connect(t, memnet.New(0)) },
		"slow":    func(t *testing.T) (_, _ net.Conn) { return connect(t, memnet.New(time.Millisecond)) },
		"pipe":    func(*testing.T) (_, _ net.Conn) { return memnet.Pipe("a", "b") },
	}
	promises := map[string]func(t *testing.T, a, b net.Conn){
		"Close lets read what was sent": func(t *testing.T, a, b net.Conn) {
			send(t, a, "last words")
			closeAll(a)
			receive(t, b, "last words")
			for range 2 {
				if n, err := b.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
					t.Errorf("%d, %v", n, err)
				}
			}
			if _, err := b.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
				t.Errorf("write to a closed end: %v", err)
			}
		},
		"Close ends own calls that wait": func(t *testing.T, a, _ net.Conn) {
			results := make(chan error, 2)
			go func() { // ends by Close; awaited by the receives
				_, err := a.Read(make([]byte, 1))
				results <- err
			}()
			go func() { // likewise
				n, err := a.Write(make([]byte, window+1))
				if n != window {
					err = fmt.Errorf("wrote %d: %w", n, err)
				}
				results <- err
			}()
			synctest.Wait()
			if err := a.Close(); err != nil {
				t.Error(err)
			}
			for range 2 {
				if err := <-results; !errors.Is(err, net.ErrClosed) {
					t.Error(err)
				}
			}
			for what, err := range map[string]error{"close": a.Close(), "deadline": a.SetDeadline(time.Now())} {
				if !errors.Is(err, net.ErrClosed) {
					t.Errorf("%s: %v", what, err)
				}
			}
		},
		"Close ends the other's write that waits": func(t *testing.T, a, b net.Conn) {
			time.AfterFunc(time.Second, func() { closeAll(b) })
			if n, err := a.Write(make([]byte, 3*window)); n != window || !errors.Is(err, syscall.EPIPE) {
				t.Errorf("%d, %v", n, err)
			}
		},
		"deadlines": func(t *testing.T, a, _ net.Conn) {
			for name, c := range map[string]struct {
				set  func(time.Time) error
				call func([]byte) (int, error)
				size int
			}{
				"read": {a.SetReadDeadline, a.Read, 1}, "write": {a.SetWriteDeadline, a.Write, 2 * window},
			} {
				call := func() (err error) { _, err = c.call(make([]byte, c.size)); return err }
				expect := func(what string, want time.Duration) {
					t.Helper()
					var err error
					if took := took(func() { err = call() }); took != want || !errors.Is(err, os.ErrDeadlineExceeded) {
						t.Errorf("%s, %s: %v after %v", name, what, err, took)
					}
				}
				_ = c.set(time.Now().Add(time.Second)) // the connection is open
				expect("to come", time.Second)
				expect("passed", 0)
				_ = c.set(time.Now().Add(time.Hour))
				time.AfterFunc(time.Minute, func() { _ = c.set(time.Now().Add(time.Second)) })
				expect("brought forward", time.Minute+time.Second)
				_ = c.set(time.Now().Add(2 * time.Second))
				time.AfterFunc(time.Second, func() { _ = c.set(time.Now().Add(time.Minute)) })
				expect("put off", time.Minute+time.Second)
				_ = c.set(time.Now().Add(time.Second))
				time.AfterFunc(500*time.Millisecond, func() { _ = c.set(time.Time{}) })
				time.AfterFunc(time.Hour, func() { _ = c.set(time.Now()) })
				expect("taken back", time.Hour)
				_ = c.set(time.Time{})
			}
		},
		"TryWrite sends nothing while a Write waits": func(t *testing.T, a, b net.Conn) {
			written := make(chan error, 1)
			go func() { // ends when b has read half; awaited by the receive
				_, err := a.Write(bytes.Repeat([]byte("x"), window+1))
				written <- err
			}()
			synctest.Wait()
			try := a.(interface{ TryWrite([]byte) (int, error) }).TryWrite
			if n, err := try([]byte("y")); n != 0 || err != nil {
				t.Errorf("in a full window: %d, %v", n, err)
			}
			got := make([]byte, window+2)
			if _, err := io.ReadFull(b, got[:window*3/4]); err != nil {
				t.Error(err)
			}
			// The Write was woken, and may not run yet.
			sent, err := try([]byte("y"))
			if err := errors.Join(err, <-written); err != nil {
				t.Error(err)
			}
			if sent == 0 {
				send(t, a, "y")
			}
			if _, err := io.ReadFull(b, got[window*3/4:]); err != nil || bytes.IndexByte(got, 'y') != window+1 {
				t.Errorf("y after %d bytes, %v", bytes.IndexByte(got, 'y'), err)
			}
		},
		"nothing to read or write": func(t *testing.T, a, b net.Conn) {
			for _, call := range []func([]byte) (int, error){a.Read, a.Write, b.Read} {
				if n, err := call(nil); n != 0 || err != nil {
					t.Errorf("%d, %v", n, err)
				}
			}
		},
		"both ways at once": func(t *testing.T, a, b net.Conn) {
			const size = 3*window + 1
			var all sync.WaitGroup
			for _, c := range []net.Conn{a, b} {
				all.Go(func() { // ends when all is written; awaited below
					if _, err := c.Write(bytes.Repeat([]byte(c.RemoteAddr().String()[:1]), size)); err != nil {
						t.Error(err)
					}
				})
				all.Go(func() { // ends when all is read; awaited below
					got := make([]byte, size)
					if _, err := io.ReadFull(c, got); err != nil {
						t.Error(err)
					}
					if want := c.LocalAddr().String()[:1]; string(got) != string(bytes.Repeat([]byte(want), size)) {
						t.Errorf("%s read other bytes", want)
					}
				})
			}
			all.Wait()
		},
	}
	for kind, dial := range kinds {
		for promise, check := range promises {
			t.Run(kind+"/"+promise, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a, b := dial(t)
					defer closeAll(a, b)
					check(t, a, b)
				})
			})
		}
	}
}

// Many goroutines write and read while the links change. Each frame arrives once and whole, and the
// frames of one writer arrive in order.
func TestConn_Concurrent(t *testing.T) {
	const writers, frames = 4, 60
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(time.Millisecond)
		a, b := connect(t, n)
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() { // ends when all is written; awaited below
				for i := range frames {
					frame := make([]byte, 8+(w+1)*i*500) // the large ones wait for room
					binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
					frame[4], frame[5] = byte(w), byte(i)
					for k := range frame[6:] {
						frame[6+k] = byte(w)
					}
					if _, err := a.Write(frame); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Go(func() { // ends after a second of the bubble, with the link as it was; awaited below
			for i := range 100 {
				n.Cut("a", "b", i%2 == 0)
				n.Delay("a", "b", time.Duration(i%7)*time.Millisecond)
				_ = b.SetReadDeadline(time.Now().Add(time.Minute)) // it is open
				time.Sleep(10 * time.Millisecond)
			}
		})
		var next [writers]byte
		for range writers * frames {
			var size [4]byte
			if _, err := io.ReadFull(b, size[:]); err != nil {
				t.Fatal(err)
			}
			frame := make([]byte, binary.BigEndian.Uint32(size[:]))
			if _, err := io.ReadFull(b, frame); err != nil {
				t.Fatal(err)
			}
			w := frame[0]
			if int(w) >= writers || frame[1] != next[w] || bytes.Count(frame[2:], []byte{w}) != len(frame)-2 {
				t.Fatalf("a frame of writer %d, number %d, is not whole or not in order", w, frame[1])
			}
			next[w]++
		}
		all.Wait()
	})
}

// Several readers of one connection share the bytes that arrive, and no wake-up is lost.
func TestConn_ManyReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := memnet.Pipe("a", "b")
		defer closeAll(b)
		var all sync.WaitGroup
		var mu sync.Mutex
		got := 0
		for range 5 {
			all.Go(func() { // ends with a's Close; awaited below
				for {
					n, err := b.Read(make([]byte, 3))
					if err != nil {
						return
					}
					mu.Lock()
					got += n
					mu.Unlock()
				}
			})
		}
		synctest.Wait()
		send(t, a, "one write for all of them")
		closeAll(a)
		all.Wait()
		if got != len("one write for all of them") {
			t.Errorf("they read %d bytes", got)
		}
	})
}

// Several writers wait for a writer that waits for room. No wake-up is lost.
func TestConn_ManyWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := memnet.Pipe("a", "b")
		defer closeAll(a, b)
		var all sync.WaitGroup
		write := func(n int) {
			all.Go(func() { // ends when all is read; awaited below
				if _, err := a.Write(make([]byte, n)); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		write(window + 1)
		for range 10 {
			write(1)
		}
		if n, err := b.Read(make([]byte, window)); n != window || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
		if _, err := io.ReadFull(b, make([]byte, 11)); err != nil {
			t.Error(err)
		}
		all.Wait()
	})
}

func TestPipe_Names(t *testing.T) {
	client, server := memnet.Pipe("127.0.0.1:7", "here")
	defer closeAll(client, server)
	for _, c := range []struct {
		got  net.Addr
		want string
	}{
		{client.LocalAddr(), "127.0.0.1:7"}, {client.RemoteAddr(), "here"},
		{server.LocalAddr(), "here"}, {server.RemoteAddr(), "127.0.0.1:7"},
	} {
		if c.got.String() != c.want || c.got.Network() != "memory" {
			t.Errorf("%s %s, want %s", c.got.Network(), c.got, c.want)
		}
	}
}

// A connection without latency makes no timers, and allocates nothing after its buffers have grown.
func TestConn_Allocs(t *testing.T) {
	a, b := connect(t, memnet.New(0))
	frame := make([]byte, 1000)
	if n := testing.AllocsPerRun(100, func() {
		_ = a.SetWriteDeadline(time.Now().Add(time.Hour)) // it is open
		_, _ = a.Write(frame)
		_ = b.SetReadDeadline(time.Now().Add(time.Hour)) // it is open
		if n, err := b.Read(frame); n != len(frame) {
			t.Errorf("%d, %v", n, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
