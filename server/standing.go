package server

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/internal/lifecycle"
	"github.com/gozkd/gozkd/server/internal/meter"
)

// standing is what a server shares with its parts: its configuration, how far it is, the state, and
// its way to consensus. Start sets the node and the times before anything else can use them; Reload
// alone changes live.
type standing struct {
	cfg     *Config                // as the server was started with; never changes
	live    atomic.Pointer[Config] // as Reload left it; its content never changes
	members serverlist.Set         // Config.Members
	life    lifecycle.Life
	node    *consensus.Node
	state   state
	meter   meter.Meter
	// The start of the server on two clocks: Config.Now, which may jump, and the runtime's.
	startedWall, startedMono time.Time
}

// alone reports whether this server has no other members to talk to.
func (s *standing) alone() bool { return len(s.members) == 0 }

// propose proposes a request of the server itself. applied, if not nil, is called with the result,
// which does not outlive the call, under the tree's lock, unless the server stops first.
func (s *standing) propose(r datatree.Request, applied func(*datatree.Result)) {
	r.Server = s.cfg.MemberID
	s.node.Propose(r.Append(nil), &serverWrite{req: r, applied: applied})
}

// decide proposes a request of the server's own and returns its result code. look is called with
// the result, which does not outlive the call, under the tree's lock. If decide returns an error,
// the outcome is unknown.
func (s *standing) decide(
	ctx context.Context, r datatree.Request, look ...func(*datatree.Result),
) (code proto.ErrCode, err error) {
	err = s.proposeAll(ctx, []datatree.Request{r}, func(res *datatree.Result) {
		code = res.Err
		for _, f := range look {
			f(res)
		}
	})
	return code, err
}

// proposeAll proposes requests in order, and returns when look was called with all results. After
// an error look is not called any more.
func (s *standing) proposeAll(ctx context.Context, requests []datatree.Request, look func(*datatree.Result)) error {
	switch {
	case !s.life.Accepting.Load():
		return s.life.WhyNot()
	case len(requests) == 0:
		return nil
	}
	var mu sync.Mutex // guards pending, and what look does
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
