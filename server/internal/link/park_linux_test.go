package link

import (
	"net"
	"slices"
	"sync"
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
		Now: time.Now, Patience: func() time.Duration { return time.Minute }, Relieve: func() {}, Long: new(bounds.Places), Goroutines: &goroutines,
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = listener.Close()
		for i, l := range links {
			l.Close()
			_ = clients[i].Close()
		}
		host.Stop()
		goroutines.Wait()
	})
	for range n {
		client, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, client)
		nc, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
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
	links, clients, readers := parkable(t, &host, 4)
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

// A link that is no socket keeps its reader.
func TestPark_Pipe(t *testing.T) {
	if newLink(t).Park() {
		t.Error("parked")
	}
}
