package link

import (
	"bytes"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/gozkd/gozkd/server/internal/bounds"
)

// A socket's client whose frames are held back is alive while bytes come: those that are read, and
// those for which the input has no room. What was in the socket does not count again when it is
// read.
func TestReadAhead_Socket(t *testing.T) {
	nc, client := accept(t, loopback(t, net.ListenConfig{}))
	defer func() { _ = client.Close() }()
	var mu sync.Mutex
	now := time.Now()
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	tick := func() time.Time { mu.Lock(); defer mu.Unlock(); now = now.Add(time.Second); return now }
	var host Host
	host.Init(HostConfig{Now: clock, Relieve: func() {}, Writes: new(bounds.Writes), Goroutines: new(sync.WaitGroup)})
	l := &Link{}
	l.Init(&host, owner(0), nc)
	defer l.Close()
	send := func(b []byte) {
		if _, err := client.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	ping, frame := []byte{3: 8, 11: 11}, append([]byte{3: 60}, make([]byte, 60)...)
	var in Input
	defer in.Release()
	send(frame)
	if err := in.Fill(l); err != nil {
		t.Fatal(err)
	}
	l.SetHandling(true)
	sent := tick()
	send(append(bytes.Repeat(frame, 3), ping...))
	in.ReadAhead(l, time.Now().Add(time.Hour), ping)
	if f, err := in.Frame(100); err != nil || len(f) != 8 || in.Len() != 4*len(frame) || !l.LastAlive(clock()).Equal(sent) {
		t.Fatalf("%x %v, then %d bytes, alive at %v", f, err, in.Len(), l.LastAlive(clock()))
	}
	// More than the input holds, and less than what a socket does.
	more := bytes.Repeat(frame, 2*InputBytes/len(frame)-1)
	send(more)
	for q, ok := l.raw.Queued(); ok && q.Unread < len(more); q, ok = l.raw.Queued() {
		time.Sleep(time.Millisecond) // loopback delivers in moments
	}
	read := tick()
	if in.ahead(l, ping) || in.Len() != InputBytes || !l.LastAlive(clock()).Equal(read) {
		t.Fatalf("%d bytes, alive at %v: bytes that are read do not count", in.Len(), l.LastAlive(clock()))
	}
	for in.Len() > InputBytes/2 {
		if _, err := in.Frame(100); err != nil {
			t.Fatal(err)
		}
	}
	tick()
	if in.ahead(l, ping) || in.Len() != InputBytes || !l.LastAlive(clock()).Equal(read) {
		t.Fatalf("%d bytes, alive at %v: old bytes that are read count", in.Len(), l.LastAlive(clock()))
	}
	done := make(chan struct{})
	go func() { // ends with the link
		defer close(done)
		in.ReadAhead(l, time.Now().Add(time.Hour), ping)
	}()
	for !l.full.Load() {
		time.Sleep(time.Millisecond)
	}
	noted := func() bool {
		at := tick()
		l.NoteProgress(at)
		return l.LastAlive(clock()).Equal(at)
	}
	noted() // finds what is in the socket
	if noted() {
		t.Error("bytes that only wait count")
	}
	send(ping)
	for !noted() { // loopback delivers in moments
		time.Sleep(time.Millisecond)
	}
	send(bytes.Repeat(frame, InputBytes/len(frame)))
	for q, ok := l.raw.Queued(); ok && q.Unread < InputBytes; q, ok = l.raw.Queued() {
		time.Sleep(time.Millisecond)
	}
	noted()
	if !noted() {
		t.Error("a client whose socket may be full does not count")
	}
	l.Close()
	<-done
}

// Beside many links, frames that are read ahead are in no large buffer, and all there.
func TestReadAhead_ManyLinks(t *testing.T) {
	l, send := newSocketLink(t)
	l.host.Memory.Limit.Store(InputBytes)
	l.host.SetCount(1)
	ping, frame := []byte{3: 8, 11: 11}, append([]byte{3: 200}, bytes.Repeat([]byte{7}, 200)...)
	var in Input
	send(frame)
	if err := in.Fill(l); err != nil {
		t.Fatal(err)
	}
	const more = 100
	send(append(bytes.Repeat(frame, more), ping...))
	in.ReadAhead(l, time.Now().Add(time.Hour), ping)
	if in.pooled != nil || len(in.buf) > InputBytes || !bytes.Equal(in.Bytes(), append(ping, bytes.Repeat(frame, 1+more)...)) {
		t.Errorf("%d bytes were read ahead into a buffer of %d", in.Len(), len(in.buf))
	}
	l.Drop(&in)
}
