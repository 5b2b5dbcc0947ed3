package explore

import (
	"encoding/json"
	"net/http"
	"time"
)

// events sends server-sent events.
type events struct {
	w       http.ResponseWriter
	control *http.ResponseController
	flushed time.Time
}

const flushEvery = 100 * time.Millisecond

func startEvents(w http.ResponseWriter) *events {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
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
