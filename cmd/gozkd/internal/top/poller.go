package top

import (
	"context"
	"errors"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/probe"
)

// retryRounds is after how many rounds a word that was not answered is asked again: somebody may have changed the whitelist, and every word
// is a connection.
const retryRounds = 15

// poller asks one member. Not safe for concurrent use.
type poller struct {
	address string
	ask     func(ctx context.Context, address, word string) (string, error)
	// discover learns from a member whose conf is not to be had; nil: not from this one.
	discover func(ctx context.Context, address string) (probe.Settings, error)
	now      func() time.Time

	round    int
	asked    int64
	denied   map[string]denial
	settings settingsState
}

// denial is a word that the member does not answer.
type denial struct {
	err   error
	round int // when it said so
}

// settingsState is whether the member's settings are known.
type settingsState struct {
	known bool
	round int // when they were learned
	tried int // the round in which discover was last called; 0: not since the member was last seen down
	// discovered: by a session, which is a write, so that it is not done again.
	discovered bool
}

// sample is one round. settings is not nil if the member told who it is.
func (p *poller) sample(ctx context.Context) (s Sample, settings *probe.Settings) {
	p.round++
	s.Address = p.address
	answer, err := p.word(ctx, "srvr")
	s.At, s.Asked = p.now(), p.asked
	if err == nil {
		if s.State, err = probe.ParseState(answer); err != nil {
			err = &probe.Error{Address: p.address, Word: "srvr", Err: err}
		}
	}
	if err != nil {
		s.Err = err
		p.denied, p.settings = nil, settingsState{} // what comes back may be another release with other settings
		return s, nil
	}
	if answer, s.MonitorErr = p.optional(ctx, "mntr"); s.MonitorErr == nil {
		s.Monitor = probe.ParseMonitor(answer)
	}
	// An answer that is too long is not complete, but the first tens of thousands of clients are.
	if answer, s.ClientsErr = p.optional(ctx, "cons"); s.ClientsErr == nil || errors.Is(s.ClientsErr, probe.ErrTooLarge) {
		for _, c := range probe.ParseConnections(answer) {
			if c.Session != 0 {
				s.Clients = append(s.Clients, c)
			}
		}
		s.ClientsErr = nil
	}
	switch {
	case !s.State.Gozkd():
		s.HotErr = errNoHotWord
	default:
		if answer, s.HotErr = p.optional(ctx, probe.HotWord); s.HotErr == nil {
			s.Hot, s.HotErr = probe.ParseHot(answer)
		} else if errors.Is(s.HotErr, probe.ErrNoAnswer) {
			s.HotErr = errOldGozkd
		}
	}
	if s.State.Mode != probe.ModeStandalone && (!p.settings.known || p.round >= p.settings.round+retryRounds) {
		settings = p.readSettings(ctx)
	}
	return s, settings
}

// Why a server has no hot paths.
var (
	errNoHotWord = errors.New("hot paths: Apache ZooKeeper does not count by path and client; gozkd does")
	errOldGozkd  = errors.New("hot paths: this release of gozkd does not know the word " + probe.HotWord)
)

// readSettings asks who the member is and who the others are.
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
		// A new ensemble has no members in its znode for a moment.
		if s, err = p.discover(ctx, p.address); err != nil || len(s.Members) == 0 {
			return nil // the members that were named are still watched
		}
		p.settings.discovered = true
	}
	p.settings.known, p.settings.round = true, p.round
	return &s
}

// optional asks a word that the member may not answer, and if so, not in each round.
func (p *poller) optional(ctx context.Context, word string) (string, error) {
	if d, ok := p.denied[word]; ok && p.round < d.round+retryRounds {
		return "", d.err
	}
	delete(p.denied, word)
	answer, err := p.word(ctx, word)
	if errors.Is(err, probe.ErrNotAllowed) || errors.Is(err, probe.ErrNoAnswer) {
		if p.denied == nil {
			p.denied = make(map[string]denial)
		}
		p.denied[word] = denial{err: err, round: p.round}
	}
	return answer, err
}

func (p *poller) word(ctx context.Context, word string) (string, error) {
	answer, err := p.ask(ctx, p.address, word)
	if probe.Reached(err) || errors.Is(err, probe.ErrNoAnswer) {
		p.asked++
	}
	return answer, err
}
