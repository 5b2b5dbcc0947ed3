package tcpport

import (
	"errors"
	"net"
	"syscall"
	"testing"
)

// While a port is reserved, connections to it are refused, its owner can listen, and nobody else
// gets it.
func TestReserve(t *testing.T) {
	p, err := Reserve("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	for range 3 {
		if c, err := net.Dial("tcp", p.Address()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("a connection to a reserved port: %v, %v", c, err)
		}
		l, err := p.Listen()
		if err != nil {
			t.Fatal(err)
		}
		if other, _, err := Listen(p.Address()); !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatalf("the port was given to another listener: %+v, %v", other, err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReserve_Impossible(t *testing.T) {
	for _, address := range []string{"127.0.0.1", "127.0.0.1:65536", "192.0.2.1:0"} {
		if p, err := Reserve(address); err == nil {
			t.Errorf("%s was reserved: %s", address, p.Address())
		}
	}
}
