package web

import (
	"maps"
	"math"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gozkd/gozkd/internal/fair"
	"github.com/gozkd/gozkd/web/internal/access"
	"github.com/gozkd/gozkd/web/internal/answer"
)

// Bounds on requests, of a caller and of all. Streams of events have bounds of their own.
const (
	defaultRate     = 1000 // per second, with bursts of twice that
	localFactor     = 10   // as many for callers on this machine
	maxInFlightEach = 64
	maxInFlight     = 256
	maxRateKeys     = 4096
)

// MaxStreams is how many streams of events there can be. A program whose port bounds connections
// must allow these besides.
const MaxStreams = 1536

const maxStreamsEach = 1024

type bounds struct {
	perSec   float64
	rate     *fair.Rate
	local    *fair.Rate // of callers on this machine
	inFlight *fair.Gauge
	streams  *fair.Gauge
}

func newBounds(rate float64) bounds {
	return bounds{
		perSec:   rate,
		rate:     newRate(rate),
		local:    newRate(localFactor * rate),
		inFlight: fair.NewGauge(maxInFlightEach, maxInFlight),
		streams:  fair.NewGauge(maxStreamsEach, MaxStreams),
	}
}

func newRate(perSec float64) *fair.Rate {
	return fair.NewRate(time.Duration(float64(time.Second)/perSec), int(2*perSec), maxRateKeys)
}

// admit returns a function that must be called at the end of the request, or a Problem.
func (b *bounds) admit(r *http.Request, who *access.Caller) (leave func(), p *answer.Problem) {
	key, rate, perSec := who.Account(), b.rate, b.perSec
	if who.Local {
		rate, perSec = b.local, localFactor*b.perSec
	}
	if wait, _ := rate.Take(key, time.Now()); wait > 0 {
		return nil, answer.Busy(int(math.Ceil(wait.Seconds())),
			"a caller may send %.0f requests per second: gozkd.web.rate", perSec)
	}
	if strings.HasPrefix(r.URL.Path, "/znodes/v2/") && r.URL.Query().Has("watch") {
		return func() {}, nil
	}
	leave, ok := b.inFlight.Enter(key)
	if !ok {
		return nil, answer.Busy(1, "%d requests of a caller, and %d of all, may be under way", maxInFlightEach, maxInFlight)
	}
	return leave, nil
}

// Stats are counts since the Handler was made, and the numbers of open streams and sessions.
type Stats struct {
	// Requests are the answered requests by route, which is a prefix of the path, and class of the
	// status, such as "2xx".
	Requests map[Route]int64
	// Streams of events, sessions of /sessions/v1, and client sessions that callers share.
	Streams, Sessions, Shared int
}

// Route is a kind of request, and of its answer.
type Route struct{ Path, Class string }

type counts struct {
	mu      sync.Mutex // guards byRoute
	byRoute map[Route]int64
}

// counting calls next, and counts how it answers.
func (c *counts) counting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		defer func() {
			route := Route{routeOf(r.URL.Path), string('0'+rune(s.status/100)) + "xx"}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.byRoute[route]++
		}()
		next.ServeHTTP(s, r)
	})
}

// routeOf returns the route of a path. There are few, whatever the paths.
func routeOf(path string) string {
	for _, route := range []string{"/znodes/v1", "/znodes/v2", "/sessions/v1", "/identity/v2", "/ui/api", "/ui"} {
		if strings.HasPrefix(path, route) {
			return route
		}
	}
	return "other"
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Stats returns the present counts. The caller owns the result.
func (h *Handler) Stats() Stats {
	s := Stats{Streams: h.bounds.streams.Len(), Sessions: h.sessions.Len(), Shared: h.pool.Len()}
	h.counts.mu.Lock()
	defer h.counts.mu.Unlock()
	s.Requests = maps.Clone(h.counts.byRoute)
	return s
}
