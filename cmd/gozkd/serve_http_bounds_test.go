package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/fair"
	"github.com/gozkd/gozkd/internal/httplocal"
)

// A connection that exceeds a bound takes the place of the one of its host that was inactive for
// longest. A connection on which a request is answered keeps its place.
func TestBoundedListener_TheIdlestGoes(t *testing.T) {
	l := newBoundedListener(nil, 0)
	admit := func(host string) *boundedConn {
		t.Helper()
		ours, theirs := net.Pipe()
		t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
		c := &boundedConn{Conn: fromHost{theirs, host}, listener: l}
		c.host, c.elsewhere = fair.Host(c.RemoteAddr()), !httplocal.Address(c.RemoteAddr().String()).IsLoopback()
		c.noteActive()
		if !l.take(c) {
			t.Fatalf("a connection from %s is refused", host)
		}
		return c
	}
	gone := func(what string, c *boundedConn) {
		t.Helper()
		if l.conns[c] {
			t.Errorf("%s is still there", what)
		}
	}
	other, local := admit("192.0.2.1"), admit("127.0.0.1")
	var crowd []*boundedConn
	for range httpConnsPerHost {
		crowd = append(crowd, admit("192.0.2.7"))
	}
	crowd[0].answering.Add(1)
	crowd[1].noteActive()
	probe := admit("192.0.2.7")
	gone("the idlest of the host", crowd[2])
	// The port is full: the host with most connections gives way.
	for i := range byte(httpConns - localConns - 2 - httpConnsPerHost) {
		admit(net.IPv4(198, 51, 100, i).String())
	}
	admit("203.0.113.1")
	gone("the idlest of the host with most", crowd[3])
	for range localConns {
		admit("127.0.0.1")
	}
	admit("127.0.0.1")
	gone("the idlest of this machine", local)
	for what, c := range map[string]*boundedConn{"answering": crowd[0], "active": crowd[1], "the probe": probe, "of another host": other} {
		if !l.conns[c] {
			t.Errorf("%s is gone", what)
		}
	}
	if n := len(l.conns); n != httpConns {
		t.Errorf("%d connections", n)
	}
}

// The users of a trusted proxy share its address: it has no bound of its own.
func TestBoundedListener_Proxy(t *testing.T) {
	theirs := make(chan net.Conn, httpConnsPerHost+1)
	l := newBoundedListener(handed{conn: theirs, close: func() {}}, 0)
	l.proxies = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/28")}
	for _, host := range []string{"192.0.2.7", "192.0.2.99"} {
		for range httpConnsPerHost + 1 {
			ours, end := net.Pipe()
			t.Cleanup(func() { _, _ = ours.Close(), end.Close() })
			theirs <- fromHost{end, host}
			if _, err := l.Accept(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := len(l.conns); n != 2*httpConnsPerHost+1 {
		t.Errorf("%d connections", n)
	}
}

// lastSocket is a connection that has the last file descriptor there can be.
type lastSocket struct{ net.Conn }

func (lastSocket) SyscallConn() (syscall.RawConn, error) { return lastDescriptor{}, nil }

type lastDescriptor struct{ syscall.RawConn }

func (lastDescriptor) Control(f func(uintptr)) error { f(^uintptr(0)); return nil }

// A port closes connections with the last file descriptors, which are for files.
func TestBoundedListener_LastDescriptors(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("the system does not tell its limit")
	}
	theirs := make(chan net.Conn, 2)
	l := newBoundedListener(handed{conn: theirs, close: func() {}}, 0)
	refused, last := net.Pipe()
	defer refused.Close()
	ours, end := net.Pipe()
	defer ours.Close()
	theirs <- lastSocket{fromHost{last, "127.0.0.1"}}
	theirs <- fromHost{end, "127.0.0.1"}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := c.(*boundedConn).Conn.(fromHost).Conn; got != end || len(l.conns) != 1 {
		t.Errorf("%v was accepted, %d connections", got, len(l.conns))
	}
	if _, err := refused.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the connection with the last descriptor: %v", err)
	}
}

// A port that is bounded keeps what its server knows of a connection: who is at its other end.
func TestBoundedListener_ConnContext(t *testing.T) {
	type key struct{}
	s := &http.Server{ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, key{}, "known")
	}}
	newBoundedListener(nil, 0).bound(s)
	near, far := net.Pipe()
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	if got := s.ConnContext(t.Context(), near).Value(key{}); got != "known" {
		t.Errorf("the server knows %v of its connection", got)
	}
}

// A request is answered beside as many unused connections as there may be.
func TestServe_UnusedHTTPConnections(t *testing.T) {
	e := new(endpoints)
	address := strings.TrimPrefix(e.open(t.Context(), endpoint{what: "test", address: "127.0.0.1:0", idle: time.Hour}, http.NotFoundHandler(), hclog.NewNullLogger()), "http://")
	defer func() { _ = e.close() }()
	for range httpConns {
		nc, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = nc.Close() }()
	}
	if status, _ := fetch(t, "http://"+address); status != http.StatusNotFound {
		t.Error(status)
	}
}
