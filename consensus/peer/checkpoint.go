package peer

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// SendCheckpoint connects to a peer and sends all bytes that write writes. The writer is buffered,
// and valid until write returns. SendCheckpoint waits until ReceiveCheckpoint of the peer returns;
// nil means that ReceiveCheckpoint returned nil. SendCheckpoint ends early with an error if ctx
// ends, after Close (ErrClosed), if the peer is removed or dropped (ErrUnknownPeer, ErrMoved), and
// if the peer refuses (*RefusedError).
func (n *Network) SendCheckpoint(ctx context.Context, to uint64, write func(io.Writer) error) error {
	address, life, err := n.enlist(to)
	if err != nil {
		return err
	}
	defer n.wg.Done()
	both, cancel := context.WithCancelCause(life)
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
	err = n.with(both, to, address, kindCheckpoint, silenceTimeout, silenceTimeout, func(ctx context.Context, cancel context.CancelCauseFunc, conn net.Conn) error {
		return sendCheckpoint(ctx, cancel, conn, to, write)
	})
	if cause := context.Cause(both); err != nil && cause != nil {
		return cause
	}
	return err
}

// enlist returns the address of a peer. Close waits for the caller until n.wg.Done.
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
	if p.connected {
		return p.at, p.ctx, nil
	}
	return p.address, p.ctx, nil
}

var errDone = errors.New("peer: checkpoint received")

// sendCheckpoint sends a checkpoint on a connection and returns the result of the other side.
func sendCheckpoint(ctx context.Context, cancel context.CancelCauseFunc, conn net.Conn, to uint64, write func(io.Writer) error) error {
	out := &checkpointWriter{out: newFrameWriter(conn)}
	var wg sync.WaitGroup
	// Stopped by closing conn, awaited below.
	wg.Go(func() {
		done, err := readReplies(conn, to)
		if done {
			err = errDone
		}
		cancel(err)
	})
	// Stopped by ctx and by closing conn, awaited below.
	wg.Go(func() { everyHeartbeat(ctx, out.beat) })
	if err := out.writeAll(write); err != nil {
		cancel(err) // without effect if the reader of replies has canceled with a reason
	}
	wg.Wait()
	if err := context.Cause(ctx); !errors.Is(err, errDone) {
		return err
	}
	return nil
}

// checkpointWriter splits a stream into frames, with heartbeats between them.
type checkpointWriter struct {
	mu    sync.Mutex // guards out
	out   *frameWriter
	total uint64 // bytes of the stream; only Write and writeAll use it
}

// writeAll sends all bytes that write writes, then the end.
func (p *checkpointWriter) writeAll(write func(io.Writer) error) error {
	w := bufio.NewWriterSize(p, bufferBytes-frameHeaderBytes) // so that a frame fills the buffer of out
	if err := write(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.out.write(typeEnd, binary.LittleEndian.AppendUint64(nil, p.total)) // an error is that of Flush
	return p.out.Flush()
}

// Write sends b in frames of at most maxPrealloc bytes.
func (p *checkpointWriter) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for written := 0; ; {
		piece := b[written:min(written+maxPrealloc, len(b))]
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

// beat sends a heartbeat, in case write has nothing to write. No heartbeat is needed while a frame
// is being written.
func (p *checkpointWriter) beat() error {
	if !p.mu.TryLock() {
		return nil
	}
	defer p.mu.Unlock()
	_ = p.out.write(typeHeartbeat, nil) // an error is that of Flush
	return p.out.Flush()
}

func (n *Network) receiveCheckpoint(ctx context.Context, cancel context.CancelCauseFunc, conn net.Conn, l *link) error {
	if err := n.acceptGreeting(conn, l); err != nil {
		return err
	}
	r := &checkpointReader{in: newFrameReader(newTimeoutReader(conn), maxPrealloc), begun: time.Now(), cancel: cancel}
	// These heartbeats do not depend on what arrives: the handler may be writing to a slow disk. If
	// the disk hangs, the sender must not wait for ever: it writes no checkpoint meanwhile.
	stop := startHeartbeats(ctx, conn, func() bool { return r.idle() < checkpointPatience })
	err := n.cfg.Handler.ReceiveCheckpoint(l.from, r)
	stop()
	switch {
	case err == nil:
		closeWithMessage(conn, appendFrame(nil, typeDone, nil))
		return nil
	case r.cause != nil:
		err = fmt.Errorf("peer: receive checkpoint: the stream broke after %d bytes: %w", r.total, r.cause)
	default:
		err = fmt.Errorf("peer: receive checkpoint: %w", err)
	}
	closeWithMessage(conn, failureFrame(err.Error()))
	return err
}

// checkpointPatience is how long the handler may take for what it has read, which is at most a
// frame and what its buffers hold.
const checkpointPatience = 2 * time.Minute

type checkpointReader struct {
	begun  time.Time
	readAt atomic.Int64 // when Read last returned, as time since begun; MaxInt64 during a Read

	in     *frameReader
	cancel context.CancelCauseFunc // closes the connection
	frame  []byte                  // memory of the last frame
	rest   []byte                  // unread part of frame
	total  uint64                  // bytes received
	err    error                   // of all later calls of Read
	cause  error                   // of the break of the stream
}

// Close breaks the stream.
func (r *checkpointReader) Close() error {
	r.cancel(net.ErrClosed)
	return nil
}

// Read returns io.EOF after a complete stream, and io.ErrUnexpectedEOF if the stream breaks.
func (r *checkpointReader) Read(b []byte) (int, error) {
	r.readAt.Store(math.MaxInt64)
	defer func() { r.readAt.Store(int64(time.Since(r.begun))) }()
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

// idle returns how long ago Read returned; it is negative during a Read.
func (r *checkpointReader) idle() time.Duration {
	return time.Since(r.begun) - time.Duration(r.readAt.Load())
}

func (r *checkpointReader) next() (end, cause error) {
	typ, payload, err := r.in.next(r.frame)
	switch {
	case err != nil:
		return io.ErrUnexpectedEOF, err
	case typ == typeHeartbeat:
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
	return io.ErrUnexpectedEOF, fmt.Errorf("%w: frame of type %d and %d bytes after %d bytes of a checkpoint", ErrCorrupt, typ, len(payload), r.total)
}
