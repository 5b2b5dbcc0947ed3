package restv2

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/gozkd/gozkd/web/internal/answer"
	"github.com/gozkd/gozkd/web/internal/call"
)

const (
	// keepAlive is how often a stream without events has a comment.
	keepAlive = 15 * time.Second
	// writePatience is how long a reader may take for the bytes that were written.
	writePatience = 10 * time.Second
)

// events answers with a stream of server-sent events.
func (h *Handler) events(w http.ResponseWriter, r *http.Request, path string, q params) error {
	what := call.Watch{Path: path}
	switch q.values.Get("watch") {
	case "", "true":
	case "recursive":
		what.Recursive = true
	default:
		return answer.Bad("the parameter watch is %q, allowed are true and recursive", q.values.Get("watch"))
	}
	if r.Method == http.MethodHead {
		return answer.Bad("a stream of events has no HEAD")
	}
	c := call.Of(r)
	session, err := c.Session()
	if err != nil {
		return err
	}
	leave, ok := h.Streams.Enter(c.Caller.Account())
	if !ok {
		return answer.Busy(10, "too many streams of events are open: close others")
	}
	defer leave()
	stream, err := session.Open(r.Context(), what, r.Header.Get("Last-Event-ID"))
	if err != nil {
		return err
	}
	defer stream.Close()
	to := http.NewResponseController(w)
	bound := func() error { return to.SetWriteDeadline(time.Now().Add(writePatience)) }
	if errors.Is(bound(), http.ErrNotSupported) {
		return answer.Errorf(http.StatusNotImplemented, "this program cannot bound how long a stream's reader takes")
	}
	answer.Events(w)
	if to.Flush() != nil { // the reader learns at once that the watch is set
		return nil //nolint:nilerr // the reader has gone
	}
	for {
		text, err := next(r.Context(), stream)
		if err != nil {
			return nil //nolint:nilerr // the reader has gone, or reconnects and then gets a reset
		}
		if !c.LoggedIn() || bound() != nil { // the connection is closed
			return nil
		}
		if _, err := io.WriteString(w, text); err != nil || to.Flush() != nil {
			return nil //nolint:nilerr // the same
		}
	}
}

// next waits for events, or returns a sign of life.
func next(ctx context.Context, s *call.Stream) (string, error) {
	wait, cancel := context.WithTimeout(ctx, keepAlive)
	defer cancel()
	text, err := s.Next(wait)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return s.Beat(ctx), nil
	}
	return text, err
}
