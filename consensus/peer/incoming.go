package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// incoming is the connection on which a peer sends frames.
type incoming struct {
	cancel context.CancelCauseFunc
	done   chan struct{} // closed after the last call of Receive
}

// accept accepts connections until Close.
func (n *Network) accept() {
	wait := time.Duration(0)
	for {
		conn, err := n.cfg.Listener.Accept()
		switch {
		case n.life.Err() != nil:
			if err == nil {
				_ = conn.Close() // nothing was sent on it
			}
			return
		case errors.Is(err, net.ErrClosed):
			n.cfg.Logger.Error("no longer accepting peers: the listener was closed; restart this server")
			return
		case err != nil: // probably out of file descriptors: wait until some are closed
			wait = min(max(2*wait, 5*time.Millisecond), time.Second)
			n.cfg.Logger.Warn("accepting a connection from a peer failed", "error", err, "retry_ms", wait.Milliseconds())
			select {
			case <-time.After(wait):
			case <-n.life.Done():
			}
			continue
		}
		wait = 0
		n.admit(conn)
	}
}

// admit starts to serve a connection, unless there are too many connections.
func (n *Network) admit(conn net.Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.accepted >= maxIncoming && n.loggedIn.isNew(0, "too many") {
		n.cfg.Logger.Warn("connection from peer refused: too many connections", "max", maxIncoming)
	}
	if n.closed || n.accepted >= maxIncoming {
		_ = conn.Close() // nothing was sent on it
		return
	}
	n.accepted++
	// Stopped by Close with n.life, awaited by Close.
	n.wg.Go(func() {
		n.serve(conn)
		n.mu.Lock()
		defer n.mu.Unlock()
		n.accepted--
	})
}

// serve reads the hello of a connection, then its frames or checkpoint.
func (n *Network) serve(conn net.Conn) {
	ctx, cancel := context.WithCancelCause(n.life)
	defer cancel(nil)
	release := closeWith(ctx, conn)
	defer release()
	remote := conn.RemoteAddr().String()
	if err := conn.SetDeadline(time.Now().Add(silenceTimeout)); err != nil {
		return
	}
	hello, err := readGreeting(conn)
	if err == nil {
		err = n.checkHello(hello)
	}
	if err == nil {
		switch hello.kind {
		case kindFrames:
			err = n.receiveFrames(ctx, cancel, conn, hello.from)
		case kindCheckpoint:
			err = n.receiveCheckpoint(ctx, conn, hello.from)
		}
	} else if reason := reasonFor(err); reason != "" {
		refusal := greeting{kind: kindRefused, from: n.cfg.Self, to: hello.from, contents: []byte(reasonText(reason))}
		closeWithMessage(conn, refusal.append(nil))
	}
	if n.life.Err() == nil {
		n.report(hello.from, remote, err)
	}
}

// checkHello decides whether a connection is accepted.
func (n *Network) checkHello(hello greeting) error {
	switch {
	case hello.kind != kindFrames && hello.kind != kindCheckpoint:
		return fmt.Errorf("%w: hello of kind %d", ErrCorrupt, hello.kind)
	case hello.to != n.cfg.Self:
		return &rejectedError{fmt.Errorf("this is member %d, not %d", n.cfg.Self, hello.to)}
	case hello.from == n.cfg.Self || hello.from == 0:
		return &rejectedError{fmt.Errorf("member %d can't have member %d as its peer: two servers have the same id, correct one of them", n.cfg.Self, hello.from)}
	}
	if err := n.cfg.Handler.Accept(hello.from, hello.contents); err != nil {
		return &rejectedError{err}
	}
	return nil
}

// reasonFor returns the text for the other side about an error, or "" if the connection failed.
func reasonFor(err error) string {
	var rejected *rejectedError
	var version *versionError
	switch {
	case errors.As(err, &rejected):
		return rejected.err.Error()
	case errors.As(err, &version), errors.Is(err, ErrCorrupt):
		return err.Error()
	}
	return ""
}

// report logs the end of an accepted connection: as a warning, once per reason, if the connection
// was rejected or damaged.
func (n *Network) report(from uint64, remote string, err error) {
	var version *versionError
	if err == nil {
		n.cfg.Logger.Debug("connection from peer ended", "peer", from, "remote", remote)
		return
	}
	if !isRejection(err) && !errors.As(err, &version) && !errors.Is(err, ErrCorrupt) {
		n.cfg.Logger.Debug("connection from peer ended", "peer", from, "remote", remote, "reason", err)
		return
	}
	n.noteIncoming(from, err)
	if n.loggedIn.isNew(from, logKey(err)) {
		n.cfg.Logger.Warn("connection from peer refused", "peer", from, "remote", remote, "error", err)
	}
}

// receiveFrames receives frames from a peer until the connection ends, and returns the reason.
func (n *Network) receiveFrames(ctx context.Context, cancel context.CancelCauseFunc, conn net.Conn, from uint64) error {
	in := &incoming{cancel: cancel, done: make(chan struct{})}
	defer n.unregisterIncoming(from, in)
	if old := n.registerIncoming(from, in); old != nil {
		// The peer has made a new connection, so it no longer uses the old connection, whose
		// frames are obsolete.
		old.cancel(errReplaced)
		<-old.done
	}
	if err := n.acceptGreeting(conn, from); err != nil {
		return err
	}
	source := &timeoutReader{conn: conn}
	var before uint64
	stop := startHeartbeats(ctx, conn, func() bool {
		was := before
		before = source.progress.Load()
		return before != was
	})
	err := n.takeFrames(ctx, source, from)
	stop()
	if errors.Is(err, ErrCorrupt) {
		closeWithMessage(conn, failureFrame(err.Error()))
	}
	return err
}

// takeFrames passes frames to the Handler until the connection ends, and returns the reason.
func (n *Network) takeFrames(ctx context.Context, source *timeoutReader, from uint64) error {
	frames := newFrameReader(source, n.cfg.MaxFrame)
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

// registerIncoming makes in the connection of a peer, and returns the previous connection.
func (n *Network) registerIncoming(from uint64, in *incoming) *incoming {
	n.mu.Lock()
	defer n.mu.Unlock()
	old := n.incoming[from]
	n.incoming[from] = in
	return old
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

// acceptGreeting answers an accepted hello.
func (n *Network) acceptGreeting(conn net.Conn, from uint64) error {
	answer, err := n.hello(kindAccepted, from)
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
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
}
