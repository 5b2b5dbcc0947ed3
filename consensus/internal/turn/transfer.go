package turn

import (
	"maps"
	"slices"

	"github.com/gozkd/gozkd/consensus/internal/core"
)

const (
	// firstRetryTicks and lastRetryTicks are how long a member is left alone after a checkpoint did
	// not arrive: the time doubles.
	firstRetryTicks = 2 * core.ElectionTicks
	lastRetryTicks  = 64 * core.ElectionTicks
)

// transfers are the checkpoints sent to other members. Only a leader sends them, and they end with
// its leadership: raft would ignore them, and they would keep out those of the next leader.
type transfers struct {
	wanted  []uint64          // members that wait for a transfer to begin
	active  map[uint64]bool   // members with a transfer under way
	retries map[uint64]*retry // members whose last transfer failed
}

// retry is when raft is told of a failure, and tries again.
type retry struct {
	backoff   int // ticks
	ticksLeft int // 0: raft was told
}

// empty reports whether nothing is to be done. Failures that raft was told of do not count: the
// member may be gone for good.
func (t *transfers) empty() bool {
	for _, r := range t.retries {
		if r.ticksLeft > 0 {
			return false
		}
	}
	return len(t.wanted)+len(t.active) == 0
}

// sendCheckpoints begins transfers to the members that the core named. The checkpoint on disk will
// do if the log in memory continues it and if it knows the members. Otherwise a new checkpoint is
// written first, which must wait until no transfer reads the file.
func (l *Loop) sendCheckpoints(to []uint64) error {
	t := &l.transfers
	if !l.core.Leads() {
		t.wanted = nil
		return nil
	}
	for _, id := range to {
		if !t.active[id] && !slices.Contains(t.wanted, id) {
			t.wanted = append(t.wanted, id)
		}
	}
	if len(t.wanted) == 0 || l.checkpoint.writing || l.install.installing {
		return nil // the end of these comes back here
	}
	if !l.cfg.Durable {
		l.startTransfers(l.core.Applied())
		return nil
	}
	first, err := l.core.FirstIndex()
	if err != nil {
		return err
	}
	unknown := func(id uint64) bool { return !l.core.Membership.CheckpointKnows(l.checkpoint.last, id) }
	if l.checkpoint.last+1 < first || slices.ContainsFunc(t.wanted, unknown) {
		if len(t.active) == 0 {
			l.writeCheckpoint()
		}
		return nil
	}
	l.startTransfers(l.checkpoint.last)
	return nil
}

// startTransfers sends the checkpoint of that index to all members that wait for a transfer.
func (l *Loop) startTransfers(index uint64) {
	t := &l.transfers
	for _, to := range t.wanted {
		l.core.Retention.TransferStarted(to, index)
		t.active[to] = true
	}
	l.host.StartTransfer(t.wanted, index)
	t.wanted = nil
}

// TransferEnded tells raft of the end of a transfer: of a success at once, of a failure after some
// time. Then TransferEnded begins the transfers that had to wait.
func (l *Loop) TransferEnded(to uint64, ok bool) error {
	t := &l.transfers
	delete(t.active, to)
	r := t.retries[to]
	switch {
	case ok:
		delete(t.retries, to)
		l.core.Retention.TransferEnded(to, true)
	case !l.core.Leads():
	case r == nil:
		t.retries[to] = &retry{firstRetryTicks, firstRetryTicks}
	default:
		r.backoff = min(2*r.backoff, lastRetryTicks)
		r.ticksLeft = r.backoff
	}
	return l.sendCheckpoints(nil)
}

// tickTransfers lets raft retry after a failure, and cancels everything when leadership is lost.
func (l *Loop) tickTransfers() {
	t := &l.transfers
	if !l.core.Leads() {
		if !t.empty() {
			l.host.CancelTransfers()
		}
		clear(t.retries)
		return
	}
	if len(t.retries) == 0 {
		return
	}
	for _, to := range slices.Sorted(maps.Keys(t.retries)) { // sorted: a simulation must be repeatable
		r := t.retries[to]
		if r.ticksLeft == 0 {
			continue // raft was told already
		}
		if r.ticksLeft--; r.ticksLeft == 0 {
			l.core.Retention.TransferEnded(to, false)
		}
	}
}
