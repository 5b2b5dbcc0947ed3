package link

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/testca"
)

// Frames arrive in order, in pieces of any size, also if the reader waits in between for something
// other than the client, and then holds no large buffer beside many links. Those frames of which
// bytes are left out have all other bytes, hold little meanwhile, and no place.
func TestInput_LeaveOut(t *testing.T) {
	type frame struct {
		bytes []byte
		at, n int // what is left out, if it has not arrived before that is known
	}
	outer, cert := t, testca.New(t, "root").Issue(t, testca.Spec{CN: "member", Hosts: []string{"localhost"}})
	leftOut := make(map[string]int)
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]string{"socket", "TLS", "pipe"}).Draw(t, "connection")
		var frames []frame
		var stream []byte
		for range rapid.IntRange(1, 4).Draw(t, "frames") {
			f := frame{bytes: make([]byte, rapid.OneOf(rapid.IntRange(3, 3000), rapid.IntRange(3, 150_000)).Draw(t, "length"))}
			for i := range f.bytes {
				f.bytes[i] = byte(i * 7 >> 3)
			}
			if rapid.Bool().Draw(t, "leave out") {
				f.at = rapid.IntRange(0, min(len(f.bytes)-2, LongestHead)).Draw(t, "at")
				f.n = rapid.IntRange(1, len(f.bytes)-1-f.at).Draw(t, "bytes")
			}
			frames = append(frames, f)
			stream = append(binary.BigEndian.AppendUint32(stream, uint32(len(f.bytes))), f.bytes...)
		}
		piece := len(stream)/rapid.IntRange(1, 50).Draw(t, "pieces") + 1
		l, client := newSockets(outer)
		if kind == "pipe" {
			host, here := l.host, net.Conn(nil)
			here, client = net.Pipe()
			l = &Link{}
			l.Init(host, owner(0), here)
		}
		defer l.Close()
		setMany := func(many bool) {
			l.host.Memory.Limit.Store(InputBytes)
			if !many {
				l.host.Memory.Limit.Store(8 * InputBytes)
			}
			l.host.SetCount(1)
		}
		setMany(rapid.Bool().Draw(t, "many links"))
		between, fills := rapid.IntRange(1, 4).Draw(t, "fills between waits"), 0
		changes := rapid.Bool().Draw(t, "the number of links changes")
		var in Input
		var sending sync.WaitGroup
		defer sending.Wait()
		reads := make(chan struct{}, 1) // the next piece is sent when all others may have been read
		defer close(reads)
		sending.Go(func() { // ends with the stream, or with the link
			to := client
			if kind == "TLS" {
				secured := tls.Client(client, cert.Client("localhost"))
				if err := secured.Handshake(); err != nil {
					t.Error(err)
				}
				to = secured
			}
			for b := range slices.Chunk(stream, piece) {
				<-reads
				if _, err := to.Write(b); err != nil {
					t.Error(err)
					return
				}
			}
		})
		if kind == "TLS" {
			if _, err := l.Secure(&in, cert.Server(), time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			in.SetSmall(false)
		}
		for i, f := range frames {
			got, err := in.Frame(1 << 20)
			for ; got == nil && err == nil; got, err = in.Frame(1 << 20) {
				if f.n > 0 && in.LeftOut == 0 && in.Len() >= 4+f.at && in.Len() < 4+f.at+f.n {
					in.LeaveOut(l, f.at, f.n)
					if l.place != nil || len(in.buf) >= InputBytes {
						t.Fatalf("frame %d: %d bytes hold %d, with a place: %v", i, in.Len(), len(in.buf), l.place != nil)
					}
				}
				select {
				case reads <- struct{}{}:
				default:
				}
				if err := in.Fill(l); err != nil {
					t.Fatal(err)
				}
				if fills++; fills%between == 0 {
					if changes {
						setMany(!l.host.Many())
					}
					if l.HoldInput(&in); l.host.Many() && in.pooled != nil {
						t.Fatalf("%d bytes hold a large buffer while the reader waits", in.Len())
					}
				}
			}
			want := f.bytes
			if in.LeftOut > 0 {
				want = slices.Concat(f.bytes[:f.at], f.bytes[f.at+f.n:])
				leftOut[kind]++
			}
			if err != nil || !bytes.Equal(got, want) || in.LeftOut != 0 && in.LeftOut != f.n {
				t.Fatalf("frame %d of %d bytes without the %d at %d: %d bytes, %d left out, %v", i, len(f.bytes), f.n, f.at, len(got), in.LeftOut, err)
			}
			in.LeftOut = 0
		}
		if in.Len() != 0 {
			t.Fatalf("%d bytes more", in.Len())
		}
		l.Drop(&in)
		if unread, queued, _ := l.Charged(); l.host.Writes.Long.Held() != 0 || l.host.large.Load() != 0 || unread != 0 || queued != 0 {
			t.Fatalf("in the end %d bytes of places, %d large buffers, %d and %d bytes", l.host.Writes.Long.Held(), l.host.large.Load(), unread, queued)
		}
	})
	if len(leftOut) < 3 {
		t.Errorf("of some kinds of connections nothing was left out: %v", leftOut)
	}
}

// Bytes that are left out of a frame by TLS take few turns of the reader, also beside many links.
func TestInput_LeaveOutByTLS(t *testing.T) {
	const bytesLeftOut, most = 200_000, 50
	cert := testca.New(t, "root").Issue(t, testca.Spec{CN: "member", Hosts: []string{"localhost"}})
	l, client := newSockets(t)
	l.host.Memory.Limit.Store(InputBytes)
	l.host.SetCount(1)
	sent := make(chan error, 1)
	go func() {
		frame := append(binary.BigEndian.AppendUint32(nil, bytesLeftOut+1), make([]byte, bytesLeftOut+1)...)
		_, err := tls.Client(client, cert.Client("localhost")).Write(frame)
		sent <- err
	}()
	var in Input
	if _, err := l.Secure(&in, cert.Server(), time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	turns := 0
	for f, err := in.Frame(1 << 20); f == nil; f, err = in.Frame(1 << 20) {
		if err == nil {
			err = in.Fill(l)
		}
		if turns++; err != nil || turns > most {
			t.Fatalf("turn %d: %v", turns, err)
		}
		if in.LeftOut == 0 && in.Len() >= 4 {
			in.LeaveOut(l, 0, bytesLeftOut)
		}
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	l.Drop(&in)
}
