package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/internal/rawio"
)

// closeWith closes conn when ctx ends, or when release is called; release returns when conn is
// closed. So no read or write outlives ctx.
func closeWith(ctx context.Context, conn net.Conn) (release func()) {
	shut := sync.OnceFunc(func() { _ = conn.Close() }) // the error does not matter: all that must have arrived was answered
	stop := context.AfterFunc(ctx, shut)
	return func() {
		stop()
		shut()
	}
}

// timeoutReader reads a connection, and returns ErrSilent if nothing arrives for silenceTimeout.
type timeoutReader struct {
	conn     net.Conn
	in       io.Reader     // of conn
	drained  func()        // called before each read of conn, if not nil
	progress atomic.Uint64 // counts reads and received frames
}

func newTimeoutReader(conn net.Conn) *timeoutReader {
	if socket := rawio.NewConn(conn); socket != nil {
		return &timeoutReader{conn: conn, in: &socketReader{socket: socket}}
	}
	return &timeoutReader{conn: conn, in: conn}
}

func (p *timeoutReader) Read(b []byte) (int, error) {
	if p.drained != nil {
		p.drained()
	}
	if err := p.conn.SetReadDeadline(time.Now().Add(silenceTimeout)); err != nil {
		return 0, err
	}
	n, err := p.in.Read(b)
	p.progress.Add(1)
	return n, silence(err)
}

// socketReader reads a socket without telling the runtime.
type socketReader struct {
	socket *rawio.Conn
	b      []byte // of Read
}

// Read implements io.Reader. b is not empty.
func (r *socketReader) Read(b []byte) (int, error) {
	r.b = b
	n, err := r.socket.Read(r)
	r.b = nil
	return n, err
}

func (r *socketReader) Borrow() []byte { return r.b }

func (r *socketReader) Return() {}

func silence(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return ErrSilent
	}
	return err
}

// everyHeartbeat calls f at each heartbeatInterval, until f fails or ctx ends.
func everyHeartbeat(ctx context.Context, f func() error) {
	ticker := time.NewTicker(heartbeatInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if f() != nil {
				return // the connection is broken, which its reader notices as well
			}
		case <-ctx.Done():
			return
		}
	}
}

// startHeartbeats sends a heartbeat on an accepted connection each second if due returns true.
// Until stop has returned, nothing else may write.
func startHeartbeats(ctx context.Context, conn net.Conn, due func() bool) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	// Stopped by ctx and by closing conn, awaited by stop.
	wg.Go(func() {
		frame := appendFrame(nil, typeHeartbeat, nil)
		everyHeartbeat(ctx, func() error {
			if !due() {
				return nil
			}
			// The other side always reads, so this does not take long.
			if err := conn.SetWriteDeadline(time.Now().Add(silenceTimeout)); err != nil {
				return err
			}
			_, err := conn.Write(frame)
			return err
		})
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// readReplies reads the frames of an acceptor. done means that the acceptor has taken the
// checkpoint; otherwise err says why the connection ended.
func readReplies(conn net.Conn, peer uint64) (done bool, err error) {
	in := newFrameReader(newTimeoutReader(conn), maxReason)
	for {
		typ, payload, err := in.next(nil)
		switch {
		case errors.Is(err, io.EOF):
			return false, fmt.Errorf("peer: closed by the other side: %w", err)
		case err != nil:
			return false, err
		case typ == typeHeartbeat:
		case typ == typeDone:
			return true, nil
		case typ == typeFailed:
			return false, &RefusedError{Peer: peer, Reason: reasonText(string(payload))}
		default:
			return false, fmt.Errorf("%w: frame of type %d from the accepting side", ErrCorrupt, typ)
		}
	}
}

// closeWithMessage sends a last message and gives the other side time to close the connection:
// closing while bytes are unread would make TCP discard the message. Errors are ignored.
func closeWithMessage(conn net.Conn, message []byte) {
	_ = conn.SetDeadline(time.Now().Add(silenceTimeout))
	if _, err := conn.Write(message); err == nil {
		_, _ = io.Copy(io.Discard, conn)
	}
}

// failureFrame returns the last message of a side that closes the connection because of an error.
func failureFrame(reason string) []byte {
	return appendFrame(nil, typeFailed, []byte(reasonText(reason)))
}
