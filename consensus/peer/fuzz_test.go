package peer

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"testing"

	"github.com/hashicorp/go-hclog"
)

// P6: no input causes a panic, or allocates memory for bytes that did not arrive, and a frame that
// is read encodes to the same bytes.
func FuzzFrames(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(appendFrame(nil, typeHeartbeat, nil))
	f.Add(appendFrame(appendFrame(nil, typeData, []byte("abc")), typeEnd, make([]byte, 8)))
	f.Add([]byte{0xff, 0xff, 0xff, 0x0f, 1, 0, 0, 0, 0, 0, 0, 0, 'x'})
	f.Fuzz(func(t *testing.T, b []byte) {
		in := newFrameReader(bytes.NewReader(b), DefaultMaxFrame)
		var again []byte
		for {
			typ, payload, err := in.next(nil)
			if err != nil {
				if payload != nil {
					t.Fatalf("a payload with error %v", err)
				}
				if errors.Is(err, io.EOF) && len(again) != len(b) || !bytes.HasPrefix(b, again) {
					t.Fatalf("%x was read as %x", b, again)
				}
				if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, ErrCorrupt) {
					t.Fatal(err)
				}
				return
			}
			if cap(payload) > len(payload) {
				t.Fatalf("%d bytes are held for a payload of %d", cap(payload), len(payload))
			}
			again = appendFrame(again, typ, payload)
		}
	})
}

// P6, P3: the same for a greeting.
func FuzzGreeting(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add((&greeting{kind: kindFrames, from: 1, to: 2, contents: []byte("abc")}).append(nil))
	f.Add((&greeting{kind: kindRefused, from: 1, to: 2, contents: []byte("no")}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		g, err := readGreeting(r)
		var version *versionError
		switch {
		case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, ErrCorrupt) && !errors.As(err, &version):
			t.Fatal(err)
		case err != nil:
			return
		}
		if len(g.contents) > MaxHello {
			t.Fatalf("a hello of %d bytes", len(g.contents))
		}
		again := g.append(nil)
		if g.kind == kindRefused && b[8] != 1 { // of another version
			copy(again[8:12], b[8:12])
			copy(again[36:40], b[36:40])
		}
		if !bytes.Equal(again, b[:len(b)-r.Len()]) {
			t.Fatalf("%x was read as %x", b, again)
		}
	})
}

// P6: a wrong length.
func TestP6_LyingLength(t *testing.T) {
	frame := appendFrame(nil, typeData, nil)
	const lie = 0x12 << 24 // 288 MiB, which is below the limit
	binary.LittleEndian.PutUint32(frame, lie)
	binary.LittleEndian.PutUint32(frame[4:], typeField(typeData, lie))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := newFrameReader(bytes.NewReader(append(frame, "few bytes"...)), DefaultMaxFrame).next(nil)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > maxPrealloc+4*bufferBytes {
		t.Errorf("%d bytes were allocated for 9", got)
	}
}

// A frame of up to maxPrealloc bytes is allocated once, in its own size.
func TestReadingAllocatesTheFrameAlone(t *testing.T) {
	for _, n := range []int{1, 100, bufferBytes, maxPrealloc} {
		frame := appendFrame(nil, typeData, make([]byte, n))
		source := &repeating{b: frame}
		in := newFrameReader(source, DefaultMaxFrame)
		if got := fewestAllocs(func() {
			if _, payload, err := in.next(nil); err != nil || len(payload) != n {
				t.Fatal(err)
			}
		}); got != 1 {
			t.Errorf("a frame of %d bytes takes %v allocations", n, got)
		}
		buffer := make([]byte, n)
		if got := fewestAllocs(func() {
			if _, _, err := in.next(buffer); err != nil {
				t.Fatal(err)
			}
		}); got != 0 {
			t.Errorf("a frame of %d bytes in reused memory takes %v allocations", n, got)
		}
	}
}

// fewestAllocs returns how often f allocates. testing.AllocsPerRun also counts what the watchdog
// and goroutines of earlier tests allocate meanwhile, and on a busy machine that is a long time.
// They can only add, so the fewest of several short measurements are those of f.
func fewestAllocs(f func()) float64 {
	fewest := testing.AllocsPerRun(10, f)
	for range 9 {
		fewest = min(fewest, testing.AllocsPerRun(10, f))
	}
	return fewest
}

// repeating is a stream that repeats b.
type repeating struct {
	b  []byte
	at int
}

func (r *repeating) Read(p []byte) (int, error) {
	n := copy(p, r.b[r.at:])
	r.at = (r.at + n) % len(r.b)
	return n, nil
}

// P8: nothing that a stranger says makes a member with a secret believe it, or panic: neither a
// hello nor whatever follows, and neither of a caller nor of a called one.
func FuzzHello(f *testing.F) {
	for kind := uint32(kindFrames); kind <= kindDenied; kind++ {
		ext := extension{flags: flagAlways | flagSecret, nonce: nonce{1}}
		g := greeting{kind: kind, from: 2, to: 1, contents: ext.append([]byte("i am 2"))}
		reply := greeting{kind: kindProof, from: 2, to: 1, contents: make([]byte, 32)}
		said := reply.append(g.append(nil))
		f.Add(false, append(said, appendFrame(nil, typeData, []byte("x"))...))
		f.Add(true, said)
	}
	f.Fuzz(func(t *testing.T, called bool, b []byte) {
		m := &member{t: t, id: 1, frames: make(chan string, 1)}
		m.accept = func(uint64, []byte) error { t.Error("a stranger is judged as a member"); return nil }
		m.receive = func(uint64, []byte) { t.Error("a frame of a stranger is received") }
		n := newNetwork(Config{Self: 1, Handler: m, Secret: []byte(secretA), MaxFrame: 1 << 20, Logger: hclog.NewNullLogger()})
		defer n.stop(ErrClosed)
		ours, theirs := net.Pipe()
		done := make(chan struct{})
		go func() { // ends when theirs is closed, awaited below
			defer close(done)
			if called {
				if err := n.exchangeGreetings(ours, 2, kindFrames, newNonce()); err == nil {
					t.Error("a stranger is accepted")
				}
				_ = ours.Close()
			} else {
				ctx, cancel := context.WithCancelCause(n.life)
				n.serve(ctx, &visitor{conn: ours, cancel: cancel})
			}
		}()
		go func() { _, _ = io.Copy(io.Discard, theirs) }() // ends with theirs
		_, _ = theirs.Write(b)                             // an error says that the member has heard enough
		_ = theirs.Close()
		<-done
	})
}
