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

var errStalled = errors.New("nothing was taken, and no answer or no further byte of it came, for " + patience.String())

// steady ends requests that make no progress: the store takes nothing of an upload, or nothing of
// its answer comes. A slow request that makes some is not ended: objects are large, and links
// between sites may be slow.
type steady struct{ base http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (s steady) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	b := &body{ctx: ctx, timer: time.AfterFunc(patience, func() { cancel(errStalled) }), cancel: cancel}
	r = r.WithContext(ctx)
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = upload{r.Body, b.timer}
	}
	resp, err := s.base.RoundTrip(r)
	if err != nil {
		err = b.explain(err)
		b.stop()
		return nil, err
	}
	b.ReadCloser, resp.Body = resp.Body, b
	return resp, nil
}

// upload is the body of a request. The store has taken what was read before.
type upload struct {
	io.ReadCloser
	timer *time.Timer
}

func (u upload) Read(p []byte) (int, error) {
	u.timer.Reset(patience)
	return u.ReadCloser.Read(p)
}

// body is the body of an answer, each read of which is progress.
type body struct {
	io.ReadCloser
	ctx    context.Context //nolint:containedctx // of the request
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

func (b *body) Read(p []byte) (int, error) {
	b.timer.Reset(patience)
	n, err := b.ReadCloser.Read(p)
	return n, b.explain(err)
}

func (b *body) Close() error {
	b.stop()
	return b.ReadCloser.Close()
}

func (b *body) stop() {
	b.timer.Stop()
	b.cancel(nil)
}

func (b *body) explain(err error) error {
	if err != nil && errors.Is(context.Cause(b.ctx), errStalled) {
		return errStalled
	}
	return err
}
