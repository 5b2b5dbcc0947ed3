package top

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gozkd/gozkd/internal/probe"
	"github.com/gozkd/gozkd/internal/wakeup"
	"github.com/gozkd/gozkd/server/facts"
)

// retryRounds is after how many rounds a refused word is asked again, as each costs a connection.
const retryRounds = 15

// poller asks a member. It is not safe for concurrent use.
type poller struct {
	address string
	ask     func(ctx context.Context, address, word string) (string, error)
	// discover learns the members without conf. It may be nil.
	discover func(ctx context.Context, address string) (probe.Settings, error)

	round    int
	asked    int64
	denied   map[string]denial
	settings settingsState
}

type denial struct {
	err   error
	round int // when it was refused
}

// settingsState records how the member's settings were learned.
type settingsState struct {
	round int // when they were learned; 0: they are not known
	tried int // round of the last call of discover; 0: none since the member was down
	// discovered: learned with a session, which is a write and therefore not repeated.
	discovered bool
}

// sample asks the member once. settings is nil unless the member reported its identity.
func (p *poller) sample(ctx context.Context) (s Sample, settings *probe.Settings) {
	p.round++
	s.Address = p.address
	var answer string
	state, err := probe.AskState(ctx, p.counted, p.address)
	s.At, s.Asked = time.Now(), p.asked
	if err != nil {
		s.Err = err
		p.denied, p.settings = nil, settingsState{} // the member may return as another release with other settings
		return s, nil
	}
	s.State = state
	if answer, s.MonitorErr = p.optional(ctx, "mntr"); s.MonitorErr == nil {
		s.Monitor = probe.ParseMonitor(answer)
	}
	// The beginning of a long answer has tens of thousands of clients.
	if answer, s.ClientsErr = p.optional(ctx, "cons"); s.ClientsErr == nil || errors.Is(s.ClientsErr, probe.ErrTooLarge) {
		for _, c := range probe.ParseConnections(answer) {
			if c.Session != 0 {
				s.Clients = append(s.Clients, c)
			}
		}
		s.ClientsErr = nil
	}
	if !s.State.Gozkd() {
		s.HotErr = errNoHotWord
	} else if answer, s.HotErr = p.optional(ctx, probe.HotWord); s.HotErr == nil {
		s.Hot, s.HotErr = probe.ParseHot(answer)
	} else if errors.Is(s.HotErr, probe.ErrNoAnswer) {
		s.HotErr = errOldGozkd
	}
	if s.State.Mode != facts.Standalone && (p.settings.round == 0 || p.round >= p.settings.round+retryRounds) {
		settings = p.readSettings(ctx)
	}
	return s, settings
}

// Reasons for missing hot paths.
var (
	errNoHotWord = errors.New("hot paths: Apache ZooKeeper does not count by path and client; gozkd does")
	errOldGozkd  = errors.New("hot paths: this release of gozkd does not know the word " + probe.HotWord)
)

// readSettings asks for the identity of the member and the other members.
func (p *poller) readSettings(ctx context.Context) *probe.Settings {
	answer, err := p.optional(ctx, "conf")
	var s probe.Settings
	switch {
	case err == nil:
		s = probe.ParseSettings(answer)
	case p.discover == nil || p.settings.discovered || p.settings.tried > 0 && p.round < p.settings.tried+retryRounds || !errors.Is(err, probe.ErrNotAllowed):
		return nil
	default:
		p.settings.tried = p.round
		// A new ensemble has no members in the znode for a moment.
		if s, err = p.discover(ctx, p.address); err != nil || len(s.Members) == 0 {
			return nil // the given members are watched anyway
		}
		p.settings.discovered = true
	}
	p.settings.round = p.round
	return &s
}

// optional asks a word that the member may refuse. A refused word is not asked in each round.
func (p *poller) optional(ctx context.Context, word string) (string, error) {
	if d, ok := p.denied[word]; ok && p.round < d.round+retryRounds {
		return "", d.err
	}
	delete(p.denied, word)
	answer, err := p.counted(ctx, p.address, word)
	if errors.Is(err, probe.ErrNotAllowed) || errors.Is(err, probe.ErrNoAnswer) {
		if p.denied == nil {
			p.denied = make(map[string]denial)
		}
		p.denied[word] = denial{err: err, round: p.round}
	}
	return answer, err
}

// counted asks a word and counts it if it reached the member.
func (p *poller) counted(ctx context.Context, address, word string) (string, error) {
	answer, err := p.ask(ctx, address, word)
	if probe.Reached(err) || errors.Is(err, probe.ErrNoAnswer) {
		p.asked++
	}
	return answer, err
}

// watcher asks all members independently, so that a slow member does not delay the others.
type watcher struct {
	roster   *roster
	interval time.Duration // from the end of a round to the start of the next
	ask      func(ctx context.Context, address, word string) (string, error)
	discover func(ctx context.Context, address string) (probe.Settings, error)
	// hurry makes the watcher ask all members now. It may be nil.
	hurry <-chan struct{}
}

type answer struct {
	sample   Sample
	settings *probe.Settings
}

// runningPoller is the goroutine that asks a member.
type runningPoller struct {
	cancel context.CancelFunc
	hurry  chan struct{} // capacity 1: a member that is being asked is asked again afterwards
}

// run asks and reports, on one goroutine, until ctx ends and all its goroutines have ended.
func (w *watcher) run(ctx context.Context, report func(Report)) {
	var pollers sync.WaitGroup
	defer pollers.Wait()
	ctx, cancel := context.WithCancel(ctx)
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
				wakeup.Send(a.hurry)
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
	for _, e := range roster {
		if _, ok := running[e.Address]; ok {
			continue
		}
		own, cancel := context.WithCancel(ctx)
		hurry := make(chan struct{}, 1)
		running[e.Address] = runningPoller{cancel: cancel, hurry: hurry}
		p := &poller{address: e.Address, ask: w.ask}
		if strings.HasSuffix(e.Address, unknownPort) {
			p.ask = askUnknown
		}
		if e.ID == 0 { // a reported member's number is known, so no session is needed
			p.discover = w.discover
		}
		pollers.Go(func() { w.poll(own, p, hurry, answers) }) // ended by its cancel or ctx; awaited by run
	}
	for address, a := range running {
		if !slices.ContainsFunc(roster, func(e Entry) bool { return e.Address == address }) {
			a.cancel()
			delete(running, address)
		}
	}
}

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
