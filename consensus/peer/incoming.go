package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// incoming is the connection on which a peer sends us frames.
type incoming struct {
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when Receive is no longer called for it
}

// accept takes connections until Close.
func (n *Network) accept() {
	wait := time.Duration(0)
	for {
		conn, err := n.cfg.Listener.Accept()
		switch {
		case n.life.Err() != nil:
			if err == nil {
				_ = conn.Close() // nothing was said on it
			}
			return
		case errors.Is(err, net.ErrClosed):
			n.cfg.Logger.Error("no longer accepting peers: the listener was closed by someone else")
			return
		case err != nil: // out of file descriptors, most likely: give others time to close some
			wait = min(max(2*wait, 5*time.Millisecond), time.Second)
			n.cfg.Logger.Warn("accept", "error", err, "retry_ms", wait.Milliseconds())
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

// admit starts to serve a connection, unless there are too many.
func (n *Network) admit(conn net.Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.accepted >= maxIncoming && n.saidIn.isNew(0, "too many") {
		n.cfg.Logger.Warn("connection from peer refused: too many connections", "max", maxIncoming)
	}
	if n.closed || n.accepted >= maxIncoming {
		_ = conn.Close() // nothing was said on it
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

// serve reads the hello and then what the connection is for.
func (n *Network) serve(conn net.Conn) {
	ctx, cancel := context.WithCancelCause(n.life)
	defer cancel(nil)
	release := closeWith(ctx, conn)
	defer release()
	remote := conn.RemoteAddr().String()
	if err := conn.SetDeadline(time.Now().Add(stall)); err != nil {
		return
	}
	hello, err := readGreeting(conn)
	if err == nil {
		err = n.judge(hello)
	}
	if err == nil {
		switch hello.kind {
		case kindFrames:
			err = n.receiveFrames(ctx, cancel, conn, hello.from)
		case kindCheckpoint:
			err = n.receiveCheckpoint(ctx, conn, hello.from)
		}
	} else if word := reasonFor(err); word != "" {
		refusal := greeting{kind: kindRefused, from: n.cfg.Self, to: hello.from, contents: []byte(reasonText(word))}
		part(conn, refusal.append(nil))
	}
	if n.life.Err() == nil {
		n.report(hello.from, remote, err)
	}
}

// judge decides whether a connection is accepted.
func (n *Network) judge(hello greeting) error {
	switch {
	case hello.kind != kindFrames && hello.kind != kindCheckpoint:
		return fmt.Errorf("%w: hello of kind %d", ErrCorrupt, hello.kind)
	case hello.to != n.cfg.Self:
		return &rejectedError{fmt.Errorf("this is member %d, not %d", n.cfg.Self, hello.to)}
	case hello.from == n.cfg.Self || hello.from == 0:
		return &rejectedError{fmt.Errorf("member %d can't have member %d as its peer: two have the same id", n.cfg.Self, hello.from)}
	}
	if err := n.cfg.Handler.Accept(hello.from, hello.contents); err != nil {
		return &rejectedError{err}
	}
	return nil
}

// reasonFor returns what the other side is told about an error: nothing, if the connection failed.
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

// report logs how an accepted connection ended: loudly if it should not have been made, once per reason.
func (n *Network) report(from uint64, remote string, err error) {
	var version *versionError
	if err == nil {
		n.cfg.Logger.Debug("connection from peer ended well", "peer", from, "remote", remote)
		return
	}
	if !byReason(err) && !errors.As(err, &version) && !errors.Is(err, ErrCorrupt) {
		n.cfg.Logger.Debug("connection from peer ended", "peer", from, "remote", remote, "reason", err)
		return
	}
	n.noteIncoming(from, err)
	if n.saidIn.isNew(from, kindOf(err)) {
		n.cfg.Logger.Warn("connection from peer refused", "peer", from, "remote", remote, "error", err)
	}
}

// receiveFrames takes frames from a peer until the connection ends, and returns why.
func (n *Network) receiveFrames(ctx context.Context, cancel context.CancelCauseFunc, conn net.Conn, from uint64) error {
	in := &incoming{cancel: cancel, done: make(chan struct{})}
	defer n.leave(from, in)
	if old := n.enter(from, in); old != nil {
		// The peer has made a new connection, so it no longer uses the old one. What is left there is of the past.
		old.cancel(errReplaced)
		<-old.done
	}
	if err := n.welcome(conn, from); err != nil {
		return err
	}
	source := &patient{conn: conn}
	var before uint64
	stop := startBeats(ctx, conn, func() bool {
		was := before
		before = source.progress.Load()
		return before != was
	})
	err := n.takeFrames(ctx, source, from)
	stop()
	if errors.Is(err, ErrCorrupt) {
		part(conn, failure(err.Error()))
	}
	return err
}

// takeFrames hands frames to the Handler until there are no more, and returns why.
func (n *Network) takeFrames(ctx context.Context, source *patient, from uint64) error {
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
		case typ != typeData && typ != typeBeat:
			return fmt.Errorf("%w: frame of type %d between frames", ErrCorrupt, typ)
		}
		if first {
			n.heard(from) // it has accepted our answer
		}
		source.progress.Add(1) // a frame out of the buffer is progress as well as a read
		if typ == typeData {
			n.cfg.Handler.Receive(from, payload)
		}
	}
}

// enter makes in the connection of a peer, and returns the one before.
func (n *Network) enter(from uint64, in *incoming) *incoming {
	n.mu.Lock()
	defer n.mu.Unlock()
	old := n.incoming[from]
	n.incoming[from] = in
	return old
}

// leave is called when nothing more is received on a connection.
func (n *Network) leave(from uint64, in *incoming) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.incoming[from] == in {
		delete(n.incoming, from)
	}
	close(in.done)
}

// welcome answers a hello that was accepted.
func (n *Network) welcome(conn net.Conn, from uint64) error {
	answer, err := n.hello(kindAccepted, from)
	if err != nil {
		return err
	}
	if _, err := conn.Write(answer); err != nil {
		return silence(err)
	}
	return conn.SetDeadline(time.Time{})
}

// heard ends the wait before our next try to connect to a peer: it is alive and wants us.
func (n *Network) heard(from uint64) {
	n.saidIn.forget(from)
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
