// Package answer writes package web's answers: JSON, errors as application/problem+json (RFC 9457).
package answer

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// Problem is an error and its answer.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	Code   int32  `json:"code,omitempty"` // ZooKeeper's
	Path   string `json:"path,omitempty"`
	// Index is the operation of a multi that failed.
	Index *int `json:"index,omitempty"`
	// Unknown: nobody knows whether the write was carried out.
	Unknown bool `json:"unknown,omitempty"`
	// Stat is the present one of a znode whose version differs.
	Stat any `json:"stat,omitempty"`
	// RetryAfter is in seconds.
	RetryAfter int `json:"-"`
}

// Error implements error.
func (p *Problem) Error() string {
	if p.Detail == "" {
		return p.Title
	}
	return p.Detail
}

// Errorf returns a Problem with a status and a text of ours.
func Errorf(status int, format string, args ...any) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...)}
}

// Bad returns the Problem of a malformed request.
func Bad(format string, args ...any) *Problem { return Errorf(http.StatusBadRequest, format, args...) }

// Busy returns the Problem of a caller above a bound, who may try again after some seconds.
func Busy(seconds int, format string, args ...any) *Problem {
	p := Errorf(http.StatusTooManyRequests, format, args...)
	p.RetryAfter = seconds
	return p
}

// Fail answers with a Problem.
func Fail(w http.ResponseWriter, p *Problem) {
	if p.RetryAfter > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(p.RetryAfter))
	}
	if p.Status == http.StatusUnauthorized {
		// NB: Basic would make browsers open a dialog.
		w.Header().Set("WWW-Authenticate", `login realm="gozkd"`)
	}
	write(w, p.Status, "application/problem+json", p)
}

// JSON answers with a value.
func JSON(w http.ResponseWriter, status int, v any) { write(w, status, "application/json", v) }

// Attachment answers with the data of a znode, which a browser must not show as a page.
func Attachment(w http.ResponseWriter, data []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", "attachment")
	h.Set("Cache-Control", "no-store")
	_, _ = w.Write(data) // the caller has gone
}

// Events begins an answer of server-sent events.
func Events(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would collect the events
}

func write(w http.ResponseWriter, status int, kind string, v any) {
	b, err := json.Marshal(v)
	if err != nil { // no type of ours
		status, kind, b = http.StatusInternalServerError, "application/problem+json", []byte(`{"type":"about:blank","title":"Internal Server Error","status":500}`)
	}
	Encoded(w, status, kind, b)
}

// Encoded answers with bytes that are encoded already.
func Encoded(w http.ResponseWriter, status int, kind string, b []byte) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(b) // the caller has gone
	_, _ = w.Write([]byte{'\n'})
}
