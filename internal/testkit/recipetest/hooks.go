package recipetest

import (
	"strings"
	"sync"
	"time"

	"github.com/gozkd/gozkd/zktest"
)

// Request is a request of a client of World.Hooked.
type Request struct {
	N  int // from 1, since Arm
	Op zktest.Op
	// Path is the path on the server: without the sequence number, with the GUID of a protected
	// znode, and of the first operation of a multi.
	Path  string
	Watch bool // the request sets a watch
}

// String returns the kind of request: "create", "get+watch".
func (r Request) String() string {
	if r.Watch {
		return string(r.Op) + "+watch"
	}
	return string(r.Op)
}

// Hooks intercepts a client's requests, except the probes that keep track of the session. Safe for
// concurrent use.
type Hooks struct {
	mu       sync.Mutex
	requests []Request
	before   func(Request) error
	after    func(Request)
	latency  time.Duration
}

// Arm counts requests from now on, and calls before when a request is about to be sent, and after
// when the request was answered, both on the goroutine that makes the request. If before returns an
// error, the request is not sent and fails with that error; recipes.ErrNoServer acts like a missing
// connection. Both may be nil.
func (h *Hooks) Arm(before func(Request) error, after func(Request)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.requests, h.before, h.after = nil, before, after
}

// Requests returns the requests since Arm.
func (h *Hooks) Requests() []Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Request(nil), h.requests...)
}

// Cost is the number of requests that an operation makes.
type Cost struct {
	RoundTrips int       // successive answers that the caller waited for
	Requests   []Request // including those in the background
}

// Ops returns the kinds of the requests: "create, children, get+watch".
func (c Cost) Ops() string {
	var ops []string
	for _, r := range c.Requests {
		ops = append(ops, r.String())
	}
	return strings.Join(ops, ", ")
}

// roundTrip is the time per request while Cost measures. Many of them fit into Timeout.
const roundTrip = 100 * time.Millisecond

// Cost runs f in a world without faults and returns its cost, including requests in the background
// during the next two seconds. Cost must run in a bubble, where only the round trips take time.
func (h *Hooks) Cost(f func()) Cost {
	h.Arm(nil, nil)
	h.setLatency(roundTrip)
	defer h.setLatency(0)
	begun := time.Now()
	f()
	trips := int((time.Since(begun) + roundTrip/2) / roundTrip)
	time.Sleep(20 * roundTrip)
	return Cost{trips, h.Requests()}
}

func (h *Hooks) setLatency(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.latency = d
}

// ask records a request and sends it with send.
func (h *Hooks) ask(op, path string, watch bool, send func() error) error {
	h.mu.Lock()
	r := Request{len(h.requests) + 1, zktest.Op(op), path, watch}
	h.requests = append(h.requests, r)
	before, after, latency := h.before, h.after, h.latency
	h.mu.Unlock()
	if before != nil {
		if err := before(r); err != nil {
			return err
		}
	}
	if latency > 0 {
		time.Sleep(latency)
	}
	err := send()
	if after != nil {
		after(r)
	}
	return err
}
