package top

import (
	"context"
	"sync"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/probe"
)

// watcher asks all members independently, so that a slow member does not delay the others.
type watcher struct {
	roster   *roster
	interval time.Duration // from the end of a round to the start of the next
	ask      func(ctx context.Context, address, word string) (string, error)
	discover func(ctx context.Context, address string) (probe.Settings, error)
	// hurry makes the watcher ask all members now. It may be nil.
	hurry <-chan struct{}
}

// answer is the result of asking one member.
type answer struct {
	sample   Sample
	settings *probe.Settings
}

// runningPoller is the goroutine that asks a member.
type runningPoller struct {
	cancel context.CancelFunc
	hurry  chan struct{} // capacity 1: a member that is being asked is asked again afterwards
}

// run asks and reports until ctx ends, and returns when all its goroutines have ended. Only a
// single goroutine calls report.
func (w *watcher) run(ctx context.Context, report func(Report)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var pollers sync.WaitGroup
	defer pollers.Wait()
	defer cancel()
	answers := make(chan answer) // senders also select on ctx
	running := make(map[string]runningPoller)
	roster := w.roster.entries()
	for {
		w.follow(ctx, roster, running, &pollers, answers)
		select {
		case <-ctx.Done():
			return
		case <-w.hurry:
			for _, a := range running {
				select {
				case a.hurry <- struct{}{}:
				default: // the member has been told already
				}
			}
			continue
		case h := <-answers:
			if h.settings != nil {
				w.roster.learn(h.sample.Address, *h.settings)
				roster = w.roster.entries()
			}
			report(Report{Sample: h.sample, Roster: roster})
		}
	}
}

// follow starts to ask new servers of the roster, and stops asking servers that left the roster.
func (w *watcher) follow(ctx context.Context, roster []Entry, running map[string]runningPoller, pollers *sync.WaitGroup, answers chan<- answer) {
	watched := make(map[string]bool, len(roster))
	for _, e := range roster {
		watched[e.Address] = true
		if _, ok := running[e.Address]; ok {
			continue
		}
		own, cancel := context.WithCancel(ctx)
		hurry := make(chan struct{}, 1)
		running[e.Address] = runningPoller{cancel: cancel, hurry: hurry}
		p := &poller{address: e.Address, ask: w.ask, now: time.Now}
		if e.ID == 0 { // a reported member's number is known, so no session is needed
			p.discover = w.discover
		}
		pollers.Go(func() { w.poll(own, p, hurry, answers) }) // ended by its cancel or ctx; awaited by run
	}
	for address, a := range running {
		if !watched[address] {
			a.cancel()
			delete(running, address)
		}
	}
}

// poll asks a member until ctx ends.
func (w *watcher) poll(ctx context.Context, p *poller, hurry <-chan struct{}, answers chan<- answer) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-hurry:
		}
		s, settings := p.sample(ctx)
		if ctx.Err() != nil {
			return // an interrupted sample says nothing about the member
		}
		select {
		case <-ctx.Done():
			return
		case answers <- answer{s, settings}:
		}
		timer.Reset(w.interval)
	}
}
