package interop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/server"
)

// HostileOptions configure Hostile.
type HostileOptions struct {
	Ensemble *server.Ensemble // its members are killed and stopped, and run again in the end
	Commands []Command        // a seat each; two of a language contend with each other too
	Time     time.Duration    // how long there are faults
	Seed     uint64           // of faults and pauses; how processes interleave is up to the machine
	Log      func(format string, args ...any)
}

// HostileReport is the result of Hostile.
type HostileReport struct {
	Lines    []string // what was done, a line per load
	Findings []string // broken promises
}

// seatTimeout is the session timeout of the peers: short, so that sessions end during a run.
const seatTimeout = 4 * time.Second

// The longest fault lasts 7 s. After stallTime a foreign peer may have left an orphan, so that all
// foreign peers are restarted. After lateTime a peer hangs.
const (
	stallTime = 25 * time.Second
	lateTime  = 90 * time.Second
)

// Hostile lets a peer per command share recipes while members and peers are killed and stopped, and
// checks:
//
//   - The writes of the holders of a mutex, and of leaders, add up. A holder reads a counter, and
//     writes the next number in a multi that the lock guards and that also creates a znode.
//   - No two peers hold the same lock. A hold lasts at least from the arrival of the peer's answer
//     until the driver asked for a guarded write that succeeded; in Go, also until the driver last
//     asked whether the Context is alive and heard yes.
//   - No two adds reach the same count. Counts that no peer reported are at most as many as lost
//     answers.
//   - Items are taken once. Missing and repeated items are at most as many as lost answers of
//     Curator and kazoo, which do not resolve these, and unknown outcomes that Go reported.
//   - No peer enters a double barrier before the last peer has come.
//   - Go answers every request, and every language makes progress, at the latest after the faults.
func Hostile(ctx context.Context, o HostileOptions) (report HostileReport, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	over, end := context.WithCancel(ctx)
	defer end()
	s := &siege{o: o, addr: strings.Join(o.Ensemble.Addrs(), ","), rnd: rand.New(rand.NewPCG(o.Seed, o.Seed)), over: over}
	if s.conn, err = connect(ctx, s.addr); err != nil {
		return report, err
	}
	defer s.conn.Close()
	defer func() { err = errors.Join(err, s.close()) }()
	err = must.Try(func() {
		var sits []func()
		for i, c := range o.Commands {
			one := &seat{command: c, name: fmt.Sprintf("%s-%d", c.Lang, i+1)}
			s.seats = append(s.seats, one)
			sits = append(sits, func() { one.restart(ctx, s.addr) })
		}
		must.All(sits...)
		loads := s.loads()
		for _, l := range loads {
			must.Doing(l.name(), func() { l.prepare(ctx) })
		}
		works := []func(){func() {
			defer end()
			s.trouble(ctx)
			s.awaitProgress(ctx, loads)
		}}
		for _, l := range loads {
			works = append(works, l.works(ctx)...)
		}
		must.All(works...)
		for _, l := range loads {
			report.Lines = append(report.Lines, l.name()+": "+l.check(ctx))
			for _, what := range l.lacks() {
				s.find("%s: not one %s", l.name(), what)
			}
		}
	})
	report.Lines = append(report.Lines, s.faults.String(), fmt.Sprintf("restarted peers of Curator and kazoo that blocked others: %d", s.restarts))
	report.Findings = s.findings
	return report, err
}

// load is a recipe under siege.
type load interface {
	name() string
	prepare(ctx context.Context)
	works(ctx context.Context) []func()
	// lacks describes the progress that nobody has made so far.
	lacks() []string
	// check reports findings, and returns a summary. All work has ended.
	check(ctx context.Context) string
}

// siege is a run of Hostile.
type siege struct {
	o      HostileOptions
	addr   string
	conn   *zk.Conn
	seats  []*seat
	over   context.Context // ends when no new work may begin: the members run again
	faults tally
	freeze sync.Mutex // held while a peer is stopped

	mu          sync.Mutex // guards the fields below
	rnd         *rand.Rand
	findings    []string
	restarts    int
	lost        int // connections that restarted peers had lost
	lastRestart time.Time
	working     int       // workers that have not ended
	lastWork    time.Time // when a worker ended
}

// find records a broken promise.
func (s *siege) find(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.o.Log("FOUND %s", text)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.findings = append(s.findings, text)
}

func (s *siege) draw(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rnd.IntN(n)
}

func (s *siege) close() error {
	var errs []error
	for _, one := range s.seats {
		if p := one.get(); p != nil {
			errs = append(errs, server.Resume(p.cmd.Process.Pid), p.kill())
		}
	}
	return errors.Join(errs...)
}

// seat is the place of a peer, which may be restarted.
type seat struct {
	command Command
	name    string

	mu   sync.Mutex // guards peer
	peer *peer
}

func (s *seat) get() *peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peer
}

func (s *seat) lang() string { return s.command.Lang }

// restart kills the peer, if any, and starts another.
func (s *seat) restart(ctx context.Context, addr string) {
	if p := s.get(); p != nil {
		must.Do(p.kill())
	}
	var p *peer
	must.Doing(s.name, func() { p = startPeer(ctx, s.command, addr, seatTimeout) })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peer = p
}

// ask sends a request and waits for the answer; ok means an answer without an error. If the answer
// takes too long, the foreign peers are restarted. A request that Go does not answer is a finding.
func (s *siege) ask(ctx context.Context, at *seat, h *handle, verb string, args ...any) (a *answer, ok bool) {
	a = h.ask(verb, args...)
	late := time.After(lateTime)
	stalls := time.NewTicker(stallTime)
	defer stalls.Stop()
	for {
		select {
		case <-a.done:
			return a, a.err == nil
		case <-stalls.C:
			s.restartForeign(ctx)
		case <-late:
			if at.lang() == Go {
				s.find("%s did not answer %s %v within %v", at.name, verb, args, lateTime)
			}
			return a, false
		case <-ctx.Done():
			return a, false
		}
	}
}

// restartForeign restarts the peers of Curator and kazoo, unless that has just been done: an orphan
// of theirs would block everybody for ever.
func (s *siege) restartForeign(ctx context.Context) {
	s.freeze.Lock() // no peer is stopped meanwhile
	defer s.freeze.Unlock()
	s.mu.Lock()
	due := time.Since(s.lastRestart) > stallTime-5*time.Second
	s.mu.Unlock()
	if !due {
		return
	}
	for _, one := range s.seats {
		if one.lang() == Go {
			continue
		}
		s.o.Log("restart %s", one.name)
		lost := lossesOf(ctx, one) + 1
		for i := 0; i < 3 && ctx.Err() == nil; i++ {
			if must.Try(func() { one.restart(ctx, s.addr) }) == nil {
				break
			}
		}
		s.mu.Lock()
		s.restarts++
		s.lost += lost
		s.mu.Unlock()
	}
	s.mu.Lock()
	s.lastRestart = time.Now()
	s.mu.Unlock()
}

// worker repeats work with a handle of a seat until the siege is over. work returns whether the
// handle can be used again. open, if not nil, prepares a new handle.
func (s *siege) worker(ctx context.Context, at *seat, open func(h *handle) bool, work func(h *handle) bool) {
	s.count(1)
	defer s.count(-1)
	var h *handle
	for s.over.Err() == nil {
		if h == nil {
			h = at.get().handle()
			if open != nil && !open(h) {
				h = nil
				s.rest(ctx, 100*time.Millisecond)
				continue
			}
		}
		if !work(h) {
			h = nil
			s.rest(ctx, 100*time.Millisecond) // a peer without a connection fails at once
		}
	}
}

// count adds n to the number of workers.
func (s *siege) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.working += n
	s.lastWork = time.Now()
}

// quiet returns for how long all workers have ended; 0 before that.
func (s *siege) quiet() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.working > 0 || s.over.Err() == nil {
		return 0
	}
	return time.Since(s.lastWork)
}

// rest waits up to d.
func (s *siege) rest(ctx context.Context, d time.Duration) {
	backoff.Sleep(ctx, time.Duration(s.draw(int(d))))
}

// settled repeats a request of the driver until the members answer.
func settled[T any](ctx context.Context, what string, ask func() (T, error)) (v T) {
	must.Await(ctx, lateTime, what, func() (err error) {
		if v, err = ask(); errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		return err
	})
	return v
}

// losses returns how often the connections of foreign peers were lost.
func (s *siege) losses(ctx context.Context) int {
	s.mu.Lock()
	n := s.lost
	s.mu.Unlock()
	for _, one := range s.seats {
		if one.lang() != Go {
			n += lossesOf(ctx, one)
		}
	}
	return n
}

// lossesOf returns how often the peer's connection was lost, or a high number if the peer hangs.
func lossesOf(ctx context.Context, at *seat) (n int) {
	const unknown = 20
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err := must.Try(func() { n = must.Get(strconv.Atoi(at.get().handle().do(ctx, "losses"))) })
	if err != nil {
		return unknown
	}
	return n
}

// all returns the seats of these languages; without any, all seats.
func (s *siege) all(langs ...string) []*seat {
	return slices.DeleteFunc(slices.Clone(s.seats), func(one *seat) bool {
		return len(langs) > 0 && !slices.Contains(langs, one.lang())
	})
}
