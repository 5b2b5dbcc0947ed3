package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

const (
	minPause = 50 * time.Millisecond // between rounds over all servers
	maxPause = 2 * time.Second
)

// tour goes round the servers in an order of its own. It belongs to run.
type rotation struct {
	servers []string
	at      int
	pause   time.Duration // the next; it grows until a server answers something
}

func newRotation(servers []string) *rotation {
	t := &rotation{servers: slices.Clone(servers), pause: minPause}
	rand.Shuffle(len(t.servers), func(i, j int) { t.servers[i], t.servers[j] = t.servers[j], t.servers[i] })
	return t
}

func (t *rotation) next() string {
	s := t.servers[t.at%len(t.servers)]
	t.at++
	return s
}

// prefer makes a server the next one.
func (t *rotation) prefer(address string) {
	if i := slices.Index(t.servers, address); i >= 0 {
		t.at = i
	}
}

// wait pauses before servers are asked once more. The error is that of ctx.
func (t *rotation) wait(ctx context.Context) error {
	// Between half and all of it, so that the clients of a server that fell don't come back as one.
	err := sleep(ctx, t.pause/2+rand.N(t.pause/2))
	t.pause = min(2*t.pause, maxPause)
	return err
}

// run serves one connection after the other until the session has ended or ctx has.
func (c *Client) run(ctx context.Context, l *link, t *rotation) {
	defer close(c.runDone)
	for l != nil {
		better := c.serve(ctx, l, t.servers)
		if !c.lost(l) {
			return
		}
		c.cfg.Logger.Debug("connection lost", "server", l.address, "error", l.cause)
		if better != "" {
			t.prefer(better)
		}
		// A server that worked is missed at once. One that gives a session and answers nothing would be asked without end.
		if l.answered {
			t.pause = minPause
		} else if t.wait(ctx) != nil {
			return
		}
		l = c.reconnect(ctx, t)
	}
}

// serve works on a connection until it breaks; then l.cause says why. If it was left for a server that has a quorum, that
// one is returned.
func (c *Client) serve(ctx context.Context, l *link, servers []string) (better string) {
	interrupt := context.AfterFunc(ctx, func() { l.fail(ctx.Err()) })
	defer interrupt()
	var both sync.WaitGroup
	both.Go(func() { c.writeOut(l) }) // ends when gone is closed, or when it can't write; awaited below
	if l.response.ReadOnly {
		both.Go(func() { better = c.seekQuorum(l, servers) }) // ends when gone is closed, or when it found one; awaited below
	}
	l.fail(c.readIn(l))
	close(l.gone)
	both.Wait()
	return better
}

// readIn handles what comes until it can't.
func (c *Client) readIn(l *link) error {
	for {
		c.events.awaitRoom()
		frame, err := readFrame(l.in, c.cfg.MaxBuffer)
		if errors.Is(err, io.EOF) {
			return errors.New("the server closed the connection")
		}
		if err != nil {
			return err
		}
		if err := c.handle(l, frame); err != nil {
			return err
		}
	}
}

// handle takes one frame: a reply or an event.
func (c *Client) handle(l *link, frame []byte) error {
	var h proto.ReplyHeader
	d := jute.NewDecoder(frame)
	if h.Decode(&d); d.Err() != nil {
		return fmt.Errorf("reply: %w", d.Err())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link != l { // the session has ended meanwhile
		return ErrClosed
	}
	switch h.Xid {
	case proto.XidEvent:
		return c.handleEvent(h.Zxid, &d)
	case proto.XidPing:
		l.answered = true
		return nil
	case proto.XidAuth:
		return c.handleAuth(l, h.Err)
	case proto.XidSetWatches:
		if h.Err != proto.OK {
			return fmt.Errorf("watches can't be set again: %w", h.Err)
		}
		return nil
	}
	if len(l.pending) == 0 || l.pending[0].xid != h.Xid {
		return fmt.Errorf("a reply to request %d, which is not the next", h.Xid)
	}
	l.answered = true
	k := l.pending[0]
	l.pending[0] = nil
	l.pending = l.pending[1:]
	c.lastZxid = max(c.lastZxid, h.Zxid)
	if k.watch != nil {
		c.watches.set(*k.watch, h.Err)
	}
	if k.settled != nil {
		k.settled(h.Err)
	}
	k.answer(h.Err, d.Rest())
	return nil
}

// handleEvent tells of what a watch saw. Events of watches that are not there any more are dropped. c.mu is held.
func (c *Client) handleEvent(zxid proto.Zxid, d *jute.Decoder) error {
	var e proto.WatcherEvent
	if e.Decode(d); d.Err() != nil {
		return fmt.Errorf("event: %w", d.Err())
	}
	if c.watches.fire(e.Type, e.Path) {
		c.events.push(Event{Type: e.Type, State: c.state, Path: c.strip(e.Path), Zxid: zxid})
	}
	return nil
}

// establish makes a link the one in use: credentials first, then watches, then what waits.
func (c *Client) establish(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.Ended() {
		return // run finds that out when it serves l
	}
	r := &l.response
	c.link = l
	c.session = Session{
		ID: int64(r.SessionID), Password: r.Passwd, Timeout: time.Duration(r.TimeoutMs) * time.Millisecond,
		Server: l.address, ReadOnly: r.ReadOnly,
	}
	c.state = Connected
	if r.ReadOnly {
		c.state = ReadOnly
	} else {
		c.global = true
	}
	c.events.push(Event{Type: EventSession, State: c.state, Zxid: proto.NoZxid})
	for _, a := range c.auths {
		c.sendAuth(l, a)
	}
	for _, f := range c.watches.frames(c.lastZxid) {
		l.put(f)
	}
	for _, k := range c.waiting {
		if !k.over {
			c.send(l, k)
		}
	}
	c.waiting, c.nAbandoned = nil, 0
}

// lost settles what was under way on a link, and reports whether the session may live on.
func (c *Client) lost(l *link) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.Ended() {
		return false
	}
	c.link = nil
	for _, k := range l.pending {
		k.fail(proto.ErrConnectionLoss, l.cause)
	}
	l.pending, l.out = nil, nil
	c.state = Connecting
	c.session.Server, c.session.ReadOnly = "", false
	c.events.push(Event{Type: EventSession, State: Connecting, Zxid: proto.NoZxid})
	return true
}

// reconnect tries one server after the other until one takes up the session. It returns nil when the session has ended, or
// ctx has.
func (c *Client) reconnect(ctx context.Context, t *rotation) *link {
	for {
		for range t.servers {
			address := t.next()
			l, err := c.open(ctx, address)
			switch {
			case ctx.Err() != nil:
				if l != nil {
					l.fail(ctx.Err())
				}
				return nil
			case err == nil:
				c.establish(l)
				return l
			case errors.Is(err, proto.ErrSessionExpired):
				c.expired()
				return nil
			}
			c.cfg.Logger.Debug("no connection", "server", address, "error", err)
		}
		if t.wait(ctx) != nil {
			return nil
		}
	}
}

// expired ends the Client after a server said that there is no such session, as Close wants it or not.
func (c *Client) expired() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		c.end(Closed, ErrClosed)
	} else {
		c.end(Expired, proto.ErrSessionExpired)
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
