package top

import (
	"context"
	"sync"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/probe"
)

// watcher asks all members, each at its own pace, so that one that hangs holds up nobody else.
type watcher struct {
	roster   *roster
	interval time.Duration // between the end of a round and the begin of the next
	ask      func(ctx context.Context, address, word string) (string, error)
	discover func(ctx context.Context, address string) (probe.Settings, error)
	// hurry: a value makes all begin their next round now. May be nil.
	hurry <-chan struct{}
}

// heard is a round of one member.
type heard struct {
	sample   Sample
	settings *probe.Settings
}

// asking is a goroutine that asks one member.
type asking struct {
	cancel context.CancelFunc
	hurry  chan struct{} // holds one: a member that is being asked begins again after that
}

// run asks and reports until ctx ends, and returns when all that it started has ended. report is called by one goroutine.
func (w *watcher) run(ctx context.Context, report func(Report)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var pollers sync.WaitGroup
	defer pollers.Wait()
	defer cancel()
	answers := make(chan heard) // whoever sends also sees the end of ctx
	running := make(map[string]asking)
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
				default: // it was told already
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

// follow starts to ask who is new on the roster, and ends it for who left.
func (w *watcher) follow(ctx context.Context, roster []Entry, running map[string]asking, pollers *sync.WaitGroup, answers chan<- heard) {
	watched := make(map[string]bool, len(roster))
	for _, e := range roster {
		watched[e.Address] = true
		if _, ok := running[e.Address]; ok {
			continue
		}
		own, cancel := context.WithCancel(ctx)
		hurry := make(chan struct{}, 1)
		running[e.Address] = asking{cancel: cancel, hurry: hurry}
		p := &poller{address: e.Address, ask: w.ask, now: time.Now}
		if e.ID == 0 { // a member that others told of is known, and spared the session
			p.discover = w.discover
		}
		pollers.Go(func() { w.poll(own, p, hurry, answers) }) // ended by its cancel or with ctx; awaited by run
	}
	for address, a := range running {
		if !watched[address] {
			a.cancel()
			delete(running, address)
		}
	}
}

// poll asks one member until ctx ends.
func (w *watcher) poll(ctx context.Context, p *poller, hurry <-chan struct{}, answers chan<- heard) {
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
			return // what was cut short says nothing of the member
		}
		select {
		case <-ctx.Done():
			return
		case answers <- heard{s, settings}:
		}
		timer.Reset(w.interval)
	}
}
