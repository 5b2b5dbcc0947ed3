package interop

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

func (s *siege) loads() []load {
	return []load{
		&holding{s: s, kind: "mutex", limit: 1},
		&holding{s: s, kind: "semaphore", limit: 2},
		&holding{s: s, kind: "latch", limit: 1},
		&counting{s: s, title: "counter", seats: s.all()},
		&counting{s: s, title: "counter of Go alone", seats: s.all(Go)},
		newQueueing(s, "queue", s.all()),
		newQueueing(s, "queue of Go alone", s.all(Go)),
		&gathering{s: s},
	}
}

// holding is the load of a mutex, a semaphore or an election: a worker per seat acquires it, writes
// under its guard, and releases it.
type holding struct {
	s     *siege
	kind  string
	limit int // how many may hold at a time; with 1 there is a counter

	spans   history
	done    tally // successful guarded writes, by language
	refused tally // guarded writes that failed, by language
	writes  atomic.Int64
}

func (l *holding) name() string    { return l.kind }
func (l *holding) path() string    { return "/hostile-" + l.kind }
func (l *holding) counter() string { return l.path() + "-counter" }

func (l *holding) ops(at *seat) string { return l.path() + "-ops-" + at.name }

func (l *holding) prepare(context.Context) {
	must.Get(l.s.conn.Create(l.counter(), []byte("0"), 0, zk.WorldACL(zk.PermAll)))
	// kazoo needs parents that stay.
	must.Get(l.s.conn.Create(l.path(), nil, 0, zk.WorldACL(zk.PermAll)))
	for _, at := range l.s.seats {
		must.Get(l.s.conn.Create(l.ops(at), nil, 0, zk.WorldACL(zk.PermAll)))
	}
}

func (l *holding) works(ctx context.Context) (works []func()) {
	for _, at := range l.s.seats {
		for range l.limit { // as many as can hold, so that there is always a contender
			works = append(works, func() {
				l.s.worker(ctx, at, nil, func(h *handle) bool { return l.cycle(ctx, at, h) })
			})
		}
	}
	return works
}

// cycle acquires, writes and releases.
func (l *holding) cycle(ctx context.Context, at *seat, h *handle) bool {
	s, lang := l.s, at.lang()
	got, ok := s.ask(ctx, at, h, "hold", l.kind, l.path(), at.name)
	if !ok {
		return false
	}
	counter, next := "-", "-"
	if l.limit == 1 {
		counter = l.counter()
		a, ok := s.ask(ctx, at, h, "get", counter)
		if !ok {
			l.release(ctx, at, h)
			return false
		}
		next = Hex([]byte(strconv.Itoa(must.Get(strconv.Atoi(string(Unhex(a.words[0])))) + 1)))
	}
	if s.draw(60) == 0 {
		s.stopPeer(ctx, at, s.draw(2) == 0) // between the reading and the writing
	}
	op := fmt.Sprintf("%s/%d", l.ops(at), l.writes.Add(1))
	commit, ok := s.ask(ctx, at, h, "commit", counter, next, op)
	held := ok && commit.words[0] == "yes"
	back := commit
	if held {
		l.done.add(lang)
	} else {
		l.refused.add(lang)
	}
	if lang == Go && ok {
		if alive, ok := s.ask(ctx, at, h, "alive"); ok && alive.words[0] == "yes" {
			held, back = true, alive
		}
	}
	if held {
		l.spans.add(at.name, got, back, 1)
	}
	return l.release(ctx, at, h) && ok
}

func (l *holding) release(ctx context.Context, at *seat, h *handle) bool {
	_, ok := l.s.ask(ctx, at, h, "release")
	return ok
}

func (l *holding) lacks() []string { return l.done.without("guarded write", l.s.seats) }

func (l *holding) check(ctx context.Context) string {
	s := l.s
	if err := must.Try(func() { l.spans.atMost(l.limit) }); err != nil {
		s.find("%s: %v", l.kind, err)
	}
	done := 0
	for _, lang := range languagesOf(s.seats) {
		done += l.done.get(lang)
	}
	ops := 0
	for _, at := range s.seats {
		ops += int(settled(ctx, "read "+l.ops(at), func() (*zk.Stat, error) {
			_, stat, err := s.conn.Get(l.ops(at))
			return stat, err
		}).NumChildren)
	}
	text := fmt.Sprintf("guarded writes %d (%s), refused or unknown %s", ops, &l.done, &l.refused)
	if ops < done {
		s.find("%s: %d guarded writes were acknowledged and only %d znodes created", l.kind, done, ops)
	}
	if l.limit > 1 {
		return text
	}
	sum := string(settled(ctx, "read "+l.counter(), func() ([]byte, error) {
		b, _, err := s.conn.Get(l.counter())
		return b, err
	}))
	if sum != strconv.Itoa(ops) {
		s.find("%s: %d guarded writes add up to %s", l.kind, ops, sum)
	}
	return text + ", sum " + sum
}

// without describes a deed per language of the seats that it counts none of.
func (t *tally) without(deed string, seats []*seat) (list []string) {
	for _, lang := range languagesOf(seats) {
		if t.get(lang) == 0 {
			list = append(list, deed+" of "+lang)
		}
	}
	return list
}

func languagesOf(seats []*seat) (list []string) {
	seen := make(map[string]bool)
	for _, at := range seats {
		if !seen[at.lang()] {
			seen[at.lang()] = true
			list = append(list, at.lang())
		}
	}
	return list
}

// gathering is the load of double barriers: round by round all seats enter one of a new path, and
// leave it.
type gathering struct {
	s      *siege
	rounds tally
}

func (g *gathering) name() string { return "double barrier" }

func (g *gathering) prepare(context.Context) {}

func (g *gathering) works(ctx context.Context) []func() {
	return []func(){func() {
		for i := 0; g.s.over.Err() == nil; i++ {
			g.round(ctx, fmt.Sprintf("/hostile-barrier-%d", i))
		}
	}}
}

// roundTime is how long a round may take. A kazoo or Curator that lost its connection may wait for
// ever, so then the driver opens the barrier.
const roundTime = 15 * time.Second

func (g *gathering) round(ctx context.Context, path string) {
	s := g.s
	must.Get(settled(ctx, "create "+path, func() (string, error) {
		p, err := s.conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		if errors.Is(err, zk.ErrNodeExists) {
			return path, nil
		}
		return p, err
	}), nil)
	handles, enters := make([]*handle, len(s.seats)), make([]*answer, len(s.seats))
	for i, at := range s.seats {
		s.rest(ctx, 50*time.Millisecond)
		handles[i] = at.get().handle()
		enters[i] = handles[i].ask("enter", path, len(s.seats))
	}
	last := enters[len(enters)-1].sent
	open := time.AfterFunc(roundTime, func() { // an error shows as an open round
		_, _ = s.conn.Create(path+"/ready", nil, 0, zk.WorldACL(zk.PermAll))
	})
	passed := g.await(ctx, enters)
	opened := !open.Stop()
	var leaves []*answer
	for i, ok := range passed {
		if ok && enters[i].got.Before(last) {
			s.find("double barrier: %s entered before the last had come", s.seats[i].name)
		}
		if ok {
			leaves = append(leaves, handles[i].ask("leave"))
		}
		if !ok && !opened && s.seats[i].lang() == Go && !enters[i].answered() {
			s.find("double barrier: %s did not answer", s.seats[i].name)
		}
	}
	g.await(ctx, leaves)
	switch {
	case len(leaves) == len(s.seats) && !opened:
		g.rounds.add("complete")
	default:
		g.rounds.add("broken")
	}
}

// await waits for twice roundTime, and returns which requests were answered with yes.
func (g *gathering) await(ctx context.Context, list []*answer) []bool {
	ctx, cancel := context.WithTimeout(ctx, 2*roundTime)
	defer cancel()
	passed := make([]bool, len(list))
	for i, a := range list {
		select {
		case <-a.done:
			passed[i] = a.err == nil && len(a.words) == 1 && a.words[0] == "yes"
		case <-ctx.Done():
		}
	}
	return passed
}

func (g *gathering) lacks() []string {
	if g.rounds.get("complete") == 0 {
		return []string{"complete round"}
	}
	return nil
}

func (g *gathering) check(context.Context) string { return "rounds: " + g.rounds.String() }
