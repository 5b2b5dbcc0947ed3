package peer

import (
	"io"
	"sync"

	"github.com/gozkd/gozkd/internal/rawio"
)

// directWriter lets a caller of Flush write frames of a peer, as many as the socket accepts at
// once, instead of the goroutine of the peer. This saves a switch of goroutines, and the wake-up of
// a thread.
type directWriter struct {
	// mu guards the fields below. A goroutine holds mu from taking frames from the queue until they
	// are written, so Flush must not wait for mu.
	mu sync.Mutex
	// try writes without waiting. nil: there is no connection, or it can only write with waiting.
	try       func(b []byte) (n int, err error)
	busy      bool   // frames were written since the last tick of the heartbeat
	buf       []byte // reused
	unwritten []byte // part of buf that the socket has not accepted yet; later frames must not overtake it
	err       error  // of try
	// frames are the frames in unwritten, or memory for the next frames.
	frames [][]byte
}

// flush writes queued frames, or wakes the goroutine of the peer.
func (p *peer) flush() {
	if p.queue.bytes.Load() > bufferBytes || !p.direct.mu.TryLock() {
		p.queue.signal()
		return
	}
	defer p.direct.mu.Unlock()
	o := &p.direct
	if o.try == nil || len(o.unwritten) > 0 || o.err != nil {
		p.queue.signal()
		return
	}
	o.frames = p.queue.take(o.frames)
	if len(o.frames) == 0 {
		return
	}
	o.buf = o.buf[:0]
	for _, frame := range o.frames {
		o.buf = appendFrame(o.buf, typeData, frame)
	}
	n, err := o.try(o.buf)
	if o.unwritten, o.err = o.buf[n:], err; len(o.unwritten) > 0 || err != nil {
		p.queue.signal()
		return
	}
	p.written(o)
}

func (p *peer) written(o *directWriter) {
	o.busy = o.busy || len(o.frames) > 0
	for i, frame := range o.frames {
		p.queue.written(frame)
		o.frames[i] = nil // otherwise the frame stays in memory until the slot is reused
	}
	o.frames, o.unwritten = o.frames[:0], nil
	if cap(o.buf) > 2*bufferBytes {
		o.buf = nil
	}
}

// A tryWriter is a connection that can write without waiting although it is no socket, such as one
// within the process. TryWrite writes as much as the connection accepts at once.
type tryWriter interface {
	TryWrite(b []byte) (n int, err error)
}

// attach lets flush write to a connection directly.
func (p *peer) attach(w io.Writer) {
	p.direct.mu.Lock()
	defer p.direct.mu.Unlock()
	if t, ok := w.(tryWriter); ok {
		p.direct.try = t.TryWrite
	} else if socket := rawio.NewConn(w); socket != nil {
		p.direct.try = func(b []byte) (int, error) { return socket.TryWrite(b, false) }
	}
}

// detach undoes attach. Unwritten frames are lost.
func (p *peer) detach() {
	p.direct.mu.Lock()
	p.direct.try, p.direct.err = nil, nil
	p.written(&p.direct)
	p.direct.busy = false
	p.direct.mu.Unlock()
}

// drain writes all queued frames and, at a tick of the heartbeat, a heartbeat unless frames were
// written since the last tick, which tell as much. The buffer is flushed only when it is full or
// the queue is empty.
func (p *peer) drain(w io.Writer, out *frameWriter, tick bool) error {
	o := &p.direct
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return o.err
	}
	if len(o.unwritten) > 0 {
		if _, err := w.Write(o.unwritten); err != nil {
			return err
		}
		p.written(o)
	}
	if tick && !o.busy {
		_ = out.write(typeHeartbeat, nil) // an error is that of Flush
	}
	o.busy = o.busy && !tick
	for {
		o.frames = p.queue.take(o.frames)
		if len(o.frames) == 0 {
			return out.Flush()
		}
		for _, frame := range o.frames {
			if err := out.write(typeData, frame); err != nil {
				return err
			}
		}
		p.written(o)
	}
}
