package peer

import (
	"context"
	"sync"
)

const (
	// maxQuestions bounds the questions to a member at a time; others wait.
	maxQuestions = 64
	// maxQuestionsPerHost bounds the questions about callers of a single host, so that strangers on
	// a few hosts do not make the member itself wait. A member makes a connection for frames and
	// sometimes another for a checkpoint.
	maxQuestionsPerHost = 2
)

// hostLimit bounds the work for callers at a time, in all and per host: the questions to a member
// whether connections are its own (see Network.confirm), and the computations of TLS handshakes.
type hostLimit struct {
	perHost int
	all     chan struct{} // one value per activity under way

	mu    sync.Mutex
	hosts map[string]*hostSlots // of the callers
}

type hostSlots struct {
	slots   chan struct{} // one value per activity under way, or about to be
	callers int           // guarded by hostLimit.mu: with an activity, or waiting for it
}

func newHostLimit(all, perHost int) *hostLimit {
	return &hostLimit{perHost: perHost, all: make(chan struct{}, all), hosts: make(map[string]*hostSlots)}
}

// begin waits until the activity for a caller of a host may begin; end ends it. ok is false if ctx
// has ended before that.
func (q *hostLimit) begin(ctx context.Context, host string) (end func(), ok bool) {
	h := q.enter(host)
	if !put(ctx, h.slots) {
		q.leave(host, h)
		return nil, false
	}
	if !put(ctx, q.all) {
		<-h.slots
		q.leave(host, h)
		return nil, false
	}
	return func() {
		<-q.all
		<-h.slots
		q.leave(host, h)
	}, true
}

func put(ctx context.Context, slots chan struct{}) bool {
	select {
	case slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (q *hostLimit) enter(host string) *hostSlots {
	q.mu.Lock()
	defer q.mu.Unlock()
	h := q.hosts[host]
	if h == nil {
		h = &hostSlots{slots: make(chan struct{}, q.perHost)}
		q.hosts[host] = h
	}
	h.callers++
	return h
}

func (q *hostLimit) leave(host string, h *hostSlots) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if h.callers--; h.callers == 0 {
		delete(q.hosts, host)
	}
}
