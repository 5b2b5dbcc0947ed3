package jepsenlite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/backoff"
)

// sessionTimeout is the timeout of clients that should not lose their sessions by bad luck.
const sessionTimeout = 10 * time.Second

// A worker is a client of a load with its source of decisions.
type worker struct {
	*client
	*TrafficConfig
	home int    // index of its first member
	dir  string // of the load, below root
	rng  *rand.Rand
	made int
	raw  atomic.Pointer[rawConn] // the last one, for loads that open their own connections
}

// goHome reconnects the worker to its first member, if it is elsewhere.
func (w *worker) goHome() {
	w.client.goHome()
	if c := w.raw.Load(); c != nil && c.member != w.home%len(w.Addresses)+1 {
		_ = c.Close() // it may be broken already
	}
}

// next waits for the next operation. It returns false when the round ends.
func (w *worker) next(ctx context.Context) bool { return w.nextOn(ctx, nil) }

// nextOn is next for a raw connection, whose session beat keeps alive, and false when beat is.
func (w *worker) nextOn(ctx context.Context, beat func() bool) bool {
	return w.wait(ctx, time.Duration(w.rng.Int64N(int64(2*w.Pace)+1)), beat) && w.rested(ctx, beat)
}

// rested rests if it is time to. It returns false when the round ends, or when beat returns false.
func (w *worker) rested(ctx context.Context, beat func() bool) bool {
	if w.Rest == nil {
		return true
	}
	left := w.Rest(w.rng)
	return left <= 0 || (beat == nil || beat()) && w.wait(ctx, left, beat)
}

// wait waits, with a beat, if there is one, in each quarter of the session's timeout.
func (w *worker) wait(ctx context.Context, left time.Duration, beat func() bool) bool {
	for ; beat != nil && left > w.Timeout/4; left -= w.Timeout / 4 {
		if !backoff.Sleep(ctx, w.Timeout/4) || !beat() {
			return false
		}
	}
	return backoff.Sleep(ctx, left)
}

// value returns unique data.
func (w *worker) value() string {
	w.made++
	return fmt.Sprintf("%s.%d", w.name, w.made)
}

// Most loads ignore errors of operations: the tap records them, and the load goes on.

func (w *worker) create(path, data string, flags int32) (string, error) {
	return w.Create(path, []byte(data), flags, openACL())
}

// syncedGet reads everything written before its call.
func (w *worker) syncedGet(path string) (string, *zk.Stat, error) {
	if _, err := w.Sync(path); err != nil {
		return "", nil, err
	}
	data, stat, err := w.Get(path)
	return string(data), stat, err
}

// syncedChildren is syncedGet for children.
func (w *worker) syncedChildren(path string) ([]string, error) {
	if _, err := w.Sync(path); err != nil {
		return nil, err
	}
	children, _, err := w.Children(path)
	return children, err
}

func openACL() []zk.ACL { return zk.WorldACL(zk.PermAll) }
