package restv2

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/gozkd/gozkd/web/internal/answer"
	"github.com/gozkd/gozkd/web/internal/call"
)

// writePatience is how long a reader may take for the bytes that were written.
const writePatience = 10 * time.Second

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
		text, err := stream.Next(r.Context())
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
