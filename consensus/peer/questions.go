package peer

import (
	"context"
	"sync"
)

const (
	// maxQuestions bounds the questions to one member at a time; others wait.
	maxQuestions = 64
	// maxQuestionsPerHost bounds those about callers of one host, so that strangers on a few hosts
	// do not make the member itself wait. A member makes one connection for frames and sometimes one
	// for a checkpoint.
	maxQuestionsPerHost = 2
)

// questions bounds the questions to one member whether connections are its own; see
// Network.confirm.
type questions struct {
	all chan struct{} // one value per question under way

	mu    sync.Mutex
	hosts map[string]*hostQuestions // of the callers
}

type hostQuestions struct {
	slots   chan struct{} // one value per question under way, or about to be
	callers int           // guarded by questions.mu: with a question, or waiting for one
}

func newQuestions() *questions {
	return &questions{all: make(chan struct{}, maxQuestions), hosts: make(map[string]*hostQuestions)}
}

// begin waits until a question about a caller of a host may be asked, which ends with end. ok is
// false if ctx has ended before that.
func (q *questions) begin(ctx context.Context, host string) (end func(), ok bool) {
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

func (q *questions) enter(host string) *hostQuestions {
	q.mu.Lock()
	defer q.mu.Unlock()
	h := q.hosts[host]
	if h == nil {
		h = &hostQuestions{slots: make(chan struct{}, maxQuestionsPerHost)}
		q.hosts[host] = h
	}
	h.callers++
	return h
}

func (q *questions) leave(host string, h *hostQuestions) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if h.callers--; h.callers == 0 {
		delete(q.hosts, host)
	}
}
