package peer

import (
	"io"
	"sync"
)

// outlet is where one peer's frames leave. Its goroutine writes them, and so does whoever calls Flush as far as the socket takes them at once: that
// spares a change of goroutine, and with it the wake-up of a thread.
type outlet struct {
	mu sync.Mutex // guards what follows; held by whoever takes frames from the queue until they are written. Flush only tries it
	// try is nil where all is left to the goroutine: there is no connection, or it is no socket.
	try  func(b []byte) (n int, err error)
	buf  []byte // reused
	rest []byte // of buf: what the socket did not take yet. Nothing may overtake it
	err  error  // of try
	// frames are those in rest, and the memory of the next ones.
	frames [][]byte
}

// flush writes what waits, or leaves it to the peer's goroutine.
func (p *peer) flush() {
	if p.queue.bytes.Load() > bufferBytes || !p.out.mu.TryLock() {
		p.queue.signal()
		return
	}
	defer p.out.mu.Unlock()
	o := &p.out
	if o.try == nil || len(o.rest) > 0 || o.err != nil {
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
	if o.rest, o.err = o.buf[n:], err; len(o.rest) > 0 || err != nil {
		p.queue.signal()
		return
	}
	p.written(o)
}

// written lets go of the frames that went out.
func (p *peer) written(o *outlet) {
	for i, frame := range o.frames {
		p.queue.written(frame)
		o.frames[i] = nil // else it lives until the slot is used again
	}
	o.frames, o.rest = o.frames[:0], nil
	if cap(o.buf) > 2*bufferBytes {
		o.buf = nil
	}
}

// attach lets flush write to a connection.
func (p *peer) attach(w io.Writer) {
	p.out.mu.Lock()
	p.out.try = newTryWriter(w)
	p.out.mu.Unlock()
}

// detach ends that. What was not written is lost.
func (p *peer) detach() {
	p.out.mu.Lock()
	p.out.try, p.out.err = nil, nil
	p.written(&p.out)
	p.out.mu.Unlock()
}

// drain writes all that waits, and a beat if one is due. What waits together goes out together: the buffer is flushed only when it is full or
// nothing waits.
func (p *peer) drain(w io.Writer, out *frameWriter, beat bool) error {
	o := &p.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return o.err
	}
	if len(o.rest) > 0 {
		if _, err := w.Write(o.rest); err != nil {
			return err
		}
		p.written(o)
	}
	if beat {
		if err := out.write(typeBeat, nil); err != nil {
			return err
		}
	}
	for {
		o.frames = p.queue.take(o.frames)
		if len(o.frames) == 0 {
			return out.flush()
		}
		for _, frame := range o.frames {
			if err := out.write(typeData, frame); err != nil {
				return err
			}
		}
		p.written(o)
	}
}
