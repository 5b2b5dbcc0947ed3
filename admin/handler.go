package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/fair"
	"github.com/gozkd/gozkd/internal/guesses"
	"github.com/gozkd/gozkd/internal/httplocal"
	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/server"
)

// Handler returns the admin commands of s: GET /commands returns a list of links, and GET
// /commands/<name> the answer to a command as a JSON object. To mount it under another path, use
// http.StripPrefix. Handler is New without options.
//
// The object always has the keys command and error, which is null or the reason of a failure. As in
// ZooKeeper, the status is 200 even for an unknown command, and while s does not serve clients, for
// example before Start and after Close. /readyz reports readiness by its status.
//
// Everybody with access to the handler can read numbers about the server. Paths, addresses and
// session ids are for callers on this machine; see Options.
func Handler(s *server.Server) http.Handler { return New(s, Options{}) }

type handler struct {
	server  *server.Server
	options Options
	taken   *fair.Rate                 // of snapshots; nil: no bound
	guesses *guesses.Bounds            // of passwords and tokens
	long    chan struct{}              // holds a token for each answer that is being made and may be long
	origin  http.CrossOriginProtection // checks only POST
}

const (
	// longAnswers is how many answers that may be long are made at once.
	longAnswers = 4
	// busyPatience is how long a command waits for its turn.
	busyPatience = time.Second
)

// root is the path of the commands, which is ZooKeeper's default.
const root = "/commands"

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if httplocal.Harden(w.Header()); httplocal.CrossSite(r, true) {
		http.Error(w, "a page of another origin may not read anything here", http.StatusForbidden)
		return
	}
	switch r.URL.Path {
	case "/livez":
		h.health(w, r, h.alive())
		return
	case "/readyz":
		h.health(w, r, h.ready(r))
		return
	}
	name, ok := strings.CutPrefix(r.URL.Path, root)
	if !ok || name != "" && name[0] != '/' {
		http.NotFound(w, r)
		return
	}
	switch name {
	case "", "/":
		if !allow(w, r, http.MethodGet, http.MethodHead) {
			return
		}
		h.writeList(w, map[string]string{"": "commands/", "/": ""}[name])
	default:
		h.serve(w, r, name[1:])
	}
}

// allow answers requests with other methods, and returns false for them.
func allow(w http.ResponseWriter, r *http.Request, methods ...string) bool {
	if slices.Contains(methods, r.Method) {
		return true
	}
	w.Header().Set("Allow", strings.Join(methods, ", "))
	http.Error(w, "only "+methods[0]+" is allowed", http.StatusMethodNotAllowed)
	return false
}

// notServing is ZooKeeper's text.
const notServing = "This ZooKeeper instance is not currently serving requests"

// serve answers a command. The order of the checks is ZooKeeper's. Also as in ZooKeeper, the answer
// names a command that was not run as the client named it.
func (h *handler) serve(w http.ResponseWriter, r *http.Request, name string) {
	fail := func(status int, why string, more ...field) {
		writeJSON(w, status, append(object{{"command", name}, {"error", why}}, more...))
	}
	c, ok := h.find(name)
	switch {
	case !ok:
		if allow(w, r, http.MethodGet, http.MethodHead, http.MethodPost) {
			fail(http.StatusOK, "Unknown command: "+name)
		}
		return
	case !c.posts && !allow(w, r, http.MethodGet, http.MethodHead), c.posts && !allow(w, r, http.MethodPost):
		return
	}
	if c.access >= changes {
		// A page from another origin must not change anything through the browser of somebody with
		// access to this handler. ZooKeeper's resets are GET requests, which Check would let pass.
		post := *r
		post.Method = http.MethodPost
		if err := h.origin.Check(&post); err != nil {
			fail(http.StatusForbidden, err.Error())
			return
		}
	}
	if err := h.server.NotServing(); err != nil && !c.always {
		fail(http.StatusOK, notServing, field{"reason", printable.Error(err)})
		return
	}
	status, err := h.admit(r, c.access)
	if c.access >= changes {
		h.audit(r, c.name, err)
	}
	if err != nil {
		if busy, ok := errors.AsType[busyError](err); ok {
			w.Header().Set("Retry-After", strconv.Itoa(busy.seconds()))
		}
		fail(status, err.Error(), field{"reason", h.remedy(r)})
		return
	}
	if c.streams != nil {
		c.streams(h, w, r)
		return
	}
	status, answer, ok := h.answer(r, &c)
	if !ok {
		w.Header().Set("Retry-After", "1")
		fail(http.StatusServiceUnavailable, "too many commands at once")
		return
	}
	send(w, status, answer)
}

// answer runs a command and returns its answer as JSON. Only so many answers that may be long are
// made at once: the others wait for a moment. ok is false if that was not enough.
func (h *handler) answer(r *http.Request, c *command) (status int, answer []byte, ok bool) {
	if c.access == local {
		select {
		case h.long <- struct{}{}:
			defer func() { <-h.long }()
		case <-time.After(busyPatience):
			return 0, nil, false
		case <-r.Context().Done():
			return 0, nil, false
		}
	}
	fields, err := c.run(h, r)
	if err == nil {
		status, answer = encode(http.StatusOK, append(fields, field{"command", c.name}, field{"error", nil}))
		return status, answer, true
	}
	status = http.StatusOK
	if failed := (*failedError)(nil); errors.As(err, &failed) {
		status = failed.status
	}
	status, answer = encode(status, object{{"command", c.name}, {"error", err.Error()}})
	return status, answer, true
}

// writeList writes links to all commands that are answered to GET, and the names of the others. The
// links are relative, so that they work wherever the handler is mounted.
func (h *handler) writeList(w http.ResponseWriter, folder string) {
	var b strings.Builder
	for _, c := range commands {
		switch {
		case !h.has(&c):
		case c.posts:
			fmt.Fprintf(&b, "%s\n<br/>\n", c.name)
		default:
			fmt.Fprintf(&b, "<a href=\"%s%s\">%s</a>\n<br/>\n", folder, c.name, c.name)
		}
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, b.String()) // an error says that the client left
}

func writeJSON(w http.ResponseWriter, status int, answer object) {
	status, text := encode(status, answer)
	send(w, status, text)
}

// encode returns an answer as JSON, and status, or the error of a value without a form in JSON.
func encode(status int, answer object) (int, []byte) {
	b, err := json.MarshalIndent(answer, "", "  ")
	if err != nil {
		return encode(http.StatusInternalServerError, object{{"error", err.Error()}})
	}
	return status, append(b, '\n')
}

func send(w http.ResponseWriter, status int, answer []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(answer) // an error says that the client left
}

type failedError struct {
	status int
	why    string
}

func (e *failedError) Error() string { return e.why }

// object is a JSON object with ordered keys.
type object []field

type field struct {
	key   string
	value any
}

func (o object) MarshalJSON() ([]byte, error) {
	pairs := make([][]byte, len(o))
	for i, f := range o {
		pair, err := json.Marshal(map[string]any{f.key: f.value})
		if err != nil {
			return nil, err
		}
		pairs[i] = pair[1 : len(pair)-1] // without braces
	}
	return slices.Concat([]byte{'{'}, bytes.Join(pairs, []byte{','}), []byte{'}'}), nil
}
