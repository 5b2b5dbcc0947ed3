//go:build linux || darwin

package accept_test

import (
	"context"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/accept"
)

// Accepted connections leave the last eighth of the descriptors to files. When others are closed,
// the loop takes connections again.
func TestLoop_LeavesDescriptors(t *testing.T) {
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var files []*os.File
	open := func() uint64 {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
		return uint64(f.Fd())
	}
	last := open()
	for last < 64 {
		last = open()
	}
	limit := before
	limit.Cur = last + last/8 // so the free ones are in the last eighth
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
			t.Fatal(err)
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	var taken atomic.Int64
	ended, refused := make(chan error, 1), make(chan error, 1)
	go func() {
		ended <- accept.Loop(ctx, l, func(err error, _ time.Duration) { refused <- err }, func(conn net.Conn) {
			taken.Add(1)
			_ = conn.Close()
		})
	}()
	// call reports whether a connection is taken: neither end sends anything.
	call := func() bool {
		t.Helper()
		was := taken.Load()
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Fatal("read from a connection on which nothing was sent")
		}
		return taken.Load() > was
	}
	if call() {
		t.Error("a connection took one of the last descriptors")
	} else if err := <-refused; errors.Is(err, syscall.EMFILE) {
		t.Error(err)
	}
	open() // a file may
	for range 6 {
		if err := files[len(files)-1].Close(); err != nil {
			t.Fatal(err)
		}
		files = files[:len(files)-1]
	}
	if !call() {
		t.Error("no connection was taken after files were closed")
	}
	cancel()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
