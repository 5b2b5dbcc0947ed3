package explore

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/gozkd/gozkd/web/internal/answer"
)

const (
	// writePatience is for each writePart of an answer that walks through a subtree.
	writePatience = 10 * time.Second
	writePart     = 64 << 10
)

// patientWriter gives up a reader that stops reading.
type patientWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (w *patientWriter) Write(b []byte) (n int, err error) {
	for {
		_ = w.control.SetWriteDeadline(time.Now().Add(writePatience)) // a recorder of a test has none
		part := b[n:min(n+writePart, len(b))]
		written, err := w.ResponseWriter.Write(part)
		if n += written; err != nil || n == len(b) {
			return n, err
		}
	}
}

// Unwrap is for http.ResponseController.
func (w *patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

type events struct {
	w       http.ResponseWriter
	control *http.ResponseController
	flushed time.Time
}

const flushEvery = 100 * time.Millisecond

func startEvents(w http.ResponseWriter) *events {
	answer.Events(w)
	return &events{w: w, control: http.NewResponseController(w)}
}

// send sends an event. The error says that the caller has gone.
func (e *events) send(name string, data any) error {
	b, err := json.Marshal(data)
	if err != nil {
		return err
	}
	if _, err = e.w.Write([]byte("event: " + name + "\ndata: " + string(b) + "\n\n")); err != nil {
		return err
	}
	if now := time.Now(); name == "end" || now.Sub(e.flushed) > flushEvery {
		e.flushed = now
		return e.control.Flush()
	}
	return nil
}
