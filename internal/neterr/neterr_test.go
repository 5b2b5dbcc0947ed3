package neterr

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/gozkd/gozkd/internal/tcpport"
)

func TestIs(t *testing.T) {
	wrapped := func(errno syscall.Errno) error {
		return fmt.Errorf("a: %w", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", errno)})
	}
	for _, c := range []struct {
		system string
		err    error
		want   bool
	}{
		{"linux", wrapped(syscall.ECONNREFUSED), true},
		{"linux", wrapped(10061), false},
		{"windows", wrapped(10061), true},
		{"windows", wrapped(syscall.ECONNREFUSED), true}, // of a network in memory
		{"windows", wrapped(10054), false},
		{"windows", io.EOF, false},
		{"windows", nil, false},
	} {
		if got := is(c.system, c.err, syscall.ECONNREFUSED); got != c.want {
			t.Errorf("%s: %v: %v", c.system, c.err, got)
		}
	}
	for _, number := range []syscall.Errno{10053, 10054} {
		if !is("windows", wrapped(number), syscall.ECONNRESET) || is("linux", wrapped(number), syscall.ECONNRESET) {
			t.Errorf("%d is no reset", number)
		}
	}
	if is("windows", syscall.Errno(0), syscall.ENOSPC) {
		t.Error("an errno without a number of Windows is every errno")
	}
}

// TestListenError checks that the remedy is for the error.
func TestListenError(t *testing.T) {
	for want, err := range map[string]error{
		"stop what listens there, or choose another port: key":                       syscall.EADDRINUSE,
		"choose a port above 1023, or give the program CAP_NET_BIND_SERVICE: key":    syscall.EACCES,
		"port: lookup *: no such host; choose another address, 0.0.0.0 for all: key": &net.DNSError{Err: "no such host", Name: "*"},
	} {
		if got := ListenError("port", err, "key"); !errors.Is(got, err) || !strings.HasSuffix(got.Error(), want) {
			t.Errorf("%v, want %s", got, want)
		}
	}
	if err := ListenError("port", nil, "key"); err != nil {
		t.Error(err)
	}
}

// TestIs_Sockets asks the errors of this system.
func TestIs_Sockets(t *testing.T) {
	port, l, err := tcpport.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer port.Release()
	address := port.Address()
	if _, err := net.Listen("tcp", address); !Is(err, syscall.EADDRINUSE) || Is(err, syscall.EADDRNOTAVAIL) {
		t.Errorf("listening twice on %s: %v", runtime.GOOS, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	port.Hold()
	if _, err := net.Dial("tcp", address); !Is(err, syscall.ECONNREFUSED) || Is(err, syscall.ECONNRESET) {
		t.Errorf("a closed port: %v", err)
	}
}
