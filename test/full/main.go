// Command full fills servers until they refuse, and says what happens then: docs/quality/full.md.
// It starts gozkd or ZooKeeper, by default three members, each in a memory cgroup of its own; a
// member that dies is started again after a second, as a supervisor would. With -tenants it
// measures how much a tenant notices of another that sends without end. Needs root and Linux.
//
// Exit status: 1 if the experiment could not be carried out, 2 for wrong usage. What the servers do
// is its output, not its status, unless -promise asks for what gozkd promises.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/crowd"
)

func main() { must.Program("full", run) }

func run(ctx context.Context, flags *flag.FlagSet, args []string) {
	var o options
	flags.StringVar(&o.server, "server", "gozkd", "gozkd or zookeeper-3.9")
	flags.IntVar(&o.memory, "memory", 200, "MiB of each member")
	flags.IntVar(&o.members, "members", 3, "how many")
	flags.IntVar(&o.disk, "disk", 400, "MiB of each of the -disks")
	flags.IntVar(&o.disks, "disks", 0, "how many members have a disk of -disk MiB, in memory")
	flags.IntVar(&o.bytes, "bytes", 2000, "data of a znode")
	flags.IntVar(&o.writers, "writers", 64, "how many create at once")
	flags.IntVar(&o.sessions, "sessions", 0, "idle sessions beside the load")
	flags.IntVar(&o.watches, "watches", 0, "watches of the sessions")
	flags.DurationVar(&o.length, "time", time.Minute, "how long is written")
	flags.IntVar(&o.restarts, "restarts", 1, "how often all members are killed and started afterwards")
	flags.BoolVar(&o.tenants, "tenants", false, "do not fill: measure a tenant alone, and beside another that sends without end")
	budget := flags.Int64("budget", 1000, "with -tenants: operations per second of the other; 0: no budget")
	promise := flags.Bool("promise", false, "fail unless gozkd's promises are kept")
	must.Parsed(flags.Parse(args))
	dir := must.Get(os.MkdirTemp("", "gozkd-full-"))
	defer must.Finally(func() error { return os.RemoveAll(dir) })
	p := start(ctx, o, dir)
	defer must.Finally(p.stop)
	var broken error
	err := must.Try(func() {
		if o.tenants {
			broken = tenants(ctx, p, o.writers, *budget, o.length)
			return
		}
		r := experiment(ctx, o, p)
		fmt.Print(r)
		broken = r.broken()
	})
	if broken != nil {
		broken = fmt.Errorf("a promise is broken: %w", broken)
		fmt.Println(broken)
	}
	if *promise {
		err = errors.Join(err, broken)
	}
	if err != nil {
		must.Failf("%w; the members' logs:\n%s", err, p.Log())
	}
}

type options struct {
	server                          string
	memory, members, bytes, writers int
	disk, disks                     int
	sessions, watches, restarts     int
	tenants                         bool
	length                          time.Duration
}

// report is what was seen.
type report struct {
	options
	name         string
	made         int
	errors       map[string]int64 // of creates, by text
	deaths       int64            // of members, while they were filled
	resident     int              // MiB of the largest member at the end of the load
	calm, loaded others           // before the load, and beside it
	after        error            // a create after a third was deleted, without help
	restarted    time.Duration    // the longest from the start of all members after kill -9 to a create and a get
	afterRestart error
	returned     int64 // deaths after such starts, while the sessions come back
	present      int   // sessions with a connection at the end
	lost         int   // of the acknowledged znodes that were not deleted, of a sample of 1,000
}

// broken says which of gozkd's promises are not kept.
func (r report) broken() (err error) {
	fails := func(bad bool, format string, args ...any) {
		if bad {
			err = errors.Join(err, fmt.Errorf(format, args...))
		}
	}
	minority := r.disks > 0 && r.disks*2 <= r.members-1 // its members stop with what is under way there
	for text := range r.errors {
		fails(!minority && !strings.Contains(text, refused), "creates fail for another reason than a full state: %s", text)
	}
	fails(!minority && len(r.errors) == 0, "the state did not become full")
	fails(r.deaths > 0, "%d members died", r.deaths)
	fails(r.returned > 0, "%d members died after a restart", r.returned)
	fails(r.disks == 0 && r.resident*100 < r.memory*mayLeave, "creates are refused at %d of %d MiB", r.resident, r.memory)
	for _, p99 := range [][2]float64{{r.calm.gets.p99(), r.loaded.gets.p99()}, {r.calm.deletes.p99(), r.loaded.deletes.p99()}} {
		fails(p99[1] > max(mayTake, 2*p99[0]), "others wait: p99 %.1f ms, and %.1f ms before", p99[1], p99[0])
	}
	fails(r.after != nil, "no create after a third was deleted: %v", r.after)
	fails(r.afterRestart != nil || r.restarted > mayStart, "a restart takes %v: %v", r.restarted, r.afterRestart)
	fails(r.lost > 0, "%d acknowledged znodes are lost", r.lost)
	return err
}

func (r report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %d members of %d MiB, %d bytes, %d sessions, %d watches, %v; %d disks of %d MiB\n",
		r.name, r.members, r.memory, r.bytes, r.sessions, r.watches, r.length, r.disks, r.disk)
	fmt.Fprintf(&b, "  created %d, largest member %d MiB, %d deaths\n", r.made, r.resident, r.deaths)
	for text, n := range r.errors {
		fmt.Fprintf(&b, "  %d creates failed: %s\n", n, text)
	}
	fmt.Fprintf(&b, "  others, before: %v\n  others: %v\n", r.calm, r.loaded)
	fmt.Fprintf(&b, "  a create after a third was deleted: %s\n", outcome(r.after))
	fmt.Fprintf(&b, "  kill -9 of all, %d times, same memory: %s after %.1f s; %d deaths; ",
		r.restarts, outcome(r.afterRestart), r.restarted.Seconds(), r.returned)
	fmt.Fprintf(&b, "%d sessions connected; %d of a sample lost\n", r.present, r.lost)
	return b.String()
}

func outcome(err error) string {
	if err != nil {
		return "fails: " + err.Error()
	}
	return "succeeds"
}

// filled are the znodes that the writers have made.
type filled struct {
	mu   sync.Mutex // guards the rest
	keys []string
	errs map[string]int64
}

// What is promised.
const (
	refused  = "(-125)"         // in the error of a create
	mayTake  = 50               // ms: p99 of others, or twice the value before
	mayStart = 10 * time.Second // until killed members serve
	mayLeave = 70               // percent of the memory are used at least when the state is full
)

// Bounds of what is not the load.
const (
	requestLimit = 10 * time.Second // of one request
	healLimit    = 30 * time.Second // until a create must succeed without help
	startLimit   = time.Minute      // until killed members must serve
	returnTime   = 20 * time.Second // after they serve, for the sessions to come back
	paced        = 5 * time.Millisecond
	calmTime     = 5 * time.Second
	calmVictims  = 500  // znodes that others delete before the load
	victims      = 2000 // znodes that others delete during the load
	sample       = 1000
)

func experiment(ctx context.Context, o options, p *peer) report {
	r := report{options: o, name: p.Name()}
	data := make([]byte, o.bytes)
	other, deleter := p.connect(ctx), p.connect(ctx)
	must.Do(other.create(ctx, "/watched", nil))
	must.Do(other.create(ctx, "/full", nil))
	for i := range calmVictims + victims {
		must.Do(deleter.create(ctx, victim(i), nil))
	}
	idling, release := context.WithCancel(ctx)
	idle := crowd.Open(idling, p.Addrs(), o.sessions, o.watches/max(o.sessions, 1), true)
	defer idle.Wait()
	defer release()
	idle.Await(ctx)
	deaths := p.supervise()
	defer deaths()
	r.calm.measure(ctx, other, deleter, 0, calmVictims, calmTime)

	l := &filled{errs: make(map[string]int64)}
	until, cancel := context.WithTimeout(ctx, o.length)
	defer cancel()
	var running sync.WaitGroup // until the time has passed
	l.run(until, p, o.writers, data, &running)
	r.loaded.measure(until, other, deleter, calmVictims, victims, o.length)
	running.Wait()
	r.resident = p.resident()
	r.made, r.errors = len(l.keys), l.errs

	third := len(l.keys) / 3
	for _, key := range l.keys[:third] {
		// Whatever cannot be deleted stays; the create below shows whether there is room.
		c, done := context.WithTimeout(ctx, requestLimit)
		err := other.delete(c, key)
		done()
		if err != nil {
			break
		}
	}
	r.after = try(ctx, healLimit, func(c context.Context) error { return other.create(c, "/again", data) })
	r.deaths = deaths()
	for range o.restarts {
		r.restart(ctx, p, other, data)
	}
	r.present, _ = idle.Count()
	kept := l.keys[third:]
	for i := range min(sample, len(kept)) {
		key := kept[i*len(kept)/sample%len(kept)]
		if r.afterRestart == nil && try(ctx, requestLimit, func(c context.Context) error { return other.get(c, key) }) != nil {
			r.lost++
		}
	}
	return r
}

// restart kills all members, starts them, and waits for the sessions to come back.
func (r *report) restart(ctx context.Context, p *peer, other znodes, data []byte) {
	began := time.Now()
	p.restart()
	deaths := p.supervise()
	defer func() { r.returned += deaths() }()
	err := try(ctx, startLimit, func(c context.Context) error {
		err := other.create(c, fmt.Sprintf("/restarted-%d", time.Now().UnixNano()), data)
		return errors.Join(err, other.get(c, "/watched"))
	})
	r.restarted, r.afterRestart = max(r.restarted, time.Since(began)), errors.Join(r.afterRestart, err)
	if r.sessions > 0 {
		time.Sleep(returnTime)
	}
}

// try repeats work until it succeeds, and returns the last error after limit.
func try(ctx context.Context, limit time.Duration, work func(context.Context) error) error {
	deadline := time.Now().Add(limit)
	for {
		c, done := context.WithTimeout(ctx, min(requestLimit, max(time.Until(deadline), time.Second)))
		err := work(c)
		done()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func victim(i int) string { return fmt.Sprintf("/victim-%d", i) }

// others is how long requests of other clients than the writers take.
type others struct{ gets, deletes times }

// measure reads a znode and deletes that many victims, from the first on, for that time.
func (o *others) measure(ctx context.Context, reader, deleter znodes, first, n int, length time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	var running sync.WaitGroup
	running.Go(func() { // ends with ctx
		pace(ctx, &o.gets, paced, func(c context.Context, _ int) error { return reader.get(c, "/watched") })
	})
	pace(ctx, &o.deletes, length/time.Duration(n), func(c context.Context, i int) error {
		return deleter.delete(c, victim(first+i))
	})
	running.Wait()
}

func (o others) String() string { return fmt.Sprintf("gets: %v; deletes: %v", o.gets, o.deletes) }

// pace calls request at most once per interval until ctx ends, and records how long each success
// takes: from its turn on, which waits for the call before it.
func pace(ctx context.Context, took *times, interval time.Duration, request func(context.Context, int) error) {
	turn := time.Now()
	for i := 0; ctx.Err() == nil; i++ {
		c, done := context.WithTimeout(ctx, requestLimit)
		if err := request(c, i); err == nil || errors.Is(c.Err(), context.DeadlineExceeded) && ctx.Err() == nil {
			*took = append(*took, time.Since(turn))
		}
		done()
		turn = turn.Add(interval)
		if wait := time.Until(turn); wait > 0 {
			time.Sleep(wait)
		} else if wait < -requestLimit {
			turn = time.Now() // a standstill is counted once
		}
	}
}

// run lets writers create znodes below /full, each with its own connection, until ctx ends. All
// have sessions before the first one writes: a full state may refuse sessions.
func (l *filled) run(ctx context.Context, p *peer, writers int, data []byte, running *sync.WaitGroup) {
	connected := make([]znodes, writers)
	for i := range connected {
		connected[i] = p.connect(ctx)
	}
	for i, s := range connected {
		running.Go(func() { l.write(ctx, s, fmt.Sprintf("/full/%d", i), data) }) // ends with ctx
	}
}

// write creates znodes whose keys begin with prefix.
func (l *filled) write(ctx context.Context, s znodes, prefix string, data []byte) {
	for n := 0; ctx.Err() == nil; n++ {
		key := fmt.Sprintf("%s-%d", prefix, n)
		c, done := context.WithTimeout(ctx, requestLimit)
		err := s.create(c, key, data)
		done()
		if ctx.Err() != nil {
			return
		}
		l.mu.Lock()
		if err == nil {
			l.keys = append(l.keys, key)
		} else {
			l.errs[kind(err, key)]++
		}
		l.mu.Unlock()
		if err != nil {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// times is how long requests took.
type times []time.Duration

// quantile returns the milliseconds below which the part q lies, or 0 of none.
func (t times) quantile(q float64) float64 {
	if len(t) == 0 {
		return 0
	}
	return float64(slices.Sorted(slices.Values(t))[int(q*float64(len(t)-1))].Microseconds()) / 1000
}

func (t times) p99() float64 { return t.quantile(.99) }

func (t times) String() string {
	return fmt.Sprintf("%d, p50 %.2f ms, p99 %.2f ms", len(t), t.quantile(.5), t.p99())
}

// kind is the text of an error without the key.
func kind(err error, key string) string {
	text, _, _ := strings.Cut(strings.ReplaceAll(err.Error(), key, "/…"), "\n")
	return text
}
