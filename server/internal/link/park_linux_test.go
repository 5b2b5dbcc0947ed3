package link

import (
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gozkd/gozkd/server/internal/bounds"
)

// resumed counts the calls of Resume that are not taken yet.
type resumed chan struct{}

func (resumed) Backlog() int64 { return 0 }
func (r resumed) Resume()      { r <- struct{}{} }

// parkable returns links on sockets of a host, their clients, and what Resume is reported to.
func parkable(t *testing.T, host *Host, n int) (links []*Link, clients []net.Conn, readers []resumed) {
	t.Helper()
	var goroutines sync.WaitGroup
	host.Init(HostConfig{
		Now: time.Now, Patience: func() time.Duration { return time.Minute }, Relieve: func() {}, Writes: new(bounds.Writes), Goroutines: &goroutines,
	})
	listener := loopback(t, net.ListenConfig{})
	t.Cleanup(func() {
		for i, l := range links {
			l.Close()
			_ = clients[i].Close()
		}
		host.Stop()
		goroutines.Wait()
	})
	for range n {
		nc, client := accept(t, listener)
		clients = append(clients, client)
		l, r := new(Link), make(resumed, 2)
		l.Init(host, r, nc)
		links, readers = append(links, l), append(readers, r)
	}
	return links, clients, readers
}

// A parked link gets a reader when bytes come, also when they came before, each time that it is
// parked, and none of the others does.
func TestPark_BytesCome(t *testing.T) {
	var host Host
	links, clients, readers := parkable(t, &host, 3)
	for _, l := range links {
		if !l.Park() {
			t.Fatal("not parked")
		}
	}
	for round := range 3 {
		if _, err := clients[1].Write([]byte("12345678")); err != nil {
			t.Fatal(err)
		}
		for part := range 2 { // the second time, bytes are there
			<-readers[1]
			var in Input
			in.buf = make([]byte, 4)
			if n, err := links[1].readSome(in.buf, 0); n != 4 || err != nil {
				t.Fatal(round, part, n, err)
			}
			if !links[1].Park() {
				t.Fatal("not parked again")
			}
		}
	}
	if n := len(readers[0]) + len(readers[2]); n > 0 {
		t.Errorf("%d readers of links whose clients are quiet", n)
	}
}

// A parked link gets one reader when it ends on either side or the server stops, and is forgotten.
func TestPark_LinkEnds(t *testing.T) {
	var host Host
	links, clients, readers := parkable(t, &host, 5)
	for _, l := range links {
		if !l.Park() {
			t.Fatal("not parked")
		}
	}
	_ = clients[0].Close()
	links[1].Close()
	links[1].Close()
	links[2].Lock()
	links[2].Finish() // there is no output
	links[2].Unlock()
	links[2].FlushAsync()
	for i, r := range readers[:3] {
		<-r
		if i > 0 && links[i].Park() { // only the reader finds out that a client has gone
			t.Errorf("link %d was parked after its end", i)
		}
	}
	if _, err := clients[4].Write([]byte("1")); err != nil {
		t.Fatal(err)
	}
	<-readers[4]
	links[4].Close() // while it has a reader
	host.Stop()
	<-readers[3]
	if links[3].Park() {
		t.Error("a link was parked after the end of its host")
	}
	host.Goroutines.Wait()
	for i, r := range readers {
		if len(r) > 0 {
			t.Errorf("link %d has two readers", i)
		}
	}
	if slices.ContainsFunc(host.parking.links, func(l *Link) bool { return l != nil }) {
		t.Error("a link that is not parked is kept")
	}
}

// A link keeps its reader if TLS holds a part of a record, if the system refuses to wait for it,
// and after the end of the host.
func TestPark_Refused(t *testing.T) {
	var host, ended Host
	links, _, _ := parkable(t, &host, 4)
	links[0].tls = new(tlsLayer)
	if links[0].Park() {
		t.Error("a link was parked with a part of a record")
	}
	if links[0].tls.drained = true; !links[0].Park() {
		t.Error("a link of which TLS holds nothing was not parked")
	}
	links[0].tls = nil
	links[1].parkedAs = 1 // so the descriptor should be among those that are waited for
	if links[1].Park() {
		t.Error("a link was parked for which nobody waits")
	}
	_ = links[2].nc.Close()
	if links[2].Park() {
		t.Error("a link was parked whose socket is closed")
	}
	others, _, _ := parkable(t, &ended, 2)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	parked := others[0].Park()
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	ended.Stop()
	if parked || others[1].Park() {
		t.Error("a link was parked without a descriptor to wait with, or after the end of its host")
	}
}

// If the system does not allow to wait any more, parked links get their readers back.
func TestPark_WaiterFails(t *testing.T) {
	var host Host
	links, _, readers := parkable(t, &host, 2)
	for _, l := range links {
		if !l.Park() {
			t.Fatal("not parked")
		}
	}
	host.parking.waiter.Close()
	for _, r := range readers {
		<-r
	}
}

// A link that is no socket keeps its reader.
func TestPark_Pipe(t *testing.T) {
	if newLink(t).Park() {
		t.Error("parked")
	}
}
