package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/gozkd/gozkd/internal/accept"
	"github.com/gozkd/gozkd/internal/fair"
	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/wakeup"
)

type incoming struct {
	cancel context.CancelCauseFunc
	done   chan struct{} // closed after the last call of Receive
	proven bool          // see link
	tls    string        // see linkTLS
	at     net.Addr      // the local address
}

func (n *Network) accept() {
	err := accept.Loop(n.life, n.cfg.Listener, func(err error, retry time.Duration) {
		n.cfg.Logger.Warn("accepting a connection from a peer failed", "error", err, "retry_ms", retry.Milliseconds())
	}, n.admit)
	if errors.Is(err, net.ErrClosed) {
		n.cfg.Logger.Error("no longer accepting peers: the listener was closed; restart this server")
	}
}

// admit starts to serve a connection, unless there are too many connections.
func (n *Network) admit(conn net.Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.accepted >= n.cfg.MaxIncoming {
		n.noteRefusal(RefusedCrowded, 0, conn.RemoteAddr().String(), fmt.Errorf("peer: there are %d connections", n.accepted))
	}
	if n.closed || n.accepted >= n.cfg.MaxIncoming {
		_ = conn.Close() // nothing was sent on it
		return
	}
	n.accepted++
	ctx, cancel := context.WithCancelCause(n.life)
	v := &visitor{conn: conn, cancel: cancel, host: fair.Host(conn.RemoteAddr())}
	room := min(maxLobby, n.cfg.MaxIncoming/4)
	if out, full := n.lobby.Enter(v, v.host, room); full {
		out.cancel(net.ErrClosed) // which closes the connection, and ends the question about it
		n.noteRefusal(RefusedCrowded, 0, out.conn.RemoteAddr().String(), fmt.Errorf("peer: there are %d connections whose callers have not proved who they are", room))
	}
	// Stopped by Close with n.life, awaited by Close.
	n.wg.Go(func() {
		n.serve(ctx, v)
		n.lobby.Leave(v)
		n.mu.Lock()
		defer n.mu.Unlock()
		n.accepted--
	})
}

// serve reads the hello of a connection, then its frames or checkpoint. ctx ends with v.cancel.
func (n *Network) serve(ctx context.Context, v *visitor) {
	conn := v.conn
	defer v.cancel(nil)
	release := closeWith(ctx, conn)
	defer release()
	remote := conn.RemoteAddr().String()
	v.until = time.Now().Add(silenceTimeout)
	err := conn.SetDeadline(v.until)
	if err != nil {
		return
	}
	var hello greeting
	var l *link
	err = n.secure(ctx, v)
	conn = v.stream
	if err == nil && linkTLS(conn) == "" { // a refused caller is told the reason first
		defer context.AfterFunc(v.enc.plain, func() { v.cancel(errChanged) })()
	}
	if err == nil {
		hello, err = readGreeting(conn)
	}
	if err == nil {
		l, err = n.identify(ctx, v, &hello)
	}
	if err == nil && hello.kind == kindConfirm {
		n.answerConfirm(conn, &hello)
		return
	}
	accepted := err == nil
	if !accepted {
		err = n.late(v.conn, err)
		_ = v.conn.SetReadDeadline(v.until) // an error would say that it is closed
	} else {
		n.lobby.Leave(v)
		switch hello.kind {
		case kindFrames:
			err = n.receiveFrames(ctx, v.cancel, conn, l)
		case kindCheckpoint:
			err = n.receiveCheckpoint(ctx, v.cancel, conn, l)
		}
	}
	if n.life.Err() == nil { // before the refusal, which may wait for the other side
		n.report(hello.from, remote, silence(err), accepted, l != nil && l.proven)
	}
	if errors.Is(err, errFailedHandshake) && !errors.Is(err, ErrCorrupt) {
		_, _ = io.Copy(io.Discard, v.conn) // until the deadline: TCP would discard the alert otherwise
	} else if reason := reasonFor(err); reason != "" && !errors.Is(err, errFailedHandshake) && (!accepted || errors.Is(err, errStranger)) {
		refusal := greeting{kind: kindRefused, from: n.cfg.Self, to: hello.from, contents: []byte(reasonText(reason))}
		closeWithMessage(conn, refusal.append(nil))
	}
}

// reasonFor returns the text for the other side about an error, or "" if the connection failed.
func reasonFor(err error) string {
	var rejected *rejectedError
	var version *versionError
	switch {
	case errors.As(err, &rejected) && rejected.told != "":
		return rejected.told
	case errors.As(err, &rejected):
		return rejected.err.Error()
	case errors.As(err, &version), errors.Is(err, ErrCorrupt):
		return err.Error()
	}
	return ""
}

// report logs the end of an accepted connection: as a warning, once per reason, if it was rejected
// or damaged. Refusals of unproven callers share a line per reason and refusalLogInterval.
func (n *Network) report(from uint64, remote string, err error, accepted, proven bool) {
	reason, refused := refusalOf(err, accepted)
	switch {
	case errors.Is(err, net.ErrClosed), errors.Is(err, io.ErrClosedPipe), errors.Is(err, io.EOF) && from == 0: // it had to go, or was closed by the other side before it said anything
		n.cfg.Logger.Debug("connection from peer ended", "peer", memberid.Number(from), "remote", remote, "reason", err)
	case refused && !proven:
		n.noteIncoming(from, err)
		n.noteRefusal(reason, from, remote, err)
	case err == nil || !isRejection(err) && !errors.Is(err, ErrCorrupt):
		n.cfg.Logger.Debug("connection from peer ended", "peer", memberid.Number(from), "remote", remote, "reason", err)
	default:
		if refused {
			n.refused[reason].Add(1)
		}
		n.noteIncoming(from, err)
		if n.loggedIn.isNew(from, logKey(err)) {
			n.cfg.Logger.Warn("connection from peer refused",
				"peer", memberid.Number(from), "remote", remote, "error", err)
		}
	}
}

// noteRefusal counts and logs a refusal of an unproven caller.
func (n *Network) noteRefusal(reason Refusal, from uint64, remote string, err error) {
	n.refused[reason].Add(1)
	if wait, suppressed := n.refusalLog.Take(reason.String(), time.Now()); wait == 0 {
		n.cfg.Logger.Warn("connection from peer refused",
			"reason", reason.String(), "peer", memberid.Number(from), "remote", remote, "error", err, "not_logged_before", suppressed)
	}
}

// receiveFrames receives frames from a peer until the connection ends, and returns the reason.
func (n *Network) receiveFrames(ctx context.Context, cancel context.CancelCauseFunc, conn net.Conn, l *link) error {
	in := &incoming{cancel: cancel, done: make(chan struct{}), proven: l.proven, tls: linkTLS(conn), at: conn.LocalAddr()}
	old, ok := n.registerIncoming(l.from, in)
	if !ok {
		return errStranger
	}
	defer n.unregisterIncoming(l.from, in)
	if old != nil {
		// The peer has made a new connection, so frames of the old one are obsolete.
		old.cancel(errReplaced)
		<-old.done
	}
	if err := n.acceptGreeting(conn, l); err != nil {
		return err
	}
	source := newTimeoutReader(conn)
	source.drained = n.cfg.Handler.Drained
	var before uint64
	stop := startHeartbeats(ctx, conn, func() bool {
		was := before
		before = source.progress.Load()
		return before != was
	})
	err := n.takeFrames(ctx, source, l)
	stop()
	if errors.Is(err, ErrCorrupt) {
		closeWithMessage(conn, failureFrame(err.Error()))
	}
	return err
}

// takeFrames passes frames to the Handler until the connection ends, and returns the reason.
func (n *Network) takeFrames(ctx context.Context, source *timeoutReader, l *link) error {
	from, frames := l.from, newFrameReader(source, n.cfg.MaxFrame)
	if n.cfg.Arriving != nil {
		frames.partial = partialReader{Reader: frames.r, tell: func() { n.cfg.Arriving(from) }}
	}
	for first := true; ; first = false {
		typ, payload, err := frames.next(nil)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		case typ == typeFailed:
			return &RefusedError{Peer: from, Reason: reasonText(string(payload))}
		case typ != typeData && typ != typeHeartbeat:
			return fmt.Errorf("%w: frame of type %d between frames", ErrCorrupt, typ)
		}
		if first {
			n.peerReached(from) // the peer has accepted the answer
		}
		source.progress.Add(1) // a frame from the buffer is progress as well
		if typ == typeData {
			n.cfg.Handler.Receive(from, payload)
		}
	}
}

// registerIncoming makes in the connection of a peer, and returns the previous connection. It
// returns false if nothing proves that in is the peer's, and the previous connection is.
func (n *Network) registerIncoming(from uint64, in *incoming) (old *incoming, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	old = n.incoming[from]
	if old != nil && old.proven && !in.proven {
		return nil, false
	}
	n.incoming[from] = in
	return old, true
}

func (n *Network) hears(from uint64) bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.incoming[from] != nil
}

// unregisterIncoming is called after the last frame of a connection.
func (n *Network) unregisterIncoming(from uint64, in *incoming) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.incoming[from] == in {
		delete(n.incoming, from)
	}
	close(in.done)
}

func (n *Network) acceptGreeting(conn net.Conn, l *link) error {
	answer, err := n.hello(kindAccepted, l.from, l, newNonce())
	if err != nil {
		return err
	}
	if _, err := conn.Write(answer); err != nil {
		return silence(err)
	}
	return conn.SetDeadline(time.Time{})
}

// peerReached ends the wait before the next attempt to connect to a peer, which has just connected.
func (n *Network) peerReached(from uint64) {
	n.loggedIn.forget(from)
	n.noteIncoming(from, nil)
	n.mu.RLock()
	defer n.mu.RUnlock()
	if p := n.peers[from]; p != nil && !p.connected {
		wakeup.Send(p.wake)
	}
}
