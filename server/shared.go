package server

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/server/internal/endings"
	"github.com/gozkd/gozkd/server/internal/lifecycle"
	"github.com/gozkd/gozkd/server/internal/meter"
)

// shared holds the fields that a server shares with its parts: its configuration, its life, the
// state, and its way to consensus. Start sets the node and the times before anything else can use
// them; Reload alone changes live.
type shared struct {
	cfg     *Config                // as the server was started with; never changes
	live    atomic.Pointer[Config] // as Reload left it; its content never changes
	members serverlist.Set         // Config.Members
	life    lifecycle.Life
	node    *consensus.Node
	state   state
	meter   meter.Meter
	endings *endings.Endings
	// servingFrom is nil before the server serves clients.
	servingFrom atomic.Pointer[servingFrom]
	// The start of the server on two clocks: Config.Now, which may jump, and the runtime's.
	startedWall, startedMono time.Time
}

// alone reports whether this server has no other members to talk to.
func (s *shared) alone() bool { return len(s.members) == 0 }

func (s *shared) quorumConnected(set serverlist.Set) bool {
	voters := set.Voters()
	return len(voters)-len(s.away(voters)) > len(voters)/2
}

// away returns the servers, other than this one, to which this server is not connected.
func (s *shared) away(servers []uint64) []uint64 {
	there := append(s.node.Connected(), uint64(s.cfg.MemberID))
	return slices.DeleteFunc(slices.Clone(servers), func(id uint64) bool { return slices.Contains(there, id) })
}

// current returns a channel that is closed when this server has applied all that is committed now.
func (s *shared) current() <-chan struct{} {
	done := make(chan struct{})
	s.node.Read(func() { close(done) })
	return done
}

func (s *shared) catchUp(ctx context.Context) error {
	if !s.life.Accepting.Load() {
		return s.life.WhyNot()
	}
	return s.life.Await(ctx, s.current(), "not caught up yet")
}

// propose proposes a request of the server itself. applied, if not nil, is called with the result,
// which does not outlive the call, under the tree's lock, unless the server stops first.
func (s *shared) propose(r datatree.Request, applied func(*datatree.Result)) {
	r.Server = s.cfg.MemberID
	s.node.Propose(r.Append(nil), &serverWrite{req: r, applied: applied})
}

// decide proposes requests of the server's own in order, and returns when look was called with all
// results, which do not outlive the calls, under the tree's lock. After an error look is not called
// any more, and the outcome is unknown.
func (s *shared) decide(ctx context.Context, requests []datatree.Request, look func(*datatree.Result)) error {
	switch {
	case !s.life.Accepting.Load():
		return s.life.WhyNot()
	case len(requests) == 0:
		return nil
	}
	var mu sync.Mutex // guards pending; held by look
	pending, done := len(requests), make(chan struct{})
	for _, r := range requests {
		s.propose(r, func(res *datatree.Result) {
			mu.Lock()
			defer mu.Unlock()
			if pending == 0 { // given up
				return
			}
			look(res)
			if pending--; pending == 0 {
				close(done)
			}
		})
	}
	err := s.life.Await(ctx, done, "not applied yet")
	mu.Lock()
	defer mu.Unlock()
	pending = 0
	return err
}
