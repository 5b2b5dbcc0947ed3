package peer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/fair"
	"github.com/gozkd/gozkd/internal/memberid"
)

// peer is a member to send to. Its goroutine runs while the peer has an address.
type peer struct {
	net    *Network
	id     uint64
	logger hclog.Logger
	queue  *queue
	direct directWriter
	wake   chan struct{} // capacity 1: the peer has connected, so try at once
	// questions to the peer whether connections are its own, by the hosts of the callers
	questions *fair.Gauge

	// Guarded by net.mu.
	address              string // empty: dropped
	former               string // the address before, until the peer is reached at address; see readdress
	guest                bool   // see invite
	ctx                  context.Context
	cancel               context.CancelCauseFunc // ends ctx, which lasts as long as the addresses are valid
	connected            bool
	at                   string                  // address or former: where it is connected, or was last
	tls                  string                  // of the connection, see linkTLS
	endLink              context.CancelCauseFunc // ends the connection; nil before the first connection
	links                int                     // counts connections
	lastErr, incomingErr error
}

func newPeer(n *Network, id uint64) *peer {
	return &peer{
		net: n, id: id, logger: n.cfg.Logger.With("peer", memberid.Number(id)),
		queue: newQueue(n.cfg.QueueBytes), wake: make(chan struct{}, 1),
		questions: fair.NewGauge(maxQuestionsPerHost, maxQuestions),
	}
}

// addPeer adds a peer, and begins to connect to it. n.mu is held.
func (n *Network) addPeer(id uint64, address string) *peer {
	p := newPeer(n, id)
	p.move(n.life, address)
	n.peers[id] = p
	n.wg.Go(p.run) // stopped by SetPeers or Close with p.ctx, awaited by Close
	return p
}

// move ends all connections with the old address, if any, and sets the new one. net.mu is held.
func (p *peer) move(life context.Context, address string) {
	if p.cancel != nil {
		p.cancel(ErrMoved)
	}
	p.address = address
	p.ctx, p.cancel = context.WithCancelCause(life)
}

// readdress sets the address of a peer that has moved. The former address remains valid until
// the peer is reached at the new one: the peer may not know yet that it is to move there, or
// cannot. So a connection stays until moveLinks has made it again; an attempt to connect ends at
// once. The caller must hold net.mu.
func (p *peer) readdress(life context.Context, address string) {
	p.former = cmp.Or(p.former, p.address)
	if !p.connected {
		p.move(life, address)
	}
	p.address = address
	if p.former == address || p.connected && p.at == address {
		p.former = ""
	}
	p.net.signalLinks()
}

// addresses returns where the peer may be reached, in the order in which to try: at its own
// addresses, and at further ones. net.mu is held.
func (p *peer) addresses() (own, further []string) {
	own = append(own, p.address)
	if p.former != "" {
		own = append(own, p.former)
	}
	known := func(address string) bool { return slices.Contains(own, address) }
	return own, slices.DeleteFunc(slices.Clone(p.net.further[p.id]), known)
}

func (p *peer) run() {
	var retry backoff
	patience := helloTimeout
	lost := time.Now() // the end of the last connection, or the beginning of the attempts
	turn := 0          // counts the further addresses that were tried in vain
	for {
		ctx, own, further, ok := p.target()
		if !ok {
			return
		}
		share := silenceTimeout
		if len(further) > 0 {
			share = min(share, p.net.cfg.AddressPatience)
		}
		up, err := p.connectAndSend(ctx, own, share, patience, false)
		if patience = min(2*patience, silenceTimeout); !errors.Is(err, errUnanswered) {
			patience = helloTimeout
		}
		switch {
		case up > 0:
			lost = time.Now()
		case ctx.Err() != nil || len(further) == 0:
		case time.Since(lost) >= furtherAfter || isRejection(err): // it is not just starting again
			next := further[turn%len(further):][:1]
			if lasted, ended := p.connectAndSend(ctx, next, share, helloTimeout, true); lasted > 0 {
				up, err, lost = lasted, ended, time.Now()
			} else {
				turn++
			}
		}
		p.forgetGuest(ctx)
		if ctx.Err() != nil || errors.Is(err, errChanged) {
			retry = backoff{}
			continue
		}
		if p.pause(ctx, retry.next(up, isRejection(err))) {
			retry = backoff{}
		}
	}
}

// target returns the addresses to try, and a context that ends when they change. Without an
// address, target removes p under the same lock. So SetPeers either finds p, and run continues, or
// starts a new peer after the last call of Down.
func (p *peer) target() (ctx context.Context, own, further []string, ok bool) {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	if p.net.closed || p.address == "" {
		p.cancel(ErrMoved)
		delete(p.net.peers, p.id)
		return nil, nil, nil, false
	}
	own, further = p.addresses()
	return p.ctx, own, further, true
}

// pause waits, and reports whether the wait ended early because the peer has connected.
func (p *peer) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false
	case <-ctx.Done():
		return false
	case <-p.wake:
		return true
	}
}

// connectAndSend connects to the first address at which the peer answers, sends frames until the
// connection ends, and returns how long the connection lasted and why it ended. share bounds each
// dial, times the number of addresses that are dialed together; patience bounds the TLS handshake
// and then the wait for the answer to the hello. further: the addresses are further ones, and a
// failure there is neither logged nor reported.
func (p *peer) connectAndSend(
	ctx context.Context, addresses []string, share, patience time.Duration, further bool,
) (up time.Duration, err error) {
	wasUp := false
	var address string // of the connection, or that err is about
	for _, a := range addresses {
		dialTime := min(silenceTimeout, share*time.Duration(1+strings.Count(a, addressSeparator)))
		failed := p.net.with(ctx, p.id, a, kindFrames, dialTime, patience, func(ctx context.Context, cancel context.CancelCauseFunc, conn net.Conn) error {
			began := time.Now()
			wasUp = true
			p.setConnected(a, linkTLS(conn), cancel)
			p.net.loggedOut.forget(p.id)
			p.logger.Info("connected to peer", "address", a, "tls", cmp.Or(linkTLS(conn), "none"))
			p.net.cfg.Handler.Up(p.id)
			err := p.send(ctx, cancel, conn)
			up = time.Since(began)
			p.setDisconnected()
			return err
		})
		if address == "" || wasUp || connectionRefused(err) { // the peer is gone only if all addresses refuse
			address, err = a, failed
		}
		if wasUp || ctx.Err() != nil {
			break
		}
	}
	switch {
	case (ctx.Err() != nil || further) && !wasUp:
		return 0, err // not an error of the peer
	case ctx.Err() != nil, errors.Is(err, errChanged):
		p.logger.Info("disconnected from peer", "address", address, "reason", cmp.Or(context.Cause(ctx), err))
	default:
		p.net.note(p.id, err)
		if wasUp {
			p.logger.Warn("lost connection to peer", "address", address, "error", err)
		} else if p.net.loggedOut.isNew(p.id, logKey(err)) {
			p.logger.Warn("no connection to peer", "address", address, "error", err)
		}
	}
	p.net.cfg.Handler.Down(p.id, !wasUp && connectionRefused(err))
	return up, err
}

// setConnected opens the queue of a peer that is connected at address.
func (p *peer) setConnected(address, tls string, end context.CancelCauseFunc) {
	p.queue.open()
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	p.connected, p.at, p.tls, p.endLink = true, address, tls, end
	if p.at == p.address {
		p.former = ""
	}
	p.links++
	p.net.signalLinks()
}

func (p *peer) setDisconnected() {
	p.queue.close()
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	p.connected, p.tls = false, ""
}

// send writes the frames of the queue until the connection ends, and returns the reason.
func (p *peer) send(ctx context.Context, cancel context.CancelCauseFunc, conn net.Conn) error {
	var wg sync.WaitGroup
	// Stopped by closing conn, awaited below.
	wg.Go(func() {
		done, err := readReplies(conn, p.id)
		if done {
			err = fmt.Errorf("%w: reply to a checkpoint on a connection for frames", ErrCorrupt)
		}
		cancel(err)
	})
	cancel(p.write(ctx, conn))
	wg.Wait()
	return context.Cause(ctx)
}

// write writes queued frames, and a heartbeat in each second without frames. The first heartbeat,
// sent at once, tells the other side that its answer was accepted.
func (p *peer) write(ctx context.Context, w io.Writer) error {
	ticker := time.NewTicker(heartbeatInterval)
	defer ticker.Stop()
	out := newFrameWriter(w)
	err := p.drain(w, out, true)
	p.attach(w)
	defer p.detach()
	for err == nil {
		tick := false
		select {
		case <-p.queue.more:
		case <-ticker.C:
			tick = true
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		err = p.drain(w, out, tick)
	}
	return err
}

// connFunc uses a connection. ctx ends with cancel, or after the connFunc has returned, and conn is
// closed when ctx ends.
type connFunc func(ctx context.Context, cancel context.CancelCauseFunc, conn net.Conn) error

// with connects to a member, for the given kind of use, and runs f with the connection. dialTime
// bounds the dial, and patience the TLS handshake and then the wait for the answer to the hello.
func (n *Network) with(ctx context.Context, to uint64, address string, kind uint32, dialTime, patience time.Duration, f connFunc) error {
	dialCtx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	conn, enc, err := n.dial(dialCtx, to, address, patience)
	switch {
	case isRejection(err):
		return err
	case err != nil:
		return fmt.Errorf("peer: dial: %w", err)
	}
	ctx, cancelCause := context.WithCancelCause(ctx)
	if linkTLS(conn) == "" {
		defer context.AfterFunc(enc.plain, func() { cancelCause(errChanged) })()
	}
	release := closeWith(ctx, conn)
	defer release()
	defer cancelCause(nil)
	id := newNonce()
	defer n.noteDial(id, to)()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	switch err := n.exchangeGreetings(conn, to, kind, id); {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("peer: hello: %w", errUnanswered)
	case err != nil:
		return alerted(err, to)
	}
	return f(ctx, cancelCause, conn)
}

// exchangeGreetings sends the hello on a dialed connection, and decides about the answer, until the
// connection's deadline.
func (n *Network) exchangeGreetings(conn net.Conn, to uint64, kind uint32, id nonce) error {
	hello, err := n.hello(kind, to, &link{}, id)
	if err != nil {
		return err
	}
	if _, err := conn.Write(hello); err != nil {
		return err
	}
	answer, err := readGreeting(conn)
	authenticated := err == nil && answer.kind == kindChallenge && answer.from == to && answer.to == n.cfg.Self
	if authenticated {
		answer, err = n.prove(conn, to, hello, &answer)
	}
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("peer: closed by the other side before it answered: %w", err)
	case err != nil:
		return err
	case answer.kind == kindRefused:
		return &RefusedError{Peer: answer.from, Reason: reasonText(string(answer.contents))}
	case answer.kind != kindAccepted || answer.from != to || answer.to != n.cfg.Self:
		return fmt.Errorf("%w: answer of kind %d from %d to %d",
			ErrCorrupt, answer.kind, memberid.Number(answer.from), memberid.Number(answer.to))
	}
	contents, ext := splitExtension(answer.contents)
	if !authenticated {
		err = n.checkUnproven(to, &ext)
	}
	if err == nil {
		err = n.judge(to, contents, true)
	}
	if rejected, ok := errors.AsType[*rejectedError](err); ok {
		closeWithMessage(conn, failureFrame(rejected.err.Error()))
		return err
	}
	n.cfg.Logger.Debug("peer identified", "peer", memberid.Number(to), "secret", authenticated, "tls", linkTLS(conn))
	return conn.SetDeadline(time.Time{})
}

// hello returns a greeting that contains the hello of the Handler, and this side's proof if the
// other side of the link has proved that it knows the secret.
func (n *Network) hello(kind uint32, to uint64, l *link, id nonce) ([]byte, error) {
	contents, ext := n.cfg.Handler.Hello(), extension{flags: n.flags(), nonce: id}
	if len(contents) > MaxHello {
		return nil, fmt.Errorf("peer: hello of %d bytes, the maximum is %d", len(contents), MaxHello)
	}
	if l.transcript != nil {
		ext.proof = proof(n.cfg.Secret, labelCalled, append(l.transcript, contents)...)
	}
	g := greeting{kind: kind, from: n.cfg.Self, to: to, contents: ext.append(slices.Clip(contents))}
	return g.append(nil), nil
}
