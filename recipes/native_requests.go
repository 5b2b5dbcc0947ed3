package recipes

import (
	"context"
	"errors"
	"fmt"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

// send runs f with the Client of the current session, and converts its error. Watches fire before
// send returns a result, or an error, that shows the change. Otherwise the late event would fire a
// watch that the caller asks for next: "deleted", for example, of a znode that the caller has
// created again.
func send[T any](ctx context.Context, n *native, f func(conn *client.Client) (T, error)) (v T, err error) {
	conn, err := n.current(ctx)
	if err != nil {
		return v, err
	}
	v, err = f(conn)
	_ = conn.AwaitEvents(ctx) // fails only if nobody waits for the result
	if err != nil {
		return v, nativeError(ctx, err)
	}
	return v, nil
}

func (n *native) create(ctx context.Context, path string, data []byte, o CreateOptions) (string, error) {
	return send(ctx, n, func(conn *client.Client) (string, error) {
		created, _, err := conn.Create(ctx, path, data, nativeOptions(o))
		return created, err
	})
}

func nativeOptions(o CreateOptions) client.CreateOptions {
	return client.CreateOptions{
		Ephemeral: o.Ephemeral, Sequential: o.Sequential, Container: o.Container, TTL: o.TTL, ACL: o.ACL, NoStat: true,
	}
}

func (n *native) delete(ctx context.Context, path string, version int32) error {
	_, err := send(ctx, n, func(conn *client.Client) (struct{}, error) { return struct{}{}, conn.Delete(ctx, path, version) })
	return err
}

func (n *native) set(ctx context.Context, path string, data []byte, version int32) (*proto.Stat, error) {
	return send(ctx, n, func(conn *client.Client) (*proto.Stat, error) {
		stat, err := conn.Set(ctx, path, data, version)
		return &stat, err
	})
}

func (n *native) sync(ctx context.Context, path string) error {
	_, err := send(ctx, n, func(conn *client.Client) (string, error) { return conn.Sync(ctx, path) })
	return err
}

func (n *native) read(ctx context.Context, kind readKind, path string, watched bool) (readResult, error) {
	return send(ctx, n, func(conn *client.Client) (r readResult, err error) {
		stat, there := proto.Stat{}, true
		var w *watch
		if watched {
			if w, err = n.expectWatch(conn, watchKey{path, kind == readChildren}); err != nil {
				return r, err
			}
		}
		switch kind {
		case readData:
			r.data, stat, err = conn.Get(ctx, path, watched)
		case readExists:
			stat, there, err = conn.Exists(ctx, path, watched)
		case readChildren:
			r.children, stat, err = conn.Children(ctx, path, watched)
		}
		if there {
			r.stat = &stat
		}
		if watched {
			n.mu.Lock()
			defer n.mu.Unlock()
			r.watch = n.watches.answered(w, err == nil)
		}
		return r, err
	})
}

func (n *native) multi(ctx context.Context, ops []client.Op) ([]client.Result, error) {
	return send(ctx, n, func(conn *client.Client) ([]client.Result, error) {
		results, err := conn.Multi(ctx, ops...)
		for i := range results {
			results[i].Err = nativeError(ctx, results[i].Err)
		}
		return results, err
	})
}

// nativeError converts an error of package client to one that classify knows.
func nativeError(ctx context.Context, err error) error {
	var e *client.Error
	if !errors.As(err, &e) {
		return err
	}
	local := e.Cause != nil // the code is not a server's
	switch {
	case local && e.Code == proto.ErrOperationTimeout && ctx.Err() != nil:
		return newCtxError(ctx, e.Unknown)
	case e.Unknown, !local && (e.Code == proto.ErrConnectionLoss || e.Code == proto.ErrOperationTimeout):
		return &requestError{proto.ErrConnectionLoss, e}
	case errors.Is(err, client.ErrTooLarge):
		return e.Cause
	case local && e.Code == proto.ErrBadArguments:
		return fmt.Errorf("%w: %w", e.Code, e.Cause)
	case local && e.Code != proto.ErrMarshallingError, e.Code == proto.ErrSessionExpired:
		return &requestError{ErrNoServer, e}
	case local:
		return err
	}
	return e.Code
}

// requestError is an error of package client that also matches the error as. Its text leaves out
// the operation and the path, which the *Error of this package has.
type requestError struct {
	as error
	e  *client.Error
}

func (r *requestError) Error() string {
	switch {
	case r.e.Cause != nil:
		return r.as.Error() + ": " + r.e.Cause.Error()
	case errors.Is(r.as, r.e.Code): // a server's answer
		return r.as.Error()
	}
	return r.as.Error() + ": " + r.e.Code.String()
}

func (r *requestError) Unwrap() []error { return []error{r.as, r.e} }
