package consensus

import (
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/consensus/internal/core"
)

// wakeups decides whether an input needs a turn of the loop soon. Any goroutine that adds to the
// inbox may ask.
//
// No wake-up is lost: a sender adds to the inbox and then reads proposals and resting; the loop
// stores both at the end of a turn, and then looks at the inbox (turns).
type wakeups struct {
	proposals proposalTimer
	yielder   yielder     // guarded by turns
	resting   atomic.Bool // see mayWait
}

func newWakeups(inbox *inbox) *wakeups {
	w := new(wakeups)
	w.proposals.init(inbox.signal)
	return w
}

// mayWait reports whether a message need not wake the loop: a request that would wait for the next
// entry, or, at rest, the answer to a heartbeat, which the next heartbeat is soon enough for.
func (w *wakeups) mayWait(m *core.Message) bool {
	switch {
	case m.Forward != nil:
		return w.proposals.delays()
	case m.Raft != nil:
		return m.Raft.GetType() == raftpb.MsgHeartbeatResp && len(m.Raft.GetContext()) == 0 && w.resting.Load()
	}
	return false
}

// proposalTimer spares a leader's loop the wake-ups for requests that would only wait. See
// core.ProposalDelay.
//
// A request is looked at when core.BatchInterval has passed since it came, or as soon as it may be
// proposed if that is sooner. If a proposer read the state of an earlier turn, the loop finds
// its request in the inbox. Otherwise the loop may sleep, and the first proposer starts the timer.
// For requests that the loop has taken out of the inbox already, the loop starts the timer itself.
// Every turn looks at all requests, so starting the timer again does no harm.
type proposalTimer struct {
	state atomic.Int32
	timer *time.Timer // wakes the loop; a useless wake-up costs one turn of the loop
}

const (
	notDelaying   = iota
	delaying      // and the timer need not run
	delayingTimed // and the timer runs, or is about to be started
)

// init sets the function that wakes the loop. wake must not block.
func (p *proposalTimer) init(wake func()) {
	p.timer = time.AfterFunc(time.Hour, wake)
	p.timer.Stop()
}

// delays reports whether a goroutine that has added a request need not wake the loop. delays may be
// called from any goroutine.
func (p *proposalTimer) delays() bool {
	switch p.state.Load() {
	case notDelaying:
		return false
	case delaying:
		if p.state.CompareAndSwap(delaying, delayingTimed) {
			p.timer.Reset(core.BatchInterval)
		}
	}
	return true
}

// set takes over the result of core.ProposalDelay, at the end of a turn.
func (p *proposalTimer) set(delayed bool, after time.Duration) {
	switch {
	case !delayed:
		p.state.Store(notDelaying)
	case after == 0:
		p.state.Store(delaying)
	default:
		p.state.Store(delayingTimed)
		p.timer.Reset(after)
	}
}

// stop is called after the loop. A proposer in delays may still make the timer fire once.
func (p *proposalTimer) stop() {
	p.state.Store(notDelaying)
	p.timer.Stop()
}
