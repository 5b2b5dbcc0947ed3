package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/internal/bodyread"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/server/facts"
)

const (
	minPause = 50 * time.Millisecond // between rounds over all servers
	maxPause = 2 * time.Second
	// savePauses: while the session may be alive, a pause is at most this part of its timeout.
	savePauses = 32
)

// rotation cycles through the servers in a random order. Only run's goroutine uses it.
type rotation struct {
	servers []string
	at      int
	pause   time.Duration // before the next round; it doubles until a server answers
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

// wait pauses before the next round, for at most longest. It returns false if ctx ends first.
func (t *rotation) wait(ctx context.Context, longest time.Duration) bool {
	t.pause = min(t.pause, longest)
	// Between half of the pause and the whole pause, so that the clients of a crashed server do not
	// reconnect all at once.
	done := backoff.Sleep(ctx, t.pause/2+rand.N(t.pause/2))
	t.pause = min(2*t.pause, maxPause)
	return done
}

// run serves connections, in turn, until the state is final or ctx ends.
func (c *Client) run(ctx context.Context, l *link, t *rotation) {
	for l != nil {
		better := c.serve(ctx, l, t.servers)
		if !c.lost(l) {
			return
		}
		log := c.cfg.Logger.Debug
		if leveled, ok := c.cfg.Logger.(interface{ Warn(string, ...any) }); ok {
			log = leveled.Warn
		}
		log("connection lost", "server", l.address, "error", l.cause)
		if i := slices.Index(t.servers, better); i >= 0 {
			t.at = i // try it next
		}
		// After a working connection the next attempt is immediate. Without the pause, a server
		// that gives sessions but answers nothing would be tried in a tight loop.
		if l.answered {
			t.pause = minPause
		} else if !t.wait(ctx, maxPause) {
			return
		}
		l = c.reconnect(ctx, t)
	}
}

// serve uses a connection until it breaks; then l.cause is the reason. If the Client left a
// read-only server because another server has a quorum, serve returns the other server.
func (c *Client) serve(ctx context.Context, l *link, servers []string) (better string) {
	interrupt := context.AfterFunc(ctx, func() { l.fail(ctx.Err()) })
	defer interrupt()
	gone, stop := context.WithCancel(context.Background())
	var both sync.WaitGroup
	both.Go(func() { c.writeOut(gone, l) }) // ends when gone has ended or a write fails; awaited below
	if l.response.ReadOnly {
		// Ends when gone has ended or a server with a quorum is found; awaited below.
		both.Go(func() { better = c.seekQuorum(gone, l, servers) })
	}
	l.fail(c.readIn(l))
	stop()
	both.Wait()
	return better
}

func (c *Client) readIn(l *link) error {
	for {
		c.events.awaitRoom()
		frame, err := readFrame(l.in, c.cfg.MaxBuffer)
		if large, ok := errors.AsType[*TooLargeError](err); ok {
			if err = c.skip(l, large); err == nil {
				continue
			}
		}
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

// skip reads past a reply that is too large, and answers its call with large. A frame that is not
// the next reply is an error.
func (c *Client) skip(l *link, large *TooLargeError) error {
	head := make([]byte, min(large.Size, proto.ReplyHeaderBytes))
	if _, err := io.ReadFull(l.in, head); err != nil {
		return fmt.Errorf("%w: %w", large, bodyread.Within(err))
	}
	var h proto.ReplyHeader
	d := jute.NewDecoder(head)
	h.Decode(&d)
	c.mu.Lock()
	next := d.Err() == nil && len(l.pending) > 0 && l.pending[0].xid == h.Xid
	if next {
		l.pending[0].fail(proto.ErrMarshallingError, large)
		l.pending = l.pending[1:]
	}
	c.mu.Unlock()
	if !next {
		return fmt.Errorf("not a reply to the next request: %w", large)
	}
	_, err := io.CopyN(io.Discard, l.in, int64(large.Size-len(head)))
	return err
}

func (c *Client) handle(l *link, frame []byte) error {
	var h proto.ReplyHeader
	d := jute.NewDecoder(frame)
	if h.Decode(&d); d.Err() != nil {
		return fmt.Errorf("reply: %w", d.Err())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link != l { // the session has ended
		return ErrClosed
	}
	if h.Err == proto.ErrSessionClosedRequireSASLAuth && h.Xid != proto.XidEvent {
		if len(l.pending) > 0 && l.pending[0].xid == h.Xid {
			l.pending[0].answer(h.Err, nil)
		}
		c.end(AuthFailed, errDemandsIdentity) // the server closes the connection, and would do so again
		return errDemandsIdentity
	}
	answer := l.mark
	if l.mark = nil; answer != nil && h.Xid != proto.XidSetWatches {
		c.handleEvent(*answer) // of a znode with that path
	}
	switch h.Xid {
	case proto.XidEvent:
		var w proto.WatcherEvent
		if w.Decode(&d); d.Err() != nil {
			return fmt.Errorf("event: %w", d.Err())
		}
		e := Event{Type: w.Type, Path: w.Path, Zxid: h.Zxid}
		if e.Path == proto.ReplayMark && !l.told && e.Zxid != proto.NoZxid {
			l.mark = &e
		} else {
			c.handleEvent(e)
		}
		return nil
	case proto.XidPing:
		l.answered = true
		c.lastZxid = max(c.lastZxid, h.Zxid)
		return nil
	case proto.XidAuth:
		return c.handleAuth(l, h.Err)
	case proto.XidSetWatches:
		if h.Err != proto.OK {
			return fmt.Errorf("watches can't be set again: %w", h.Err)
		}
		if answer != nil {
			l.caughtUp = answer.Type == proto.EventDataChanged
		}
		if l.rearming--; l.rearming == 0 {
			c.rearming, c.latest.again = 0, nil
			if !l.told {
				c.events.pushState(c.state, l.caughtUp)
				l.told = true
			}
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

// handleEvent passes on an event of the server unless the watch has been removed. c.mu is held.
func (c *Client) handleEvent(e Event) {
	if !c.latest.repeated(e) && c.watches.fire(e.Type, e.Path) {
		e.State, e.Path = c.state, c.strip(e.Path)
		c.events.push(e)
	}
}

// establish puts a link into use: it sends credentials, then watches, then waiting calls.
func (c *Client) establish(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.Ended() {
		return // run notices the broken link when it serves l
	}
	c.link, c.session = l, l.session()
	c.state = Connected
	if c.session.ReadOnly {
		c.state = ReadOnly
	} else {
		c.global = true
	}
	for _, a := range c.auths {
		c.sendAuth(l, a)
	}
	since := cmp.Or(c.rearming, max(c.lastZxid, c.latest.zxid-1))
	frames := c.watches.frames(since)
	for _, f := range frames {
		l.put(f)
	}
	switch l.rearming = len(frames); l.rearming {
	case 0:
		c.rearming = 0
	case 1: // the events of one request come in order
	default:
		c.rearming = since
	}
	if c.watches.persistent() {
		c.latest.again = slices.Clone(c.latest.events)
	} else {
		c.events.pushState(c.state, true)
		l.told = true
	}
	for _, k := range c.waiting {
		if !k.over {
			c.send(l, k)
		}
	}
	c.waiting, c.nAbandoned = nil, 0
}

// lost fails the calls in progress on a link and reports whether the session may be alive.
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
	if l.told {
		c.events.pushState(Connecting, false)
	}
	return true
}

// reconnect tries the servers in turn until a server resumes the session. It returns nil if the
// session has expired or ctx has ended.
func (c *Client) reconnect(ctx context.Context, t *rotation) *link {
	timeout := c.timeout()
	savable := time.Now().Add(timeout)
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
				c.cfg.Logger.Debug("connected again", "server", address)
				if c.cfg.Hooks.Reconnect != nil {
					c.cfg.Hooks.Reconnect(address)
				}
				return l
			case errors.Is(err, proto.ErrSessionExpired):
				c.over(Expired, c.story(ctx, t, err))
				return nil
			case errors.Is(err, proto.ErrAuthFailed):
				c.over(AuthFailed, fmt.Errorf("client: %w", err))
				return nil
			}
			c.cfg.Logger.Debug("no connection", "server", address, "error", err)
		}
		longest := maxPause
		if time.Now().Before(savable) {
			longest = min(maxPause, max(minPause, timeout/savePauses))
		}
		if !t.wait(ctx, longest) {
			return nil
		}
	}
}

// story returns err, by which a server says that the session has ended. If the server told a part
// of the story, story asks the other servers for the rest.
func (c *Client) story(ctx context.Context, t *rotation, err error) error {
	ctx, cancel := context.WithTimeout(ctx, storyPatience)
	defer cancel()
	var told, more *ExpiredError
	for i := 1; i < len(t.servers) && errors.As(err, &told) && told.Cause == facts.UnknownCause; i++ {
		l, next := c.open(ctx, t.next())
		if l != nil { // a server that does not know of the end
			l.fail(errLeft)
		}
		if errors.As(next, &more) {
			told.EndedSession = facts.JoinEnded([]facts.EndedSession{told.EndedSession, more.EndedSession})[0]
		}
	}
	return err
}

// over ends the Client after a server has refused its session or the credentials of Config.SASL.
// During Close the end of the session means success.
func (c *Client) over(state State, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if state == Expired && c.closing {
		state, err = Closed, ErrClosed
	}
	c.end(state, err)
}
