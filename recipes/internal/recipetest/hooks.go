package recipetest

import (
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/zktest"
)

// Request is one that a client of World.Hooked makes.
type Request struct {
	N     int // from 1, since Arm
	Op    zktest.Op
	Path  string // on the server, without the number of a sequential one; of a multi its first; the GUID of a protected one is in it
	Watch bool   // it sets a watch
}

// String returns its kind: "create", "get+watch".
func (r Request) String() string {
	if r.Watch {
		return string(r.Op) + "+watch"
	}
	return string(r.Op)
}

// Hooks tells of a client's requests. Those that a Client makes on its own to see that its session lives are none. Safe for concurrent use.
type Hooks struct {
	conn *zk.Conn

	mu       sync.Mutex
	requests []Request
	before   func(Request) error
	after    func(Request)
	latency  time.Duration
}

// Arm counts requests from here on, and calls before when one is about to be sent and after when it was answered, on the goroutine that
// makes it. If before returns an error, the request is not sent and has failed with it: zk.ErrNoServer, for one, as if there were no connection.
// Both may be nil.
func (h *Hooks) Arm(before func(Request) error, after func(Request)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.requests, h.before, h.after = nil, before, after
}

// Requests returns those since Arm.
func (h *Hooks) Requests() []Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Request(nil), h.requests...)
}

// Cost is what something asked of the servers.
type Cost struct {
	RoundTrips int       // for how many answers its caller waited, one after the other
	Requests   []Request // all, those in the background too
}

// Ops returns the kinds of the requests: "create, children, get+watch".
func (c Cost) Ops() string {
	var ops []string
	for _, r := range c.Requests {
		ops = append(ops, r.String())
	}
	return strings.Join(ops, ", ")
}

// roundTrip is how long one takes while Cost measures. It is short enough for many of them within Timeout.
const roundTrip = 100 * time.Millisecond

// Cost runs f in a world without faults and returns what it asked for, including what goes on for a few seconds after it. In a bubble only, where
// nothing but the round trips takes time.
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

// ask counts a request, and makes it with send.
func (h *Hooks) ask(op zktest.Op, path string, watch bool, send func() error) error {
	h.mu.Lock()
	r := Request{len(h.requests) + 1, op, path, watch}
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
