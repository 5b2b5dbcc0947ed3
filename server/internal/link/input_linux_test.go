package link

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/invariants"
	"github.com/gozkd/gozkd/internal/testca"
	"github.com/gozkd/gozkd/server/internal/bounds"
)

// With many links a reader's buffer is at most twice as large as what has arrived, or SmallBytes,
// or as large as the frame if that has a place. Frames of any length arrive as they were sent, in
// one piece or in several.
func TestInput_ManyLinksHoldWhatArrived(t *testing.T) {
	for _, pieces := range []int{1, 3} {
		for _, length := range []int{0, 3, 100, SmallBytes, 2000, InputBytes/2 - 4, InputBytes / 2, InputBytes, 500_000} {
			l, send := newSocketLink(t)
			l.host.Memory.Limit.Store(8 * 10 * InputBytes)
			l.host.SetCount(11)
			frame := bytes.Repeat([]byte{7}, length)
			sent := append(binary.BigEndian.AppendUint32(nil, uint32(length)), frame...)
			var in Input
			for part := range pieces {
				var sending sync.WaitGroup
				sending.Go(func() { send(sent[part*len(sent)/pieces : (part+1)*len(sent)/pieces]) })
				for had := in.Len(); in.Len() < (part+1)*len(sent)/pieces; had = in.Len() {
					if err := in.Fill(l); err != nil {
						t.Fatal(err)
					}
					if held := len(in.buf); held > max(SmallBytes, 2*in.Len()) && (l.place == nil || l.place.Bytes != length || held != len(sent)) {
						t.Fatalf("%d bytes in %d pieces: the buffer has %d bytes for %d", length, pieces, held, in.Len())
					}
					if in.Len() == had {
						t.Fatal("nothing was read")
					}
				}
				sending.Wait()
			}
			if f, err := in.Frame(1 << 20); err != nil || !bytes.Equal(f, frame) || in.Len() != 0 {
				t.Fatalf("%d bytes in %d pieces: %d bytes arrived, %v, and %d more", length, pieces, len(f), err, in.Len())
			}
			place := 0
			if l.place != nil {
				place = l.place.Bytes
			}
			if held := l.host.Writes.Long.Held(); held != place || bounds.IsLong(length) != (held > 0) {
				t.Errorf("a frame of %d bytes has a place of %d, of %d in all", length, place, held)
			}
			if l.Drop(&in); l.host.Writes.Long.Held() != 0 {
				t.Errorf("%d bytes: the place is not given back", length)
			}
		}
	}
}

// If there are many links, few of them hold large buffers at the same time, and the others read all
// nevertheless. Links whose reader waits, also for the client to take its replies, hold none, and
// keep their bytes.
func TestInput_FewLargeBuffers(t *testing.T) {
	frame := bytes.Repeat([]byte{7}, InputBytes/2+1) // which stays in a large buffer
	var held []Input
	var host *Host
	large := 0
	for range 2 * fewLarge {
		l, send := newSocketLink(t)
		if host == nil {
			host = l.host
			host.Memory.Limit.Store(8 * 10 * InputBytes)
			host.SetCount(11)
		}
		l.host = host
		send(append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...))
		var in Input
		if err := in.Fill(l); err != nil {
			t.Fatal(err)
		}
		if len(in.buf) == InputBytes {
			large++
		} else if len(in.buf) > SmallBytes {
			t.Errorf("a buffer has %d bytes", len(in.buf))
		}
		for in.Len() < 4+len(frame) {
			if err := in.Fill(l); err != nil {
				t.Fatal(err)
			}
		}
		if f, err := in.Frame(1 << 20); err != nil || !bytes.Equal(f, frame) || in.Len() != 0 {
			t.Fatalf("%d bytes arrived, %v, and %d more", len(f), err, in.Len())
		}
		held = append(held, in)
	}
	if large != fewLarge {
		t.Errorf("%d links hold large buffers", large)
	}
	l, send := newSocketLink(t)
	l.host = host
	for i := range held {
		held[i].Back(0) // the requests are not handled yet
		if l.HoldInput(&held[i]); held[i].pooled != nil || !bytes.Equal(held[i].Bytes()[4:], frame) {
			t.Errorf("a reader that waits has %d bytes in a buffer of %d", held[i].Len(), len(held[i].buf))
		}
	}
	send(frame)
	var in Input
	if err := in.Fill(l); err != nil || in.Len() > SmallBytes && in.pooled == nil || host.large.Load() != 1 {
		t.Errorf("links that wait keep the large buffers: %d bytes, %d large buffers, %v", in.Len(), host.large.Load(), err)
	}
	in.Release()
	for i := range held {
		held[i].Release()
	}
	if n := host.large.Load(); n != 0 {
		t.Errorf("%d buffers count after their release", n)
	}
}

// A TLS connection that breaks, without a word of TLS, leaves no buffer behind.
func TestInput_BrokenTLS(t *testing.T) {
	cert := testca.New(t, "root").Issue(t, testca.Spec{CN: "member", Hosts: []string{"localhost"}})
	l, client := newSockets(t)
	sent := make(chan error, 1)
	go func() {
		_, err := tls.Client(client, cert.Client("localhost")).Write([]byte{0, 0, 0, 1, 7})
		sent <- err
	}()
	var in Input
	if _, err := l.Secure(&in, cert.Server(), time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := in.Fill(l); err != nil {
		t.Fatal(err)
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	if f, err := in.Frame(100); !bytes.Equal(f, []byte{7}) {
		t.Fatal(f, err)
	}
	_ = client.Close()
	if err := in.Fill(l); err == nil {
		t.Fatal("bytes came after the end")
	}
	if l.Drop(&in); l.host.large.Load() != 0 {
		t.Errorf("%d buffers are held after the end", l.host.large.Load())
	}
}

// While frames wait for places, another long frame waits with little in memory, and that is
// charged. A burst of short frames arrives nevertheless.
func TestInput_CrowdedLinksHoldLittle(t *testing.T) {
	l, send := newSocketLink(t)
	taken := l.host.Writes.Long.Take(1, l, time.Hour) // without a limit there is room for one
	first := make(chan struct{})
	go func() {
		l.host.Writes.Free(l.host.Writes.Long.Take(1, l, time.Hour))
		close(first)
	}()
	for !l.host.Writes.Long.Crowded() {
		runtime.Gosched()
	}
	var in Input
	short := append(binary.BigEndian.AppendUint32(nil, 9000), make([]byte, 9000)...)
	send(short)
	for in.Len() < len(short) {
		if err := in.Fill(l); err != nil {
			t.Fatal(err)
		}
	}
	if f, err := in.Frame(1 << 20); err != nil || len(f) != 9000 {
		t.Fatalf("%d bytes of a short frame arrived, %v", len(f), err)
	}
	frame := append(binary.BigEndian.AppendUint32(nil, 500_000), bytes.Repeat([]byte{7}, 500_000)...)
	send(frame[:100_000])
	if err := in.Fill(l); err != nil {
		t.Fatal(err)
	}
	filled := make(chan error)
	go func() { filled <- in.Fill(l) }()
	for !l.inLine.Load() {
		runtime.Gosched()
	}
	l.Lock()
	if unread, _, _ := l.Charged(); unread == 0 || unread > SmallBytes {
		t.Errorf("a long frame that waits has %d bytes in memory", unread)
	}
	l.Unlock()
	l.host.Writes.Free(taken)
	<-first
	if err := <-filled; err != nil {
		t.Fatal(err)
	}
	send(frame[100_000:])
	for in.Len() < len(frame) {
		if err := in.Fill(l); err != nil {
			t.Fatal(err)
		}
	}
	if f, err := in.Frame(1 << 20); err != nil || !bytes.Equal(f, frame[4:]) {
		t.Errorf("%d bytes arrived, %v", len(f), err)
	}
}

// newSocketLink returns a link that is a socket, and a function that sends to it.
func newSocketLink(t *testing.T) (l *Link, send func(b []byte)) {
	t.Helper()
	l, client := newSockets(t)
	return l, func(b []byte) {
		if _, err := client.Write(b); err != nil {
			t.Error(err)
		}
	}
}

// loopback returns a listener, which is closed when the test ends.
func loopback(t *testing.T, config net.ListenConfig) net.Listener {
	t.Helper()
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// accept returns both ends of a connection through a listener. The caller closes them.
func accept(t *testing.T, listener net.Listener) (nc, client net.Conn) {
	t.Helper()
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if nc, err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	return nc, client
}

// newSockets returns a link that is a socket, and its client.
func newSockets(t *testing.T) (l *Link, client net.Conn) {
	t.Helper()
	nc, client := accept(t, loopback(t, net.ListenConfig{}))
	var host Host
	host.Init(HostConfig{Now: time.Now, Patience: func() time.Duration { return time.Minute }, Relieve: func() {}, Writes: new(bounds.Writes), Goroutines: new(sync.WaitGroup)})
	l = &Link{}
	l.Init(&host, owner(0), nc)
	t.Cleanup(func() {
		l.Close()
		_ = client.Close()
	})
	return l, client
}

// A reader takes and gives back its buffer for each burst of requests without an allocation.
func TestInput_BuffersAllocateNothing(t *testing.T) {
	if invariants.Enabled {
		t.Skip("Release overwrites the buffer")
	}
	l, _ := newSocketLink(t)
	in := Input{host: l.host}
	for _, small := range []bool{true, false} {
		in.SetSmall(small)
		if n := testing.AllocsPerRun(1000, func() { in.borrow(); in.Release() }); n != 0 {
			t.Errorf("small %v: %v allocations", small, n)
		}
	}
}
