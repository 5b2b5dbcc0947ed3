package consensus

import (
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// writeWatch watches the writes of the log, one at a time, and logs when a write takes longer than
// limit. The loop notices on its own that the log hangs (turn.Loop), except in a standalone server,
// whose loop does the write.
type writeWatch struct {
	limit  time.Duration
	logger hclog.Logger

	mu     sync.Mutex  // guards these
	timer  *time.Timer // nil: there was no write yet
	begun  time.Time   // the present write, or the end of a standstill during it; zero: there is none
	logged bool        // the present write takes long, and that was logged
	spared bool        // the present write was given its whole time again
	stalls int64       // writes that took longer than limit
}

// begin is called before a write, end after it. A nil writeWatch watches nothing.
func (w *writeWatch) begin() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun, w.spared = time.Now(), false
	if w.timer == nil {
		w.timer = time.AfterFunc(w.limit, w.late)
	} else {
		w.timer.Reset(w.limit)
	}
}

func (w *writeWatch) end() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Stop()
	if w.logged {
		w.logger.Info("the disk of the log answers again", "after_ms", time.Since(w.begun).Milliseconds())
	}
	w.begun, w.logged = time.Time{}, false
}

// late is called when the timer fires, which it may do just after a write has ended.
func (w *writeWatch) late() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forgive()
	if w.begun.IsZero() || w.logged || time.Since(w.begun) < w.limit {
		return
	}
	w.logged = true
	w.stalls++
	w.logger.Warn("the disk of the log does not answer: this server applies no writes until it does; check the disk",
		"pending_ms", time.Since(w.begun).Milliseconds())
}

// forgive gives the present write its whole time again, once, if the timer is overdue: the process
// stood still, and the disk may have answered meanwhile. w.mu is held.
func (w *writeWatch) forgive() {
	if !w.begun.IsZero() && !w.logged && !w.spared && time.Since(w.begun) > w.limit+w.limit/4 {
		w.begun, w.spared = time.Now(), true
		w.timer.Reset(w.limit)
	}
}

// state returns how long the present write is pending, and how many took longer than limit.
func (w *writeWatch) state() (pending time.Duration, stalls int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forgive()
	if !w.begun.IsZero() {
		pending = time.Since(w.begun)
	}
	return pending, w.stalls
}

// LogPending returns for how long the present write of the log has been waiting for the disk (0:
// there is none), and how many writes have taken longer than an election timeout.
func (n *Node) LogPending() (pending time.Duration, stalls int64) { return n.log.watch.state() }
