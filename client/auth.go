package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

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

func (a *auth) isAccepted() bool {
	select {
	case <-a.accepted:
		return true
	default:
		return false
	}
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
		// The Client ends here, because the writer might be first to notice that the connection
		// breaks.
		err := fmt.Errorf("client: credential of scheme %q: %w", a.request.Scheme, code)
		if code != proto.ErrAuthFailed {
			err = fmt.Errorf("%w: %w", err, proto.ErrAuthFailed)
		}
		c.end(AuthFailed, err)
		return err
	}
	if a.isAccepted() {
		return nil
	}
	// A credential that was added twice is sent once on the next connection.
	c.auths = slices.DeleteFunc(c.auths, func(b *auth) bool {
		return b != a && b.isAccepted() && b.request.Scheme == a.request.Scheme && bytes.Equal(b.request.Auth, a.request.Auth)
	})
	close(a.accepted)
	return nil
}
