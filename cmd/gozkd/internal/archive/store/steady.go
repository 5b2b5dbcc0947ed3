package store

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// patience is for how long a request may make no progress.
const patience = 30 * time.Second

var errStalled = errors.New("no byte was sent or received for " + patience.String())

// steady ends requests that make no progress. A slow request that makes some is not ended: objects
// are large, and links between sites may be slow.
type steady struct{ base http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (s steady) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	progress := &body{ctx: ctx, timer: time.AfterFunc(patience, func() { cancel(errStalled) })}
	r = r.WithContext(ctx)
	if r.Body != nil {
		r.Body = progress.of(r.Body)
	}
	if again := r.GetBody; again != nil { // on another connection
		r.GetBody = func() (io.ReadCloser, error) {
			b, err := again()
			return progress.of(b), err
		}
	}
	resp, err := s.base.RoundTrip(r)
	if err != nil {
		progress.timer.Stop()
		err = progress.explain(err)
		cancel(nil)
		return nil, err
	}
	resp.Body = progress.of(resp.Body)
	resp.Body.(*body).end = cancel
	return resp, nil
}

// body is the body of a request or of a reply, each read of which is progress.
type body struct {
	io.ReadCloser
	ctx   context.Context //nolint:containedctx // of the request
	timer *time.Timer
	end   context.CancelCauseFunc // nil: of a request, which a reply may follow
}

func (b *body) of(from io.ReadCloser) *body {
	return &body{ReadCloser: from, ctx: b.ctx, timer: b.timer}
}

func (b *body) Read(p []byte) (int, error) {
	b.timer.Reset(patience)
	n, err := b.ReadCloser.Read(p)
	return n, b.explain(err)
}

func (b *body) Close() error {
	if b.end != nil {
		b.timer.Stop()
		b.end(nil)
	}
	return b.ReadCloser.Close()
}

func (b *body) explain(err error) error {
	if err != nil && errors.Is(context.Cause(b.ctx), errStalled) {
		return errStalled
	}
	return err
}
