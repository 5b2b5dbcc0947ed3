package peer

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
)

// P1: frames of all sizes are received whole, unchanged, once, and in order.
func TestP1_Order(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		got := make(chan uint32, 10_000)
		a := w.start(t, 1)
		b := w.start(t, 2, func(m *member, _ *Config) {
			m.receive = func(_ uint64, frame []byte) { got <- crc32.ChecksumIEEE(frame) }
		})
		know(a, b)
		rnd := rand.New(rand.NewPCG(1, 2))
		sizes := []int{0, 1, frameHeaderBytes, bufferBytes - frameHeaderBytes, bufferBytes, maxPrealloc, maxPrealloc + 1, 5<<20 + 3}
		var want []uint32
		for i := range 2000 { // in all less than the queue holds
			n := rnd.IntN(300)
			if i%100 == 0 {
				n = sizes[i/100%len(sizes)]
			}
			frame := make([]byte, n)
			for j := range frame {
				frame[j] = byte(rnd.Uint32())
			}
			want = append(want, crc32.ChecksumIEEE(frame))
			if !a.Send(2, frame) {
				t.Fatalf("frame %d was dropped: %+v", i, a.status(2))
			}
		}
		for i := range want {
			if sum := <-got; sum != want[i] {
				t.Fatalf("frame %d has other contents", i)
			}
		}
	})
}

// P1: over connections that break again and again frames are lost, but received frames are in
// order, and none is received twice.
func TestP1_OrderOverConnections(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		var mu sync.Mutex
		var current net.Conn
		numbers := make(chan uint64, 1<<20)
		a := w.start(t, 1, func(_ *member, cfg *Config) {
			cfg.Dial = func(ctx context.Context, address string) (net.Conn, error) {
				conn, err := w.dial(ctx, address)
				mu.Lock()
				defer mu.Unlock()
				current = conn
				return conn, err
			}
		})
		b := w.start(t, 2, func(m *member, _ *Config) {
			m.receive = func(_ uint64, frame []byte) { numbers <- binary.LittleEndian.Uint64(frame) }
		})
		a.SetPeers(map[uint64]string{2: b.address})
		var sent, last uint64
		received, rounds := 0, 30
		if !w.pipes {
			rounds = 8 // each wait for the next connection is twice as long
		}
		for range rounds {
			a.await(2, "up")
			for taken := false; !taken || sent%1000 != 0; {
				sent++
				taken = a.Send(2, binary.LittleEndian.AppendUint64(make([]byte, 0, 108), sent)[:108])
			}
			n := <-numbers // at least one comes
			for {
				if n <= last {
					t.Fatalf("frame %d came after frame %d", n, last)
				}
				last = n
				received++
				if len(numbers) == 0 {
					break
				}
				n = <-numbers
			}
			mu.Lock()
			_ = current.Close()
			mu.Unlock()
			a.await(2, "down")
		}
		t.Logf("%d of %d frames came", received, sent)
	})
}

// P1: the last frame of an old connection is received before the first frame of a new one.
func TestP1_NewConnectionReplacesTheOld(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		entered, unregisterIncoming := make(chan string, 10), make(chan struct{})
		a := w.start(t, 1, func(m *member, _ *Config) {
			m.receive = func(_ uint64, frame []byte) { entered <- string(frame); <-unregisterIncoming }
		})
		old := w.call(t, a.address)
		old.exchangeGreetings(kindFrames, 2, 1)
		old.say(appendFrame(appendFrame(nil, typeData, []byte("old 1")), typeData, []byte("old 2")))
		if got := <-entered; got != "old 1" {
			t.Fatalf("received %q", got)
		}
		young := w.call(t, a.address)
		answered := make(chan greeting)
		go func() { answered <- young.exchangeGreetings(kindFrames, 2, 1) }()
		synctest.Wait()
		select {
		case <-answered:
			t.Fatal("the new connection was answered while Receive runs for the old one")
		default:
		}
		close(unregisterIncoming)
		if answer := <-answered; answer.kind != kindAccepted {
			t.Fatalf("answer is %+v", answer)
		}
		young.say(appendFrame(nil, typeData, []byte("new 1")))
		if got := <-entered; got != "new 1" {
			t.Fatalf("received %q, want the frame of the new connection", got)
		}
		old.ended()
	})
}

// P1: a damaged frame is not received, and its connection ends with a message that says why.
func TestP1_Damage(t *testing.T) {
	good := appendFrame(nil, typeData, []byte("good"))
	flip := func(at int) []byte {
		b := bytes.Clone(good)
		b[at] ^= 0x10
		return b
	}
	long := appendFrame(nil, typeData, nil)
	binary.LittleEndian.PutUint32(long, 1<<20+1)
	binary.LittleEndian.PutUint32(long[4:], typeField(typeData, 1<<20+1))
	for _, c := range []struct {
		name, reason string
		bytes        []byte
	}{
		{"payload", "a frame of 4 bytes has checksum", flip(frameHeaderBytes)},
		{"checksum", "a frame of 4 bytes has checksum", flip(8)},
		{"type", "frame of type 17", flip(4)},
		{"type without its check", "the header of a frame of 4 bytes has check", flip(5)},
		{"length without its check", "the header of a frame of 20 bytes has check", flip(0)},
		{"zeros", "frame of type 0", make([]byte, frameHeaderBytes)},
		{"length", "frame of 1048577 bytes, the maximum is 1048576", long},
		{"end", "frame of type 3 between frames", appendFrame(nil, typeEnd, nil)},
	} {
		t.Run(c.name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, w *world) {
				a := w.start(t, 1, func(_ *member, cfg *Config) { cfg.MaxFrame = 1 << 20 })
				for range 2 {
					s := w.call(t, a.address)
					s.exchangeGreetings(kindFrames, 2, 1)
					s.say(good)
					a.expect("2: good")
					s.say(c.bytes)
					typ, word, err := s.next()
					if err != nil || typ != typeFailed || !strings.Contains(word, c.reason) {
						t.Fatalf("last message is %d %q, %v", typ, word, err)
					}
					s.say(make([]byte, 1<<20)) // still read: otherwise TCP could have discarded the message
					_ = s.Close()
				}
				eventually(t, "a line is logged", func() bool { return a.log.Count("connection from peer refused") > 0 })
				if len(a.frames) != 0 {
					t.Fatalf("received %q", <-a.frames)
				}
			})
		})
	}
}

// P1: this message reaches the sender.
func TestP1_DamageIsReportedToTheSender(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		address, calls := w.receptionist(t)
		a := w.start(t, 1)
		a.SetPeers(map[uint64]string{2: address})
		s := <-calls
		s.accepted()
		a.await(2, "up")
		s.say(failureFrame("bytes were damaged\nbadly"))
		a.await(2, "down")
		if got := a.status(2).LastError; got == nil || got.Error() != "peer: member 2 refuses: bytes were damaged\nbadly" {
			t.Errorf("last error is %v", got)
		}
	})
}

// P2: if the peer reads nothing, Send does not block, and its queue is bounded.
func TestP2_QueueIsBounded(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		const limit, size = 1 << 20, 1000
		entered, unregisterIncoming := make(chan struct{}, 100_000), make(chan struct{})
		a := w.start(t, 1, func(_ *member, cfg *Config) { cfg.QueueBytes = limit })
		b := w.start(t, 2, func(m *member, _ *Config) {
			m.receive = func(uint64, []byte) { entered <- struct{}{}; <-unregisterIncoming }
		})
		know(a, b)
		a.Send(2, make([]byte, size))
		<-entered
		sent := 0
		for refused := 0; refused < 100; { // the network's goroutine may still move frames to the socket
			if a.Send(2, make([]byte, size)) {
				sent += size
				refused = 0
			} else {
				refused++
				eventually(t, "the queue stands still", func() bool { return a.status(2).QueuedBytes >= limit || a.Send(2, nil) })
			}
			if got := a.status(2).QueuedBytes; got >= limit+size+frameHeaderBytes {
				t.Fatalf("%d bytes wait, the bound is %d", got, limit)
			}
			if sent > 64<<20 {
				t.Fatalf("%d bytes were queued although nobody reads", sent)
			}
		}
		close(unregisterIncoming)
		eventually(t, "the queue is empty", func() bool { return a.status(2).QueuedBytes == 0 })
		if !a.Send(2, make([]byte, size)) {
			t.Error("refused with an empty queue")
		}
	})
}

// P2: a frame above QueueBytes is sent even if other frames keep the queue filled.
func TestP2_FrameAboveTheQueue(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		lengths := make(chan int, 100)
		a := w.start(t, 1, func(_ *member, cfg *Config) { cfg.QueueBytes, cfg.MaxFrame = 1000, 1<<20 })
		b := w.start(t, 2, func(m *member, _ *Config) { m.receive = func(_ uint64, frame []byte) { lengths <- len(frame) } })
		know(a, b)
		for _, n := range []int{1, 1 << 20} {
			if !a.Send(2, make([]byte, n)) {
				t.Fatalf("frame of %d bytes refused", n)
			}
		}
		if x, y := <-lengths, <-lengths; x != 1 || y != 1<<20 {
			t.Errorf("received %d and %d bytes", x, y)
		}
		for range 3 {
			if a.Send(2, make([]byte, 1<<20+1)) {
				t.Error("a frame above MaxFrame was taken")
			}
		}
		if got := a.log.Count("frame too long"); got != 1 || a.status(2).LastError == nil {
			t.Errorf("%d lines and %v about it", got, a.status(2).LastError)
		}
	})
}

// P5: a peer that reads nothing is disconnected after 5 s, its queue is dropped, and it is dialed
// again.
func TestP5_StoppedReader(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		unregisterIncoming := make(chan struct{})
		a := w.start(t, 1)
		b := w.start(t, 2, func(m *member, _ *Config) { m.receive = func(uint64, []byte) { <-unregisterIncoming } })
		know(a, b)
		began := time.Now()
		for range 1000 {
			a.Send(2, make([]byte, 1000))
		}
		a.await(2, "down")
		if took := time.Since(began); took < silenceTimeout-heartbeatInterval || took > silenceTimeout+heartbeatInterval {
			t.Errorf("disconnected after %v", took)
		}
		if got := a.status(2); got.Connected || got.QueuedBytes != 0 || !errors.Is(got.LastError, ErrSilent) {
			t.Errorf("status is %+v", got)
		}
		close(unregisterIncoming)
		a.await(2, "up")
	})
}

// P5: the same over TCP, where the kernel accepts bytes long after the peer has stopped reading.
func TestP5_StoppedReader_Loopback(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 5 s")
	}
	t.Parallel()
	w := &world{}
	unregisterIncoming := make(chan struct{})
	a := w.start(t, 1)
	b := w.start(t, 2, func(m *member, _ *Config) { m.receive = func(uint64, []byte) { <-unregisterIncoming } })
	know(a, b)
	a.Send(2, []byte("little"))
	a.await(2, "down")
	if got := a.status(2).LastError; !errors.Is(got, ErrSilent) {
		t.Errorf("last error is %v", got)
	}
	close(unregisterIncoming)
}

// P5: a slow peer is not disconnected, even if it handles frames long after it has read them.
func TestP5_SlowReader(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		received := make(chan int, 1000)
		a := w.start(t, 1)
		b := w.start(t, 2, func(m *member, _ *Config) {
			m.receive = func(_ uint64, frame []byte) { time.Sleep(2 * time.Second); received <- len(frame) }
		})
		know(a, b)
		for range 500 {
			a.Send(2, make([]byte, 100))
		}
		for range 500 {
			<-received
		}
		if n := len(a.statesOf(2)); n != 0 {
			t.Errorf("%d changes of state: %s", n, <-a.statesOf(2))
		}
	})
}

// P5: a connection without frames for an hour is not disconnected.
func TestP5_Idle(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.start(t, 1), w.start(t, 2)
		know(a, b)
		time.Sleep(time.Hour)
		a.Send(2, []byte("still there?"))
		b.expect("1: still there?")
		if n := len(a.statesOf(2)) + len(b.statesOf(1)); n != 0 {
			t.Errorf("%d changes of state", n)
		}
	})
}

// P5: the acceptor closes a connection on which not even heartbeats arrive.
func TestP5_SilentSender(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start(t, 1)
		for _, kind := range []uint32{kindFrames, kindCheckpoint} {
			s := w.call(t, a.address)
			if kind == kindFrames {
				s.exchangeGreetings(kind, 2, 1)
			}
			began := time.Now()
			s.ended()
			if took := time.Since(began); took != silenceTimeout {
				t.Errorf("kind %d: closed after %v", kind, took)
			}
		}
	})
}

// Frames that wait together are written together.
func TestFramesShareAWrite(t *testing.T) {
	p := newPeer(&Network{cfg: Config{QueueBytes: 1 << 30, Logger: hclog.NewNullLogger()}}, 2)
	p.queue.open()
	w := &countingWriter{began: make(chan struct{}), proceed: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- p.write(ctx, w) }()
	<-w.began // with the beat that comes first
	const n, size = 1000, 100
	for range n {
		p.queue.put(make([]byte, size))
	}
	p.queue.signal()
	close(w.proceed)
	eventually(t, "all is written", func() bool { return w.bytes.Load() == n*(frameHeaderBytes+size)+frameHeaderBytes })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	// The buffer holds 64 KiB, so the 112,000 bytes need two writes.
	if got := w.writes.Load(); got != 3 {
		t.Errorf("a heartbeat and %d frames took %d writes, want 3", n, got)
	}
}

// countingWriter counts writes. The first write blocks.
type countingWriter struct {
	began, proceed chan struct{}
	writes, bytes  atomic.Int64
}

func (w *countingWriter) Write(p []byte) (int, error) {
	if w.writes.Add(1) == 1 {
		close(w.began)
		<-w.proceed
	}
	w.bytes.Add(int64(len(p)))
	return len(p), nil
}
