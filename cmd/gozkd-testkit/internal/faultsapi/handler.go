package faultsapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/cluster"
	"github.com/gozkd/gozkd/internal/httplocal"
	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/internal/strictjson"
	"github.com/gozkd/gozkd/internal/testca"
)

const (
	// maxBody is the largest body of a request in bytes.
	maxBody = 16 << 20
	// patience bounds a request that does not wait for a fault.
	patience = 30 * time.Second
)

// api serves the requests, many at a time.
type api struct {
	cluster   *cluster.Cluster
	logger    hclog.Logger
	base      string // of the paths: empty, or that of the servers that a request started
	handler   http.Handler
	faults    registry[*fault]
	snapshots registry[cluster.Snapshot]
	ca        *testca.CA     // nil: the servers take no TLS
	further   registry[*api] // of the clusters that requests started
}

func newAPI(l *cluster.Cluster, logger hclog.Logger, base string, ca *testca.CA) *api {
	a := &api{cluster: l, logger: logger, base: base, ca: ca}
	a.handler = a.routed()
	return a
}

// routed returns the handler of requests about the cluster. Faults, snapshots and servers of
// requests are kept until requests delete them.
func (a *api) routed() http.Handler {
	byPath := make(map[string][]route)
	for _, r := range routes() {
		byPath[r.path] = append(byPath[r.path], r)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		answer(w, nil, &statusError{http.StatusNotFound, fmt.Errorf("there is no %s: GET / lists all requests", r.URL.Path)})
	})
	mux.HandleFunc("/servers/{id}/", a.toFurther)
	for path, there := range byPath {
		pattern := path
		if path == "/" {
			pattern = "/{$}"
		}
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			i := slices.IndexFunc(there, func(route route) bool { return route.method == r.Method })
			if i < 0 {
				var methods []string
				for _, route := range there {
					methods = append(methods, route.method)
				}
				w.Header().Set("Allow", strings.Join(methods, ", "))
				answer(w, nil, &statusError{http.StatusMethodNotAllowed, fmt.Errorf("%s needs %s, not %s", path, strings.Join(methods, " or "), r.Method)})
				return
			}
			result, err := a.serve(w, r, &there[i])
			answer(w, result, err)
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := checkOrigin(r); err != nil {
			answer(w, nil, &statusError{http.StatusForbidden, err})
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// checkOrigin refuses requests that a browser sends for a web page. A page of another site has an
// Origin header; a page whose host name was made to resolve to this machine has that name in Host.
func checkOrigin(r *http.Request) error {
	if origin, ok := r.Header["Origin"]; ok {
		return fmt.Errorf("the request comes from a web page (Origin %q), which is not allowed", origin)
	}
	if host := httplocal.Host(r); host == "localhost" || httplocal.Address(host).IsLoopback() {
		return nil
	}
	return fmt.Errorf("the Host is %q; allowed: localhost, 127.0.0.1, [::1]", r.Host)
}

// serve reads a request and executes it.
func (a *api) serve(w http.ResponseWriter, r *http.Request, route *route) (any, error) {
	for name := range r.URL.Query() {
		if allowed, _, _ := strings.Cut(strings.TrimPrefix(route.query, "?"), "="); name != allowed {
			return nil, invalid("%s %s has no parameter %q", route.method, route.path, name)
		}
	}
	body, err := readBody(w, r)
	if err != nil {
		return nil, err
	}
	q := &request{Request: r, route: route, body: body}
	if route.body == "" && len(body) > 0 && !bytes.Equal(body, []byte("{}")) {
		return nil, invalid("%s %s has no body", route.method, route.path)
	}
	ctx := r.Context()
	if !route.waits {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	return route.do(a, ctx, q)
}

// readBody returns the body without surrounding space. No length in a request sizes memory.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTime)) // a broken connection is seen below
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		if tooLong, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, &statusError{http.StatusRequestEntityTooLarge, fmt.Errorf("the body has more than %d bytes", tooLong.Limit)}
		}
		return nil, invalid("the body can't be read: %v", err)
	}
	if !utf8.Valid(body) {
		return nil, invalid("the body is not UTF-8")
	}
	_ = control.SetReadDeadline(time.Time{}) // the reply may take longer than the body
	return bytes.TrimSpace(body), nil
}

// request is a request with its body.
type request struct {
	*http.Request
	route *route
	body  []byte
}

// decode decodes the body into v and refuses unknown fields.
func (q *request) decode(v any) error {
	if len(q.body) == 0 {
		return invalid("the body is missing; expected one like %s", q.route.body)
	}
	err := strictjson.Decode(q.body, v)
	if err == nil {
		return nil
	}
	return invalid("the body: %s; expected one like %s", strings.TrimPrefix(err.Error(), "json: "), q.route.body)
}

// statusError is an error with its HTTP status.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }

func invalid(format string, args ...any) error {
	return &statusError{http.StatusBadRequest, fmt.Errorf(format, args...)}
}

func statusOf(err error) int {
	var own *statusError
	switch {
	case errors.As(err, &own):
		return own.status
	case errors.Is(err, cluster.ErrInvalid):
		return http.StatusBadRequest
	case errors.Is(err, cluster.ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, cluster.ErrState):
		return http.StatusConflict
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout
	case errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable // the client has disconnected, or the program ends
	}
	return http.StatusInternalServerError
}

// text is a reply that is not JSON.
type text []byte

// answer writes a result or an error.
func answer(w http.ResponseWriter, result any, err error) {
	status := http.StatusOK
	if err != nil {
		status, result = statusOf(err), map[string]string{"error": printable.Error(err)}
	}
	kind, body := "application/json", []byte(nil)
	if t, ok := result.(text); ok {
		kind, body = "text/plain; charset=utf-8", t
	} else {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(result) // results are of types that JSON has
		body = b.Bytes()
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(body) // an error means that the client has disconnected
}
