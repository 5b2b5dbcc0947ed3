package consensus

import (
	"context"
	"runtime"
)

// turns gives the loop to one goroutine at a time. A goroutine that has an input for the loop takes
// the turn itself if it can: that costs less than waking another. Run takes the other turns: those
// of ticks and timers, and those of a crowd.
//
// No input is forgotten: a goroutine that gives the loop back looks at the inbox afterwards. So a
// goroutine that has added an input, and does not get the loop, can go on.
type turns struct {
	taken chan struct{} // capacity 1, full while a goroutine has the loop; it guards the fields below
	ended error         // why there are no more turns
	clock *tickClock
	crowd int // turns until the loop forgets that several requests came at once
}

const (
	// maxDriven is how many turns a goroutine takes in a row if it is not Run: the turns of a
	// request, but not those of ever more requests of others.
	maxDriven = 4
	// crowdMemory is how many turns Run takes after several requests came at once. With a crowd,
	// each turn should find as many requests as possible, and the goroutines that bring them should
	// bring the next meanwhile.
	crowdMemory = 64
)

// noteRequests notes how many requests came, or were applied, at once.
func (t *turns) noteRequests(n int) {
	if n > 1 {
		t.crowd = crowdMemory
	}
}

// Drive handles the requests that Enqueue has taken: on this goroutine, or on that of Run if there
// is a crowd or others have the loop. So the caller must not hold a lock that the state machine
// acquires. A standalone server writes its log in a turn, so this goroutine drives only if it may
// wait for the disk. The runtime lets nobody look after the network while the last thread that did
// waits for a disk: maySync should be false if others may need the network meanwhile.
func (n *Node) Drive(maySync bool) {
	switch {
	case n.wakeups.proposals.delays():
	case maySync || n.cfg.PeerListener != nil || n.cfg.inMemory():
		n.drive()
	default:
		n.inbox.signal()
	}
}

// drive takes turns for the items in the inbox, or leaves the turns to others.
func (n *Node) drive() {
	t := &n.turns
	for range maxDriven {
		if n.inbox.empty() {
			return
		}
		select {
		case t.taken <- struct{}{}:
		default:
			return
		}
		leave := t.ended != nil || t.crowd > 0
		if !leave {
			t.ended = n.takeTurn()
		}
		<-t.taken
		if leave {
			break
		}
	}
	n.inbox.signal()
}

// run takes turns until ctx ends or an error occurs, and then keeps the loop.
func (n *Node) run(ctx context.Context) error {
	t := &n.turns
	t.clock = newTickClock(n.cfg.Tick)
	defer t.clock.timer.Stop()
	defer n.wakeups.proposals.stop()
	n.core.Read(func() { n.status.caughtUp = true })
	t.ended = n.takeTurn() // Open has taken the loop
	for t.ended == nil {
		<-t.taken
		if !n.inbox.empty() { // an input may have been added without a signal
			n.inbox.signal()
		}
		woken := false
		select {
		case <-n.inbox.wake:
			woken = true
		case <-t.clock.timer.C:
		case <-ctx.Done():
		}
		t.taken <- struct{}{}
		if woken && n.wakeups.yielder.shouldYield() {
			<-t.taken
			runtime.Gosched()
			t.taken <- struct{}{}
		}
		switch {
		case t.ended != nil: // another goroutine's turn failed
		case ctx.Err() != nil:
			t.ended = ErrClosed
		default:
			t.ended = n.takeTurn()
		}
	}
	return t.ended
}

// takeTurn does everything that follows from the ticks and inputs since the last turn.
func (n *Node) takeTurn() error {
	t := &n.turns
	t.crowd = max(t.crowd-1, 0)
	// Before the inputs: a tick that has passed came before them.
	if ticks := t.clock.passed(); ticks > 0 {
		n.peers.update(n.core)
		for range ticks {
			n.loop.Tick()
		}
	}
	if err := n.receive(); err != nil {
		return err
	}
	if err := n.loop.Turn(); err != nil {
		return err
	}
	n.publish()
	n.wakeups.proposals.set(n.core.ProposalDelay())
	rest := n.loop.RestTicks()
	n.wakeups.resting.Store(rest > 1)
	t.clock.sleep(rest)
	return nil
}

// receive hands the inputs from other goroutines to the core and the loop.
func (n *Node) receive() error {
	logResults, events, requests := n.inbox.logResults.take(), n.inbox.events.take(), n.inbox.requests.take()
	n.wakeups.yielder.took(len(logResults) + len(events) + len(requests))
	n.turns.noteRequests(len(requests))
	for _, r := range logResults {
		if err := n.loop.LogWritten(r.responses, r.installed, r.at); err != nil {
			return err
		}
	}
	for _, e := range events {
		if err := e.handle(n); err != nil {
			return err
		}
	}
	for _, r := range requests {
		n.core.Propose(r.payload, r.ref)
	}
	return nil
}
