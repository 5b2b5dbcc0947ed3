package server_test

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// readers returns how many connections have a goroutine that reads them. While a session begins,
// its connection may count twice.
func readers() int {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return bytes.Count(stacks, []byte("server.(*conn).serve(")) + bytes.Count(stacks, []byte("server.(*conn).receive("))
}

// A connection has no goroutine when its client was silent after its session began, and after a
// lone ping. Events reach its client, a client that has more requests keeps a goroutine, and
// connections without a goroutine end as others do.
func TestQuietClients_NeedNoGoroutine(t *testing.T) {
	c := newCerts(t)
	for name, cfg := range map[string]*tls.Config{"plain": nil, "TLS": c.client(t, "alice")} {
		t.Run(name, func(t *testing.T) { quietClients(t, c.server(t, tls.RequireAndVerifyClientCert), cfg) })
	}
}

func quietClients(t *testing.T, certs *tls.Config, with *tls.Config) {
	var ahead atomic.Int64
	s := startTLS(t, server.Config{
		PortUnification: true, MaxClientConns: -1, HandshakeTimeout: 3 * time.Second,
		Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
	}, certs)
	awaitReaders := func(want int) {
		for readers() != want {
			time.Sleep(10 * time.Millisecond)
		}
	}
	var clients []*raw
	for range 4 {
		r := dialTLS(t, s.Addr(), with)
		r.connect(3_600_000, 0, nil)
		clients = append(clients, r)
	}
	awaitReaders(0)
	c := clients[0]
	ahead.Add(-int64(time.Minute)) // so it was not silent
	c.call(1, proto.OpExists, &proto.PathWatchRequest{Path: "/n", Watch: true})
	if n := readers(); n != 1 {
		t.Errorf("%d readers while a client works", n)
	}
	ahead.Add(int64(5 * time.Second))
	c.call(proto.XidPing, proto.OpPing, nil)
	awaitReaders(0)
	clients[1].call(1, proto.OpCreate, create{path: "/n"})
	if h, _ := decodeReply(c.recv()); h.Xid != proto.XidEvent {
		t.Errorf("no event, but %v", h)
	}
	moved := dialTLS(t, s.Addr(), with)
	moved.connect(3_600_000, c.id, c.pass)
	if _, err := c.nc.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the old connection of a session: %v", err)
	}
	_ = clients[2].nc.Close()
	for s.Facts().Stats().Connections != 3 {
		time.Sleep(time.Millisecond)
	}
}

// A client whose connect request came in pieces, and that is quiet since then, holds no memory: it
// owes the server nothing, and would be closed as one that does.
func TestQuietClients_ConnectRequestInPieces(t *testing.T) {
	s := start(t, server.Config{HandshakeTimeout: 3 * time.Second})
	defer s.Close()
	r := dialTLS(t, s.Addr(), nil)
	request := (&proto.ConnectRequest{TimeoutMs: 30_000, HasReadOnly: true}).Append(nil)
	whole := append(binary.BigEndian.AppendUint32(nil, uint32(len(request))), request...)
	if _, err := r.nc.Write(whole[:4]); err != nil {
		t.Fatal(err)
	}
	for unread := int64(0); unread == 0; unread, _, _ = server.ClientMemory(s) { // its error is for a server at rest
		time.Sleep(time.Millisecond)
	}
	if _, err := r.nc.Write(whole[4:]); err != nil {
		t.Fatal(err)
	}
	if r.recv() == nil {
		t.Fatal("closed in the handshake")
	}
	for readers() > 0 {
		time.Sleep(10 * time.Millisecond)
	}
	if unread, queued, err := server.ClientMemory(s); err != nil || unread+queued != 0 {
		t.Errorf("a quiet client holds %d and %d bytes (%v)", unread, queued, err)
	}
}

// A connection waits with a goroutine for the first request of its client, unless many do.
func TestQuietClients_Newcomers(t *testing.T) {
	s := start(t, server.Config{MaxClientConns: -1, HandshakeTimeout: time.Hour})
	defer s.Close()
	const few, more = 64, 20
	for range few + more {
		dialTLS(t, s.Addr(), nil).connect(3_600_000, 0, nil)
	}
	for readers() != few {
		time.Sleep(10 * time.Millisecond)
	}
}

// Requests are answered in order, whatever pieces they come in, if each finds its connection
// without a goroutine.
func TestQuietClients_Order(t *testing.T) {
	var calls atomic.Int64
	begin := time.Now()
	certs := newCerts(t)
	s := startTLS(t, server.Config{
		PortUnification: true, MaxClientConns: -1, MaxSessionTimeout: 500 * time.Hour,
		Now: func() time.Time { return begin.Add(time.Duration(calls.Add(1)) * 1500 * time.Millisecond) },
	}, certs.server(t, tls.RequireAndVerifyClientCert))
	alice := certs.client(t, "alice")
	root := "/"
	var all sync.WaitGroup
	for i := range 8 {
		r := dialTLS(t, s.Addr(), []*tls.Config{nil, alice}[i%2])
		r.connect(1_800_000_000, 0, nil)
		rng := rand.New(rand.NewPCG(1, uint64(i)))
		var out []byte
		const requests = 400
		for xid := range int32(requests) {
			switch rng.IntN(3) {
			case 0:
				out = append(out, frame(xid, proto.OpSetData, &proto.SetDataRequest{Path: "/", Data: []byte("x"), Version: -1})...)
			case 1:
				out = append(out, frame(xid, proto.OpSync, &proto.PathRequest{Path: &root})...)
			default:
				out = append(out, frame(xid, proto.OpGetData, &proto.PathWatchRequest{Path: "/"})...)
			}
		}
		all.Go(func() {
			for len(out) > 0 {
				n := min(len(out), 1+rng.IntN(200))
				if _, err := r.nc.Write(out[:n]); err != nil {
					t.Error(err)
					return
				}
				out = out[n:]
				if rng.IntN(4) == 0 {
					runtime.Gosched()
				}
			}
		})
		all.Go(func() {
			for xid := range int32(requests) {
				b := r.tryRecv()
				if b == nil {
					t.Errorf("client %d: no reply to request %d", i, xid)
					return
				}
				if h, _ := decodeReply(b); h.Xid != xid || h.Err != proto.OK {
					t.Errorf("client %d: reply %v to request %d", i, h, xid)
					return
				}
			}
		})
	}
	all.Wait()
}
