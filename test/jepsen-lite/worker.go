package jepsenlite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// sessionTimeout is that of clients that should not lose their sessions by being unlucky.
const sessionTimeout = 10 * time.Second

// A worker is one client of a load, and what it decides by.
type worker struct {
	*client
	rec       *Recorder
	addresses []string
	home      int
	timeout   time.Duration
	root      string // of the round
	dir       string // of the load, below root
	rng       *rand.Rand
	pace      time.Duration
	made      int
	raw       atomic.Pointer[rawConn] // the last one, of a load that makes its own connections
}

// goHome has the worker go back to the member where it began, if it is not there.
func (w *worker) goHome() {
	w.client.goHome()
	if c := w.raw.Load(); c != nil && c.member != w.home%len(w.addresses)+1 {
		_ = c.Close() // it may be broken already
	}
}

// next waits for the time of the next operation. false: the round ends.
func (w *worker) next(ctx context.Context) bool {
	return pause(ctx, time.Duration(w.rng.Int64N(int64(2*w.pace)+1))) == nil
}

// value returns data that nobody else writes.
func (w *worker) value() string {
	w.made++
	return fmt.Sprintf("%s.%d", w.name, w.made)
}

// Errors of operations are not looked at by most loads: the tap has recorded what came of them, and a load goes on
// whatever it was.

func (w *worker) create(path, data string, flags int32) (string, error) {
	return w.Create(path, []byte(data), flags, openACL())
}

// syncedGet reads what was written before it was called.
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
