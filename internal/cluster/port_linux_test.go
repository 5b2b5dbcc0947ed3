package cluster

import (
	"context"
	"net"
	"strconv"
	"syscall"
	"testing"
)

// takePort listens on a port if no socket has it.
func takePort(ctx context.Context, address string) (net.Listener, error) {
	alone := func(_, _ string, c syscall.RawConn) (err error) {
		ctrlErr := c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 0) })
		if ctrlErr != nil {
			return ctrlErr
		}
		return err
	}
	return (&net.ListenConfig{Control: alone}).Listen(ctx, "tcp", address)
}

// ownHost is an address at which no other program takes a port that was released.
const ownHost = "127.0.0.9"

// While a member stops and starts, nobody else can take its port at any moment.
func TestPort_IsKept(t *testing.T) {
	l := start(t, Config{Host: ownHost})
	m := member(t, l, 1)
	address := m.Address()
	stop, taken := make(chan struct{}), make(chan bool)
	// Stopped by stop, awaited by taken.
	go func() {
		for {
			select {
			case <-stop:
				taken <- false
				return
			default:
			}
			if other, err := takePort(t.Context(), address); err == nil {
				_ = other.Close()
				taken <- true
				return
			}
		}
	}()
	for range 200 {
		if err := m.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := m.Start(t.Context()); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	if <-taken || m.Address() != address {
		t.Errorf("somebody else got the port %s; it is %s now", address, m.Address())
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	other, err := takePort(t.Context(), address)
	if err != nil {
		t.Fatal("after Close it is held still: ", err)
	}
	_ = other.Close()
	if busy, err := Start(t.Context(), Config{ClientPort: 65535, Members: 2}); err == nil {
		_ = busy.Close()
		t.Error("there is no port 65536")
	}
}

// A port in use is an error, and nothing of the cluster is left.
func TestPort_InUse(t *testing.T) {
	var number int
	var first string // the address of the first member, which is free
	for first == "" {
		inUse, err := net.Listen("tcp", ownHost+":0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = inUse.Close() }()
		number = inUse.Addr().(*net.TCPAddr).Port
		address := net.JoinHostPort(ownHost, strconv.Itoa(number-1))
		if free, err := takePort(t.Context(), address); err == nil { // otherwise another program's
			_ = free.Close()
			first = address
		}
	}
	_, err := Start(t.Context(), Config{Host: ownHost, ClientPort: number - 1, Members: 2})
	t.Log(err)
	if err == nil {
		t.Fatal("it was started")
	}
	before, err := takePort(t.Context(), first)
	if err != nil {
		t.Fatal("the first member's port is held still: ", err)
	}
	_ = before.Close()
}
