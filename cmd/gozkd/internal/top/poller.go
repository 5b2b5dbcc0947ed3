package top

import (
	"context"
	"errors"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/probe"
)

// retryRounds is the number of rounds after which a refused word is asked again: the whitelist may
// have changed, but each word costs a connection.
const retryRounds = 15

// poller asks a member. It is not safe for concurrent use.
type poller struct {
	address string
	ask     func(ctx context.Context, address, word string) (string, error)
	// discover learns the members without conf. It may be nil.
	discover func(ctx context.Context, address string) (probe.Settings, error)
	now      func() time.Time

	round    int
	asked    int64
	denied   map[string]denial
	settings settingsState
}

// denial is a refused word.
type denial struct {
	err   error
	round int // when it was refused
}

// settingsState records how the member's settings were learned.
type settingsState struct {
	known bool
	round int // when they were learned
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
	s.At, s.Asked = p.now(), p.asked
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
	if s.State.Mode != probe.ModeStandalone && (!p.settings.known || p.round >= p.settings.round+retryRounds) {
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
	p.settings.known, p.settings.round = true, p.round
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
