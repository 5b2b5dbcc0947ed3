package peer

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// nameServer answers that every name is 127.0.0.1, unless it is down, or silent.
type nameServer struct{ down, silent atomic.Bool }

func (s *nameServer) dialer() *dialer {
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		switch {
		case s.silent.Load():
			<-ctx.Done()
			return nil, ctx.Err()
		case s.down.Load():
			return nil, errors.New("no name server")
		}
		client, server := net.Pipe()
		go s.answer(server) // ends when the resolver closes the connection
		return client, nil
	}}
	return &dialer{Dialer: net.Dialer{Resolver: resolver}, reached: make(map[string]string)}
}

// answer answers questions as over TCP: each message follows its length.
func (s *nameServer) answer(conn net.Conn) {
	defer conn.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		question := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, question); err != nil {
			return
		}
		end := 12 // of the header
		for question[end] != 0 {
			end += 1 + int(question[end])
		}
		end += 5
		reply := append([]byte{question[0], question[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, question[12:end]...)
		if binary.BigEndian.Uint16(question[end-4:]) == 1 { // asks for an IPv4 address
			reply[7] = 1
			reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1)
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
			return
		}
	}
}

// P7: members that lose their connections while the DNS is down find each other again.
func TestReconnect_WithoutDNS(t *testing.T) {
	for name, fail := range map[string]func(*nameServer){
		"refused": func(s *nameServer) { s.down.Store(true) },
		"silent":  func(s *nameServer) { s.silent.Store(true) },
	} {
		t.Run(name, func(t *testing.T) {
			w, dns := &world{}, new(nameServer)
			named := func(_ *member, cfg *Config) {
				cfg.Dial = dns.dialer().dial
			}
			a, b := w.start(t, 1, named), w.start(t, 2, named)
			at := func(m *member) map[uint64]string {
				_, port, _ := net.SplitHostPort(m.address) // it has one
				return map[uint64]string{m.id: net.JoinHostPort("member.test", port)}
			}
			a.SetPeers(at(b))
			b.SetPeers(at(a))
			a.await(2, "up")
			b.await(1, "up")
			fail(dns)
			for _, p := range []*peer{a.peers[2], b.peers[1]} {
				p.net.mu.Lock()
				p.endLink(errChanged) // the link breaks, and is made again at once
				p.net.mu.Unlock()
			}
			a.await(2, "down")
			a.await(2, "up")
			b.await(1, "down")
			b.await(1, "up")
		})
	}
}

// A name that was never reached, and a name that has another address now. Strangers may name
// addresses, too.
func TestDialer(t *testing.T) {
	dns := new(nameServer)
	d := dns.dialer()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	address := net.JoinHostPort("member.test", port)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dns.down.Store(true)
	if _, err := d.dial(ctx, address); !errors.As(err, new(*net.DNSError)) {
		t.Fatalf("a name that was never reached, without DNS: %v", err)
	}
	dns.down.Store(false)
	d.reached[address] = "127.0.0.1:1" // where nobody listens: the DNS counts
	for i := range maxReached {
		d.reached[string(rune('a'+i))] = "127.0.0.1:1"
	}
	conn, err := d.dial(ctx, address)
	if err != nil || d.reached[address] != l.Addr().String() {
		t.Fatalf("%v, remembered %s", err, d.reached[address])
	}
	_ = conn.Close()
	if n := len(d.reached); n > maxReached {
		t.Errorf("%d addresses are remembered", n)
	}
}
