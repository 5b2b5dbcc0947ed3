package recipes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/lastzxid"
)

// Client is a connection to ZooKeeper that tries again, knows when its session is lost, and does what it is asked until a context ends. All
// its methods may be called from any goroutine.
type Client struct {
	core *core
	root string // of the namespace, "" for none
}

// Connect connects to one of servers, each host:port, and returns when there is a session. When ctx ends before, it gives up; afterwards ctx
// has no meaning to the Client, which must be closed.
func Connect(ctx context.Context, servers []string, opts ...Option) (*Client, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	if len(servers) == 0 {
		return nil, errors.New("recipes: no servers to connect to")
	}
	k := newCore(cfg, false)
	provider := &hostProvider{closing: k.closing, maxPause: k.maxReconnectPause}
	conn, events, err := zk.Connect(servers, cfg.timeout,
		zk.WithDialer(func(network, address string, timeout time.Duration) (net.Conn, error) {
			provider.pauseBeforeDial()
			return k.dial(network, address, timeout)
		}),
		zk.WithHostProvider(provider),
		zk.WithEventCallback(k.event),
		zk.WithLogger(cfg.logger),
		zk.WithLogInfo(false))
	if err != nil {
		return nil, fmt.Errorf("recipes: connect: %w", err)
	}
	k.conn, k.ownConn, k.events = conn, conn, events
	c := &Client{core: k}
	if err := k.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("recipes: connect: %w", err), c.Close())
	}
	return c, nil
}

// Wrap makes a Client of a connection that exists, and returns when it has answered, or ctx ends.
//
//	events   what zk.Connect returned with conn; the Client reads it from now on
//	timeout  the session timeout as it was negotiated, or less; zk.Conn does not tell it. If it is more, Lost may come too late.
//
// The Client does not close conn. Prefer Connect, which can do more: a session that was declared lost and turns out to be alive is closed
// there; here its ephemerals that Create and Multi made are deleted, and it goes on under the same number as a new Session. While conn is without
// a server, calls end when it gives up on them, which with zk's own host provider is a second or more later.
func Wrap(ctx context.Context, conn Conn, events <-chan zk.Event, timeout time.Duration, opts ...Option) (*Client, error) {
	cfg, err := newConfig(append(opts, SessionTimeout(timeout)))
	if err != nil {
		return nil, err
	}
	k := newCore(cfg, true)
	k.conn, k.events = conn, events
	k.ephemerals = make(map[string]struct{})
	c := &Client{core: k}
	// Ends when the connection does or the Client is closed; Close waits for it.
	k.loops.Go(k.followEvents)
	if err := k.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("recipes: wrap: %w", err), c.Close())
	}
	return c, nil
}

// Close ends the session if Connect made it, or else deletes the ephemerals that Create and Multi made in it; and it ends all that goes on in
// the background. It waits for both. What is under way gets a third of the session timeout to come to its end, whether or not there is a
// connection. Closing any namespace of a Client closes all.
//
// The error says what could not be waited for: calls on a wrapped connection that does not answer.
func (c *Client) Close() error { return c.core.close() }

// Namespace returns a Client for the same connection whose paths are all below path. The znodes down to path are made when they are
// needed first, as containers where the server has them. It panics if path does not begin with a slash or ends with one.
func (c *Client) Namespace(path string) *Client {
	if !strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") {
		panic("recipes: namespace " + path + " must begin with a slash and not end with one")
	}
	return &Client{c.core, c.root + path}
}

// Session returns the present session; after Lost, until there is another, the one that was lost.
func (c *Client) Session() *Session { return c.core.currentSession() }

// AwaitSession returns the present session if it is not over, and else waits for the next.
func (c *Client) AwaitSession(ctx context.Context) (*Session, error) {
	if s := c.Session(); s.Context().Err() == nil {
		return s, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for state := range c.States(ctx) {
		if state == Closed {
			return nil, &Error{"await session", "/", ErrClosed, false}
		}
		if s := c.Session(); s.Context().Err() == nil {
			return s, nil
		}
	}
	if ctx.Err() == nil {
		return nil, &Error{"await session", "/", ErrClosed, false}
	}
	return nil, &Error{"await session", "/", newCtxError(ctx, false), false}
}

// Timeout returns the negotiated session timeout.
func (c *Client) Timeout() time.Duration { return time.Duration(c.core.timeout.Load()) }

// absolute returns the server's path of one of the Client's.
func (c *Client) absolute(path string) string {
	if path == "/" && c.root != "" {
		return c.root
	}
	return c.root + path
}

// relative is the inverse of absolute.
func (c *Client) relative(path string) string {
	if path = strings.TrimPrefix(path, c.root); path == "" {
		return "/"
	}
	return path
}

// dial makes a connection for zk.Conn, in place of the one before. go-zookeeper does not close the one on which it learned that its
// session has expired.
func (k *core) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	k.closeNetConn()
	conn, err := k.cfg.dialer(network, address, timeout)
	if err != nil {
		return nil, err
	}
	// What one session has seen means nothing to the next. A server that has less refuses who says it, for ever if it has lost its data.
	if s := k.currentSession(); s != nil && s.Context().Err() != nil {
		k.lastSeenZxid = new(lastzxid.Seen)
	}
	w := &sessionConn{Conn: lastzxid.NewConn(conn, k.lastSeenZxid), owner: k, timeout: time.Duration(k.timeout.Load())}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.state == Closed {
		return nil, errors.Join(ErrClosed, conn.Close())
	}
	k.netConn = w
	return w, nil
}

// cutWire closes the network connection, if Connect made it.
func (k *core) closeNetConn() {
	k.mu.Lock()
	w := k.netConn
	k.netConn = nil
	k.mu.Unlock()
	if w != nil {
		_ = w.Conn.Close() // it is being given up
	}
}
