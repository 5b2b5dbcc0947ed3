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
)

// closeWith closes conn when ctx ends, or in release, which returns when it is closed. So no read or write outlives ctx.
func closeWith(ctx context.Context, conn net.Conn) (release func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	// Stopped by the end of ctx or by release, awaited by release.
	go func() {
		defer close(done)
		<-ctx.Done()
		_ = conn.Close() // nothing depends on it: what must have arrived was answered
	}()
	return func() {
		cancel()
		<-done
	}
}

// patient reads from a connection until nothing comes for the time of a stall: then ErrSilent.
type patient struct {
	conn     net.Conn
	progress atomic.Uint64 // counts reads, and what else shows that bytes are taken
}

func (p *patient) Read(b []byte) (int, error) {
	if err := p.conn.SetReadDeadline(time.Now().Add(stall)); err != nil {
		return 0, err
	}
	n, err := p.conn.Read(b)
	p.progress.Add(1)
	return n, silence(err)
}

// silence names an expired deadline for what it is here.
func silence(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return ErrSilent
	}
	return err
}

// everyBeat calls f each second until it fails or ctx ends.
func everyBeat(ctx context.Context, f func() error) {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if f() != nil {
				return // the connection is broken, which others find out too
			}
		case <-ctx.Done():
			return
		}
	}
}

// startBeats writes a beat on an accepted connection each second in which due is true. stop awaits the end of it; nothing else may
// write until then.
func startBeats(ctx context.Context, conn net.Conn, due func() bool) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	// Stopped by ctx and by closing conn, awaited by stop.
	wg.Go(func() {
		frame := appendFrame(nil, typeBeat, nil)
		everyBeat(ctx, func() error {
			if !due() {
				return nil
			}
			// The other side always reads here, so this does not take long.
			if err := conn.SetWriteDeadline(time.Now().Add(stall)); err != nil {
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

// listen reads what an acceptor says after its answer, until that ends or it has taken the checkpoint: then done is true, else err is not nil.
func listen(conn net.Conn, peer uint64) (done bool, err error) {
	in := newFrameReader(&patient{conn: conn}, maxReason)
	for {
		typ, payload, err := in.next(nil)
		switch {
		case errors.Is(err, io.EOF):
			return false, fmt.Errorf("peer: closed by the other side: %w", err)
		case err != nil:
			return false, err
		case typ == typeBeat:
		case typ == typeDone:
			return true, nil
		case typ == typeFailed:
			return false, &RefusedError{Peer: peer, Reason: reasonText(string(payload))}
		default:
			return false, fmt.Errorf("%w: frame of type %d from the accepting side", ErrCorrupt, typ)
		}
	}
}

// part says a last word and gives the other side time to close: closing while bytes are unread would make TCP throw the
// word away. Errors don't matter any more.
func part(conn net.Conn, word []byte) {
	_ = conn.SetDeadline(time.Now().Add(stall))
	if _, err := conn.Write(word); err == nil {
		_, _ = io.Copy(io.Discard, conn)
	}
}

// failure is the last word of a side that gives up.
func failure(reason string) []byte { return appendFrame(nil, typeFailed, []byte(reasonText(reason))) }
