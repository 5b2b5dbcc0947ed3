package interop

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/server"
)

// tally counts by name. Safe for concurrent use.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (t *tally) add(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n == nil {
		t.n = make(map[string]int)
	}
	t.n[name]++
}

func (t *tally) get(name string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.n[name]
}

func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var words []string
	for _, name := range slices.Sorted(maps.Keys(t.n)) {
		words = append(words, fmt.Sprintf("%s %d", name, t.n[name]))
	}
	return strings.Join(words, ", ")
}

// trouble does harm until the time is over, and leaves all members serving.
func (s *siege) trouble(ctx context.Context) {
	e := s.o.Ensemble
	for end := time.Now().Add(s.o.Time); time.Now().Before(end) && ctx.Err() == nil; {
		s.wait(ctx, 1000+s.draw(3000))
		leader, err := e.Leader(ctx)
		if err != nil || s.draw(2) == 0 {
			leader = e.Members[s.draw(len(e.Members))]
		}
		switch s.draw(4) {
		case 0, 1:
			s.kill(ctx, leader)
		case 2:
			s.stopMember(ctx, leader)
		default:
			// Without a majority.
			s.kill(ctx, leader, e.Members[leader.ID%len(e.Members)])
		}
		e.AwaitServing(ctx)
	}
}

// awaitProgress waits, up to lateTime, until no load lacks progress.
func (s *siege) awaitProgress(ctx context.Context, loads []load) {
	lacks := func(l load) bool { return len(l.lacks()) > 0 }
	for end := time.Now().Add(lateTime); slices.ContainsFunc(loads, lacks) && time.Now().Before(end) && ctx.Err() == nil; {
		s.wait(ctx, 100)
	}
}

func (s *siege) wait(ctx context.Context, ms int) {
	backoff.Sleep(ctx, time.Duration(ms)*time.Millisecond)
}

// kill kills members, as kill -9 does, and starts them again after up to 3 s.
func (s *siege) kill(ctx context.Context, members ...*server.Member) {
	for _, m := range members {
		s.o.Log("kill member %d", m.ID)
		must.Do(m.Kill())
	}
	s.faults.add(fmt.Sprintf("killed %d at once", len(members)))
	s.wait(ctx, s.draw(3000))
	for _, m := range members {
		m.Start()
	}
}

func (s *siege) stopMember(ctx context.Context, m *server.Member) {
	ms := 500 + s.draw(6500)
	s.o.Log("stop member %d for %d ms", m.ID, ms)
	s.faults.add("stopped a member")
	must.Do(server.Pause(m.Pid()))
	s.wait(ctx, ms)
	must.Do(server.Resume(m.Pid()))
}

// stopPeer stops the process of a seat, unless another is stopped: until its session has ended if
// long.
func (s *siege) stopPeer(ctx context.Context, at *seat, long bool) {
	if !s.freeze.TryLock() {
		return
	}
	defer s.freeze.Unlock()
	ms := s.draw(2000)
	if long {
		ms = int(seatTimeout.Milliseconds()) + 2000
	}
	s.o.Log("stop %s for %d ms", at.name, ms)
	s.faults.add("stopped a peer")
	pid := at.get().cmd.Process.Pid
	must.Do(server.Pause(pid))
	s.wait(ctx, ms)
	must.Do(server.Resume(pid))
}
