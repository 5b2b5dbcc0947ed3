package recipes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/requesthook"
)

// Client is a connection to ZooKeeper. A Client retries requests after a lost connection, notices
// the loss of its session before the server can end the session, and lets a context end every call.
// Safe for concurrent use.
type Client struct {
	core *core
	root string // the namespace's path; "" if none
	// idempotent repeats a write whose answer was lost; see Idempotent.
	idempotent bool
}

// Connect connects to one of servers and returns when a session is established. Each of servers is
// "host:port", or a connect string of ZooKeeper's clients: "host1:port,host2:port/chroot". With a
// chroot, which may only be at the end of the last, the result is the Client's Namespace of it.
//
// If ctx ends first, Connect fails with the reason of the latest attempt. While Connect waits for
// longer, it tells the Logger so, or without Logger the standard logger of package log. ctx has no
// effect after Connect. The Client must be closed.
func Connect(ctx context.Context, servers []string, opts ...Option) (*Client, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(servers, func(s string) bool { return strings.Contains(s, "/") }); i >= 0 && i < len(servers)-1 {
		return nil, fmt.Errorf("recipes: connect: %q has a chroot and is not the last of the servers", servers[i])
	}
	servers, chroot, err := client.ParseServers(strings.Join(servers, ","))
	if err != nil {
		return nil, fmt.Errorf("recipes: connect: %w", err)
	}
	k := newCore(cfg)
	n := newNative(k, servers)
	k.conn, k.hook = n, requesthook.From(ctx)
	// Ends when the Client is closed; Close waits.
	k.loops.Go(n.run)
	c := &Client{core: k}
	if err := k.start(ctx, "connect to "+strings.Join(servers, ",")); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c.Namespace(chroot), nil
}

// Close ends the session if Connect made that session. On a wrapped connection, Close deletes the
// ephemerals that Create and Multi made in the session. Background work is ended and awaited. Calls
// in progress get a third of the session timeout to finish. Closing a namespace closes the whole
// Client.
//
// The error reports calls that Close could not wait for, because a wrapped connection does not
// answer them.
func (c *Client) Close() error { return c.core.close() }

// Namespace returns a Client for the same connection whose paths are relative to path. Missing
// znodes down to path are created on first use, as containers if the server supports them. Slashes
// at the ends of path make no difference: "app" is "/app", and "" is "/", the Client's own paths.
// If path is not valid otherwise, operations fail.
func (c *Client) Namespace(path string) *Client {
	root := c.root
	if path = strings.Trim(path, "/"); path != "" {
		root += "/" + path
	}
	return &Client{core: c.core, root: root, idempotent: c.idempotent}
}

// Idempotent returns a Client for the same connection that repeats a Create, Set or Delete whose
// answer was lost, until the znode is as wanted. Other clients may have done the same meanwhile, or
// more: a Delete may delete a znode that was created again, and a Set with version -1 may overwrite
// a later Set. After a lost answer
//
//   - Create counts as done if the znode exists with this data and version 0, and for an ephemeral
//     with this session as its owner,
//   - Set with a version counts as done if the znode has the next version and this data,
//   - Delete counts as done if the znode is missing.
//
// Otherwise the error's Unknown is set. Use Idempotent if these effects do no harm, for example
// with names that are never used again.
func (c *Client) Idempotent() *Client {
	return &Client{core: c.core, root: c.root, idempotent: true}
}

// Session returns the current session: after Lost, the lost one until there is a new session.
func (c *Client) Session() *Session { return c.core.currentSession() }

// AwaitSession returns the current session if that is alive, and otherwise waits for the next.
func (c *Client) AwaitSession(ctx context.Context) (*Session, error) {
	if s := c.Session(); s.Context().Err() == nil {
		return s, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for state := range c.States(ctx) {
		if s := c.Session(); state != Closed && s.Context().Err() == nil {
			return s, nil
		}
	}
	if ctx.Err() == nil {
		return nil, &Error{"await session", "", ErrClosed, false}
	}
	return nil, &Error{"await session", "", newCtxError(ctx, false), false}
}

// Timeout returns the negotiated session timeout.
func (c *Client) Timeout() time.Duration { return time.Duration(c.core.timeout.Load()) }

// absolute converts a path of the Client to the server's. A path without a slash at its beginning
// stays, and is refused: below the root it would be a sibling of the namespace.
func (c *Client) absolute(path string) string {
	switch {
	case !strings.HasPrefix(path, "/"):
		return path
	case path == "/" && c.root != "":
		return c.root
	}
	return c.root + path
}

// relative is the inverse of absolute. The empty path, which no znode has, stays empty.
func (c *Client) relative(path string) string {
	if rest := strings.TrimPrefix(path, c.root); rest != "" || path == "" {
		return rest
	}
	return "/"
}
