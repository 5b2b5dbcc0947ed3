package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/internal/wakeup"
	"github.com/gozkd/gozkd/proto"
)

// auth is a credential. accepted tells whether a server has accepted it.
type auth struct {
	request  proto.AuthRequest
	accepted chan struct{} // closed at the first acceptance, with Client.mu held
}

func newAuth(scheme string, credential []byte) *auth {
	return &auth{request: proto.AuthRequest{Scheme: scheme, Auth: bytes.Clone(credential)}, accepted: make(chan struct{})}
}

// AddAuth adds a credential to this and all later connections of the session, and returns when a
// server has accepted it. A server that refuses a credential closes the connection, which ends the
// Client in state AuthFailed. If ctx ends early, the credential stays added.
func (c *Client) AddAuth(ctx context.Context, scheme string, credential []byte) error {
	a := newAuth(scheme, credential)
	c.mu.Lock()
	if c.link != nil {
		c.sendAuth(c.link, a)
	}
	if !c.state.Ended() {
		c.auths = append(c.auths, a)
	}
	c.mu.Unlock()
	return c.awaitAuth(ctx, a)
}

func (c *Client) awaitAuth(ctx context.Context, a *auth) error {
	failed := &Error{Op: proto.OpAuth.String()}
	select {
	case <-a.accepted:
		return nil
	case <-c.done:
		c.mu.Lock()
		defer c.mu.Unlock()
		failed.Code, failed.Cause = c.endCode(), c.endCause()
	case <-ctx.Done():
		failed.Code, failed.Cause = proto.ErrOperationTimeout, context.Cause(ctx)
	}
	return failed
}

// sendAuth puts a credential on a link. c.mu is held.
func (c *Client) sendAuth(l *link, a *auth) {
	l.put(frame(proto.XidAuth, proto.OpAuth, a.request.Append))
	l.auths = append(l.auths, a)
}

// handleAuth takes the reply to the oldest unanswered credential. c.mu is held.
func (c *Client) handleAuth(l *link, code proto.ErrCode) error {
	if len(l.auths) == 0 {
		return errors.New("an answer to a credential that was not sent")
	}
	a := l.auths[0]
	l.auths = l.auths[1:]
	if code != proto.OK {
		// The Client ends here, as the writer might be first to notice that the connection breaks.
		err := fmt.Errorf("client: credential of scheme %q: %w", a.request.Scheme, code)
		if code != proto.ErrAuthFailed {
			err = fmt.Errorf("%w: %w", err, proto.ErrAuthFailed)
		}
		c.end(AuthFailed, err)
		return err
	}
	if wakeup.Fired(a.accepted) {
		return nil
	}
	// A credential that was added twice is sent once on the next connection.
	c.auths = slices.DeleteFunc(c.auths, func(b *auth) bool {
		return b != a && wakeup.Fired(b.accepted) && b.request.Scheme == a.request.Scheme && bytes.Equal(b.request.Auth, a.request.Auth)
	})
	close(a.accepted)
	return nil
}

// Identity is an identity that the server has assigned to the connection.
type Identity struct {
	Scheme string
	User   string // for digest the part before the colon
}

// GetACL returns a znode's access control list and its Stat.
func (c *Client) GetACL(ctx context.Context, path string) ([]proto.ACL, proto.Stat, error) {
	var resp proto.ACLResponse
	if err := c.doPath(ctx, proto.OpGetACL, path, pathOf, resp.Decode); err != nil {
		return nil, proto.Stat{}, err
	}
	return resp.ACL, resp.Stat, nil
}

// SetACL replaces a znode's access control list if the list has that version (Stat.Aversion), and
// returns the new Stat.
func (c *Client) SetACL(ctx context.Context, path string, acl []proto.ACL, version int32) (stat proto.Stat, err error) {
	err = c.doPath(ctx, proto.OpSetACL, path, func(full string) request {
		return request{body: (&proto.SetACLRequest{Path: full, ACL: acl, Version: version}).Append}
	}, stat.Decode)
	return stat, err
}

// WhoAmI returns the identities of the connection, unsorted. Every connection has at least its
// address, with the scheme "ip".
func (c *Client) WhoAmI(ctx context.Context) ([]Identity, error) {
	var resp proto.WhoAmIResponse
	if err := c.do(ctx, request{op: proto.OpWhoAmI}, resp.Decode); err != nil {
		return nil, err
	}
	ids := make([]Identity, 0, len(resp.IDs))
	for _, id := range resp.IDs {
		ids = append(ids, Identity{Scheme: id.Scheme, User: id.ID})
	}
	return ids, nil
}

// Ephemerals returns the paths of the session's ephemeral znodes that begin with prefix, unsorted.
func (c *Client) Ephemerals(ctx context.Context, prefix string) ([]string, error) {
	var resp proto.StringsResponse
	if err := c.doPath(ctx, proto.OpGetEphemerals, prefix, pathOf, resp.Decode); err != nil {
		return nil, err
	}
	paths := make([]string, 0, len(resp.Strings))
	for _, p := range resp.Strings {
		// The server compares strings: /app2 matches the chroot /app.
		if c.cfg.Chroot == "" || strings.HasPrefix(p, c.cfg.Chroot+"/") {
			paths = append(paths, c.strip(p))
		}
	}
	return paths, nil
}
