package peer

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// SendCheckpoint connects to a peer and sends it what write writes. The writer is buffered, and write's own until it returns. Nil means
// that the peer has taken it: its ReceiveCheckpoint returned nil. It blocks until then, and ends early with ctx, with Close
// (ErrClosed), when the peer is dropped (ErrUnknownPeer, ErrMoved), and when it refuses (*RefusedError).
func (n *Network) SendCheckpoint(ctx context.Context, to uint64, write func(io.Writer) error) error {
	address, life, err := n.enlist(to)
	if err != nil {
		return err
	}
	defer n.wg.Done()
	both, cancel := context.WithCancelCause(life)
	ended := make(chan struct{})
	defer func() { <-ended }()
	defer cancel(nil)
	// Stopped by cancel or ctx, awaited by the deferred function above.
	go func() {
		defer close(ended)
		select {
		case <-ctx.Done():
			cancel(context.Cause(ctx))
		case <-both.Done():
		}
	}()
	err = n.with(both, to, address, kindCheckpoint, func(ctx context.Context, cancel context.CancelCauseFunc, conn net.Conn) error {
		return sendCheckpoint(ctx, cancel, conn, to, write)
	})
	if cause := context.Cause(both); err != nil && cause != nil {
		return cause
	}
	return err
}

// enlist finds a peer's address and lets Close wait for the caller until n.wg.Done.
func (n *Network) enlist(to uint64) (address string, life context.Context, err error) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	p := n.peers[to]
	switch {
	case n.closed:
		return "", nil, ErrClosed
	case p == nil || p.address == "":
		return "", nil, ErrUnknownPeer
	}
	n.wg.Add(1)
	return p.address, p.ctx, nil
}

// errDone is the cause of the end of a connection whose checkpoint was taken.
var errDone = errors.New("peer: checkpoint taken")

// sendCheckpoint sends a checkpoint on a connection and returns the other side's verdict.
func sendCheckpoint(ctx context.Context, cancel context.CancelCauseFunc, conn net.Conn, to uint64, write func(io.Writer) error) error {
	out := &pieces{out: newFrameWriter(conn)}
	var wg sync.WaitGroup
	// Stopped by closing conn, awaited below.
	wg.Go(func() {
		done, err := listen(conn, to)
		if done {
			err = errDone
		}
		cancel(err)
	})
	// Stopped by ctx and by closing conn, awaited below.
	wg.Go(func() { everyBeat(ctx, out.beat) })
	if err := out.writeAll(write); err != nil {
		cancel(err) // without effect if the listener knows the reason already
	}
	wg.Wait()
	if err := context.Cause(ctx); !errors.Is(err, errDone) {
		return err
	}
	return nil
}

// pieces turns a stream into frames, with beats between them.
type pieces struct {
	mu    sync.Mutex // guards out
	out   *frameWriter
	total uint64 // bytes of the stream; only Write and writeAll use it
}

// writeAll sends all that write writes, and the end behind it.
func (p *pieces) writeAll(write func(io.Writer) error) error {
	w := bufio.NewWriterSize(p, bufferBytes-headBytes) // so that a frame fills the buffer below
	if err := write(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.out.write(typeEnd, binary.LittleEndian.AppendUint64(nil, p.total)); err != nil {
		return err
	}
	return p.out.flush()
}

// Write sends b in frames of at most trustBytes.
func (p *pieces) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for written := 0; ; {
		piece := b[written:min(written+trustBytes, len(b))]
		if len(piece) == 0 {
			return written, nil
		}
		if err := p.out.write(typeData, piece); err != nil {
			return written, err
		}
		written += len(piece)
		p.total += uint64(len(piece))
	}
}

// beat tells the other side that we are there, also while write has nothing to write. When something is just being written
// there is no need to.
func (p *pieces) beat() error {
	if !p.mu.TryLock() {
		return nil
	}
	defer p.mu.Unlock()
	if err := p.out.write(typeBeat, nil); err != nil {
		return err
	}
	return p.out.flush()
}

// receiveCheckpoint hands a checkpoint to the Handler and tells the sender what came of it.
func (n *Network) receiveCheckpoint(ctx context.Context, conn net.Conn, from uint64) error {
	if err := n.welcome(conn, from); err != nil {
		return err
	}
	r := &checkpointReader{in: newFrameReader(&patient{conn: conn}, trustBytes)}
	// These beats come by the clock and not with reads: what is taken may have to go to a slow disk.
	stop := startBeats(ctx, conn, func() bool { return true })
	err := n.cfg.Handler.ReceiveCheckpoint(from, r)
	stop()
	switch {
	case err == nil:
		part(conn, appendFrame(nil, typeDone, nil))
		return nil
	case r.cause != nil:
		err = fmt.Errorf("peer: checkpoint broken off after %d bytes: %w", r.total, r.cause)
	default:
		err = fmt.Errorf("peer: checkpoint not taken: %w", err)
	}
	part(conn, failure(err.Error()))
	return err
}

// checkpointReader is the stream that a Handler reads.
type checkpointReader struct {
	in    *frameReader
	frame []byte // memory of the last frame
	rest  []byte // of it, not yet read
	total uint64 // bytes that came
	err   error  // what Read returns from now on
	cause error  // what broke the stream
}

// Read gives io.EOF behind the last byte of a stream that came whole, io.ErrUnexpectedEOF where it breaks.
func (r *checkpointReader) Read(b []byte) (int, error) {
	for len(r.rest) == 0 && r.err == nil && len(b) > 0 {
		r.err, r.cause = r.next()
	}
	if len(r.rest) == 0 {
		return 0, r.err
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// next reads a frame.
func (r *checkpointReader) next() (end, cause error) {
	typ, payload, err := r.in.next(r.frame)
	switch {
	case err != nil:
		return io.ErrUnexpectedEOF, err
	case typ == typeBeat:
		return nil, nil
	case typ == typeData:
		r.frame, r.rest = payload, payload
		r.total += uint64(len(payload))
		return nil, nil
	case typ == typeEnd && len(payload) == 8 && binary.LittleEndian.Uint64(payload) == r.total:
		return io.EOF, nil
	case typ == typeFailed:
		return io.ErrUnexpectedEOF, errors.New(reasonText(string(payload)))
	}
	return io.ErrUnexpectedEOF, fmt.Errorf("%w: frame of type %d and %d bytes behind %d bytes of a checkpoint", ErrCorrupt, typ, len(payload), r.total)
}
