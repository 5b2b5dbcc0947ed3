package recipes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

// Answers arrive in the order of the requests, so that of a probe waits behind all that was asked
// before. A window therefore bounds the requests under way, and the bytes of these and of the
// expected replies. Each bound grows while answers are prompt, and both shrink when an answer is
// late.
const (
	// An answer that took less than the session timeout over promptShare is prompt. One that took
	// more than the timeout over lateShare is late. Twice that delay and the interval between
	// proofs must fit in a session timeout; see livenessProof.
	promptShare = 16
	lateShare   = 10

	firstRequests, leastRequests, mostRequests = 64, 16, 1024
	firstBytes, leastBytes, mostBytes          = 128 << 10, 64 << 10, 64 << 20
	// unknownBytes are expected of the replies to each kind of read at first; small ones lower it.
	unknownBytes = 1 << 20
)

// window bounds the requests under way, in the order of calls of enter. Safe for concurrent use.
type window struct {
	k *core

	mu                         sync.Mutex // guards the fields below; never held while waiting
	requests, bytes            int        // the bounds
	requestsUnderWay, underWay int        // the latter in bytes
	waiting                    []*turn
	shrunk                     time.Duration  // the time of the latest shrinking
	expected                   map[string]int // the bytes of a reply, by operation
	entered                    int            // requests so far
	// suspects are requests whose connection the server closed before the answer: closing may be
	// the answer. A large suspect is repeated alone, and all other requests wait meanwhile. A small
	// one is repeated alone only after its second loss, because the restart of a server makes
	// suspects of up to mostRequests requests.
	suspects map[request]suspect
	alone    bool        // the request under way must be alone
	sweeper  *time.Timer // of sweep; nil: it does not run
}

// suspect counts how often in succession a server closed the connection before the answer. Equal
// requests that are lost together count as one loss: entered is window.entered at the latest loss
// that counts, and the loss of a request that entered before that moment does not count again.
type suspect struct{ losses, entered int }

const (
	// mostSuspects bounds the suspects. One more replaces any one. Its caller may have given up.
	mostSuspects = 1000
	// A server is taken to have hung up after largeLosses losses of a request of largeBytes, and
	// after smallLosses of a smaller one, which is rarely the reason. An ensemble in trouble closes
	// connections for other reasons, several in a row while its leader changes.
	largeBytes, largeLosses, smallLosses = 64 << 10, 2, 10
)

// lossOf says whether the connection broke before the answer to the request op, which ended with
// err, and whether the server closed it: this Client did if it left the server or waited too long,
// which Wrap does not always tell. A delete and a sync have no data that could be the reason, and
// must go on until the server answers, so they never are lost. An op without a name is not either.
func lossOf(op string, err error) (lost, byServer bool) {
	if e, ok := errors.AsType[*client.Error](err); ok {
		lost = e.Code == proto.ErrConnectionLoss && e.Cause != nil // nil: a server's answer
	} else {
		lost = classify(err) == replyLost
	}
	lost = lost && op != "" && op != "delete" && op != "sync"
	return lost, lost && !errors.Is(err, net.ErrClosed) && !errors.Is(err, os.ErrDeadlineExceeded)
}

// turn is a request that wants to enter the window, or has entered.
type turn struct {
	request
	expected  int           // the bytes of the request and of its reply
	asked     time.Duration // when the request began to wait
	come      chan struct{} // closed when the request enters, or waits no longer
	entered   int           // window.entered before it entered; -1: the request has not entered
	alone     bool
	abandoned bool          // the caller does not wait any longer
	begun     time.Duration // when it entered
}

func newWindow(k *core) *window {
	w := &window{k: k, requests: firstRequests, bytes: firstBytes}
	w.expected, w.suspects = make(map[string]int), make(map[request]suspect)
	return w
}

// enter waits until r may be under way. Without a connection, sweep ends the wait with
// ErrNoServer after one to two times longPause. Without an error, leave must be called.
func (w *window) enter(ctx context.Context, r request) (*turn, error) {
	w.mu.Lock()
	t := &turn{request: r, asked: w.k.clock.now(), come: make(chan struct{}), entered: -1}
	w.waiting = append(w.waiting, t)
	if w.admit(); t.entered < 0 && w.sweeper == nil {
		w.sweeper = time.AfterFunc(longPause, w.sweep)
	}
	w.mu.Unlock()
	var err error
	select {
	case <-t.come:
		if t.entered >= 0 {
			return t, nil
		}
		return nil, ErrNoServer
	case <-ctx.Done():
		err = newCtxError(ctx, false)
	case <-w.k.closing:
		err = ErrClosed
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.entered >= 0 { // just now
		return t, nil
	}
	t.abandoned = true
	if ctx.Err() != nil {
		delete(w.suspects, r)
	}
	return nil, err
}

// sweep abandons the requests that have waited for longPause, if there is no connection. While
// requests wait, sweep runs again after each longPause: thousands of requests share its timer.
func (w *window) sweep() {
	session, _ := w.k.conn.place()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.waiting {
		if session == 0 && !t.abandoned && w.k.clock.now()-t.asked >= longPause {
			t.abandoned = true
			close(t.come)
		}
	}
	if w.admit(); len(w.waiting) > 0 && w.k.ctx.Err() == nil {
		w.sweeper.Reset(longPause)
	} else {
		w.sweeper = nil
	}
}

// close ends sweep, after k.ctx has ended.
func (w *window) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sweeper != nil {
		w.sweeper.Stop()
	}
}

// leave is called when a request has ended with err: the server has answered with this many bytes,
// or the answer was lost with the connection. The result is true if the server answers this request
// by closing it.
func (w *window) leave(ctx context.Context, t *turn, err error, bytes int) (hungUp bool) {
	now, timeout := w.k.clock.now(), time.Duration(w.k.timeout.Load())
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requestsUnderWay--
	w.underWay -= t.expected
	answered := classify(err) == answered
	switch delay := now - t.begun; {
	case !answered:
	case delay < timeout/promptShare && len(w.waiting) > 0:
		if w.requestsUnderWay+1 >= w.requests {
			w.requests = min(w.requests+1, mostRequests)
		} else {
			w.bytes = min(w.bytes+t.bytes+bytes, mostBytes)
		}
	case delay > timeout/lateShare && t.begun >= w.shrunk: // earlier ones were late before the shrinking
		w.requests, w.bytes = max(w.requests/2, leastRequests), max(w.bytes/2, leastBytes)
		w.shrunk = now
	}
	switch lost, byServer := lossOf(t.op, err); {
	case byServer:
		s, known := w.suspects[t.request]
		if !known && len(w.suspects) >= mostSuspects {
			for old := range w.suspects {
				delete(w.suspects, old)
				break
			}
		}
		if !known || t.entered >= s.entered {
			s = suspect{s.losses + 1, w.entered}
		}
		w.suspects[t.request] = s
		hungUp = t.alone && (s.losses >= smallLosses || s.losses >= largeLosses && t.bytes >= largeBytes)
	case lost && t.begun >= w.shrunk: // the answers took too long, perhaps because they are large
		w.requests, w.bytes, w.shrunk = leastRequests, leastBytes, now
		clear(w.expected)
	}
	if answered || ctx.Err() != nil {
		delete(w.suspects, t.request)
	}
	if answered {
		before := w.expect(t.op)
		w.expected[t.op] = max(bytes, before-before/8)
	}
	w.admit()
	return hungUp
}

// expect returns how many bytes a reply will have, after large recent ones. w.mu is held.
func (w *window) expect(op string) int {
	bytes, known := w.expected[op]
	if !known && (op == readData.String() || op == readChildren.String()) {
		return unknownBytes
	}
	return bytes
}

// admit lets waiting requests enter, and at least one. w.mu is held.
func (w *window) admit() {
	for len(w.waiting) > 0 {
		t := w.waiting[0]
		t.expected = t.bytes + w.expect(t.op)
		if !t.abandoned {
			suspect := w.suspects[t.request]
			t.alone = suspect.losses > 1 || suspect.losses > 0 && t.bytes >= largeBytes
			full := w.requestsUnderWay >= w.requests || w.underWay+t.expected > w.bytes
			if w.requestsUnderWay > 0 && (full || t.alone || w.alone) {
				return
			}
			w.alone = t.alone
			w.requestsUnderWay++
			w.underWay += t.expected
			t.entered, t.begun = w.entered, w.k.clock.now()
			w.entered++
			close(t.come)
		}
		w.waiting[0] = nil
		w.waiting = w.waiting[1:]
	}
}

func (w *window) busy() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.requestsUnderWay > 0
}

// within runs f, which sends r, within the window.
func within[T any](
	ctx context.Context, w *window, r request, f func(ctx context.Context) (T, error),
) (v T, err error) {
	t, err := w.enter(ctx, r)
	if err != nil {
		return v, err
	}
	defer func() {
		read, _ := any(v).(readResult)
		bytes := len(read.data)
		for _, name := range read.children {
			bytes += len(name)
		}
		if w.leave(ctx, t, err, bytes) {
			err = fmt.Errorf("%w (%d bytes): %w", ErrHungUp, r.bytes, err)
		}
	}()
	return f(ctx)
}
