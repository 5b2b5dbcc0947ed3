package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// Client is a session with an ensemble, over at most one connection at a time. Its methods may be
// called from any goroutine.
type Client struct {
	cfg     Config
	events  eventQueue
	done    chan struct{} // closed when the state is final
	cancel  context.CancelFunc
	running sync.WaitGroup // run, and the delivery of events

	leaving  atomic.Bool   // the first Close or Detach has begun
	left     chan struct{} // closed when that call has done its work
	closeErr error

	mu      sync.Mutex // guards the fields below and those of link that say so
	state   State
	err     error // why the state is final
	closing bool  // closeSession was submitted: later requests are refused
	session Session
	// A server with a quorum has given or confirmed the session, so all servers know the session.
	global   bool
	lastZxid proto.Zxid // of all replies
	latest   latest
	// rearming is as of when the watches are set again, until several requests are answered:
	// latest may be of some of them. 0 at other times.
	rearming proto.Zxid
	link     *link // nil: no connection
	// Submitted while there was no connection, in order; abandoned calls have over set.
	waiting    []*call
	nAbandoned int   // number of waiting calls with over set
	xid        int32 // of the latest request
	auths      []*auth
	watches    watchTable
}

// Session describes the session and the connection.
type Session struct {
	ID       int64
	Password []byte
	Timeout  time.Duration // negotiated
	// Address of the connected server, as in Config.Servers; "" if there is none.
	Server   string
	ReadOnly bool // the connected server has no quorum
}

// Connect tries each server once, in random order. It returns when the Client has a session and the
// server has accepted Config.SASL and Config.Auths. The error lists the failure of each address.
// After an error a session of Config.Resume may live on. ctx bounds the call but not the Client.
func Connect(ctx context.Context, cfg Config) (*Client, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, done: make(chan struct{}), left: make(chan struct{}), watches: newWatchTable()}
	c.lastZxid = cfg.LastZxid
	c.events.change.L = &c.events.mu
	for _, a := range cfg.Auths {
		c.auths = append(c.auths, newAuth(a.Scheme, a.Credential))
	}
	if cfg.Resume != nil {
		c.session, c.global = *cfg.Resume, true
	}
	rotation := newRotation(cfg.Servers)
	l, err := c.anyServer(ctx, rotation)
	if err != nil {
		return nil, err
	}
	auths := slices.Clone(c.auths)
	c.establish(l)
	var run context.Context
	run, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	c.running.Go(func() { c.events.deliver(cfg.OnEvent) }) // until c.end has closed the queue, and it is empty
	c.running.Go(func() { c.run(run, l, rotation) })       // until the state is final or Close cancels its ctx
	for _, a := range auths {
		if err := c.awaitAuth(ctx, a); err != nil {
			c.Detach() // a session to resume must survive; a new one has no znodes, and expires
			return nil, fmt.Errorf("client: no session: %w", err)
		}
	}
	return c, nil
}

func (c *Client) anyServer(ctx context.Context, t *rotation) (*link, error) {
	var errs []error
	for range t.servers {
		address := t.next()
		l, err := c.open(ctx, address)
		if err == nil {
			return l, nil
		}
		err = c.story(ctx, t, err)
		errs = append(errs, fmt.Errorf("%s: %w", address, withoutAddress(err, address)))
		if ctx.Err() != nil || errors.Is(err, proto.ErrAuthFailed) || c.cfg.Resume != nil && errors.Is(err, proto.ErrSessionExpired) {
			break
		}
	}
	return nil, fmt.Errorf("client: no session: %w", errors.Join(errs...))
}

// Close ends the session, which deletes its ephemeral znodes. It returns when a server has
// confirmed the end. Without a confirmation, Close returns an error after ConnectTimeout, and the
// session expires after its timeout. Earlier requests are answered; later requests fail with
// ErrClosed. When Close returns, all goroutines of the Client have ended and OnEvent is not called
// any more, so OnEvent must not call Close. Further calls wait for the first call and return the
// same error.
func (c *Client) Close() error {
	c.leave(func() {
		ctx, cancel := context.WithTimeout(context.Background(), c.cfg.ConnectTimeout)
		defer cancel()
		err := c.endSession(ctx)
		for errors.Is(err, proto.ErrConnectionLoss) {
			// Repeated on the next connection. If the session was closed, the server answers that
			// the session has expired.
			err = c.endSession(ctx)
		}
		c.mu.Lock()
		if c.end(Closed, ErrClosed) { // no server confirmed the end: err is not nil
			c.closeErr = fmt.Errorf("%w; the session ends by itself after %v", err, c.session.Timeout)
		}
		c.mu.Unlock()
	})
	return c.closeErr
}

// Detach ends the Client but not its session, which another Client may resume and which otherwise
// expires. Requests that were not sent fail and never will be sent. Detach waits as Close does.
func (c *Client) Detach() {
	c.leave(func() {
		c.mu.Lock()
		c.end(Closed, ErrClosed)
		c.mu.Unlock()
	})
}

// Reconnect leaves the present server, if there is one. Requests under way fail with
// proto.ErrConnectionLoss. The Client resumes its session on the next of Config.Servers that can.
func (c *Client) Reconnect() {
	c.mu.Lock()
	l := c.link
	c.mu.Unlock()
	if l != nil {
		l.fail(errLeft)
	}
}

// leave calls f, unless another call has done so, and waits until the Client has ended. Those who
// wait do so at a channel and not in a sync.Once, so that time passes in a testing/synctest bubble.
func (c *Client) leave(f func()) {
	if c.leaving.CompareAndSwap(false, true) {
		f()
		c.cancel()
		close(c.left)
	}
	<-c.left
	c.running.Wait()
}

func (c *Client) endSession(ctx context.Context) error {
	return c.do(ctx, request{op: proto.OpCloseSession, settled: func(proto.ErrCode) { c.end(Closed, ErrClosed) }}, nil)
}

// Session returns the present session.
func (c *Client) Session() Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.session
	s.Password = bytes.Clone(s.Password)
	return s
}

// State returns the state of the session.
func (c *Client) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// LastZxid returns the highest zxid of any reply. On every server, later reads are at least as new.
func (c *Client) LastZxid() proto.Zxid {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lastZxid
}

// Done returns a channel that is closed when the session has ended; Err returns the reason.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err returns nil while the session may be alive, then ErrClosed, or an error that is
// proto.ErrSessionExpired or proto.ErrAuthFailed: an ExpiredError if servers say why it ended.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// end makes state the final state and fails all calls. It returns false if the state is final
// already. c.mu is held.
func (c *Client) end(state State, err error) bool {
	if c.state.Ended() {
		return false
	}
	c.state, c.err = state, err
	c.session.Server, c.session.ReadOnly = "", false
	if l := c.link; l != nil {
		c.link = nil
		for _, k := range l.pending {
			k.fail(c.endCode(), err)
		}
		l.pending = nil
	}
	for _, k := range c.waiting {
		k.fail(c.endCode(), err)
	}
	c.waiting, c.nAbandoned = nil, 0
	c.events.pushState(state, false)
	c.events.close()
	close(c.done)
	return true
}

// endCode returns the code for calls after the end. c.mu is held.
func (c *Client) endCode() proto.ErrCode {
	if c.state == AuthFailed {
		return proto.ErrAuthFailed
	}
	return proto.ErrSessionExpired
}

// do sends a request, or queues it until there is a connection, and waits for the reply, which
// decode reads unless it is nil. The error is an *Error.
func (c *Client) do(ctx context.Context, r request, decode func(*jute.Decoder)) (err error) {
	if h := c.cfg.Hooks.Request; h != nil {
		if ended := h(ctx, r.op.String(), r.path); ended != nil {
			defer func() { ended(0, err) }()
		}
	}
	k := &call{request: r, frame: frame(0, r.op, r.body), done: make(chan struct{})}
	if ctx.Err() != nil {
		return &Error{Op: r.op.String(), Path: r.path, Code: proto.ErrOperationTimeout, Cause: context.Cause(ctx)}
	}
	if n, limit := len(k.frame)-frameBytes, c.cfg.MaxRequest; limit > 0 && n > limit {
		return c.refuse(r.op, r.path, &TooLargeError{Size: n, Limit: limit})
	}
	c.submit(k)
	select {
	case <-k.done:
	case <-ctx.Done():
		c.abandon(k, context.Cause(ctx))
		<-k.done
	}
	if k.code != proto.OK {
		return &Error{Op: r.op.String(), Path: r.path, Code: k.code, Cause: k.cause, Unknown: k.unknown}
	}
	if decode == nil {
		return nil
	}
	d := jute.NewDecoder(k.reply)
	if decode(&d); d.Err() != nil {
		return &Error{Op: r.op.String(), Path: r.path, Code: proto.ErrMarshallingError, Cause: d.Err(), Unknown: r.op.Info().Write}
	}
	if r.outcome != nil {
		return r.outcome()
	}
	return nil
}

// doPath is do for an operation on a caller's path. body makes the request from the server's path.
func (c *Client) doPath(
	ctx context.Context, op proto.OpCode, path string, body func(full string) request, decode func(*jute.Decoder),
) error {
	full, err := c.full(op, path)
	if err != nil {
		return err
	}
	r := body(full)
	r.op, r.path = op, path
	return c.do(ctx, r, decode)
}

func (c *Client) submit(k *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.state.Ended():
		k.fail(c.endCode(), c.endCause())
	case c.closing && k.op != proto.OpCloseSession:
		k.fail(proto.ErrSessionExpired, ErrClosed)
	case k.only != nil && k.only != c.link:
		k.fail(proto.ErrConnectionLoss, errOtherServer)
	case c.link != nil:
		c.send(c.link, k)
	default:
		c.waiting = append(c.waiting, k)
	}
	if k.op == proto.OpCloseSession {
		c.closing = true
	}
}

// endCause returns the Error.Cause that goes with endCode. c.mu is held.
func (c *Client) endCause() error {
	if c.err == error(c.endCode()) { //nolint:errorlint // an error that wraps the code says more
		return nil
	}
	return c.err
}

// abandon completes a call whose caller no longer waits. A request that was sent keeps its place in
// the order of replies.
func (c *Client) abandon(k *call, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.over {
		return
	}
	if !k.sent() {
		c.nAbandoned++
	}
	k.fail(proto.ErrOperationTimeout, cause)
	// In bulk: removing calls singly would take quadratic time.
	if 2*c.nAbandoned > len(c.waiting) {
		c.waiting = slices.DeleteFunc(c.waiting, func(k *call) bool { return k.over })
		c.nAbandoned = 0
	}
}

// full returns the server's path for a caller's path. Invalid paths are refused: they could lead
// outside the chroot.
func (c *Client) full(op proto.OpCode, path string) (string, error) {
	return c.newPath(op, path, false)
}

// newPath is full for a znode to be created. The name of a sequential znode may consist of the
// server's digits alone.
func (c *Client) newPath(op proto.OpCode, path string, sequential bool) (string, error) {
	check := path
	if sequential {
		check += "1"
	}
	if err := proto.ValidatePath(check); err != nil {
		return "", c.refuse(op, path, err)
	}
	switch {
	case c.cfg.Chroot == "":
		return path, nil
	case path == "/" && !sequential:
		return c.cfg.Chroot, nil
	default:
		return c.cfg.Chroot + path, nil
	}
}

// strip returns the caller's path for a server's path. A path outside the chroot is unchanged.
func (c *Client) strip(full string) string {
	rest, ok := strings.CutPrefix(full, c.cfg.Chroot)
	switch {
	case !ok || c.cfg.Chroot == "":
		return full
	case rest == "":
		return "/"
	case rest[0] != '/':
		return full
	default:
		return rest
	}
}

// refuse returns the error of a request that is not sent.
func (c *Client) refuse(op proto.OpCode, path string, why error) error {
	return &Error{Op: op.String(), Path: path, Code: proto.ErrBadArguments, Cause: fmt.Errorf("not sent: %w", why)}
}
