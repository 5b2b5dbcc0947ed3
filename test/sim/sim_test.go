package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/proto"
	jepsenlite "github.com/gozkd/gozkd/test/jepsen-lite"
)

var (
	seedFlag   = flag.Uint64("sim.seed", 1, "seed of the first run")
	hoursFlag  = flag.Float64("sim.hours", -1, "runs follow until this many hours were simulated; negative: one short run")
	lengthFlag = flag.Duration("sim.length", 5*time.Minute, "virtual time in which faults begin, per run")
	faultsFlag = flag.String("sim.faults", "", "kinds of faults, separated by commas; empty: all")
	plainFlag  = flag.Bool("sim.plain", false, "no modes of the servers and no changes of the members, as before there were any")
	calmFlag   = flag.Uint64("sim.calm", 8, "runs whose seed is a multiple of this have long times of rest, and take 6 to 24 times -sim.length; 0: none")
	dirFlag    = flag.String("sim.dir", "", "where log and history of a failed run go; empty: nowhere")
	traceFlag  = flag.Bool("sim.trace", false, "print a hash of each run")
	twiceFlag  = flag.Bool("sim.twice", false, "repeat each run with other addresses in memory, and compare what clients saw; with -sim.hours")
	overlay    = flag.String("sim.overlay", "", "what test/sim/overlay printed before this was built; empty: runs are not repeatable")
	ballast    = flag.Int("sim.ballast", 0, "allocate so many objects of each size up to 2 KiB first, which moves all others")
	jobsFlag   = flag.Int("sim.jobs", runtime.NumCPU(), "how many runs at once, each in a process on one processor; with -sim.hours")
	resultFlag = flag.String("sim.result", "", "file for the result of a single run, which another process adds up")
)

// TestSim runs ensembles through plans. A failure prints the plan; make simservers repeats it
// exactly, if the overlay fits the release of Go.
func TestSim(t *testing.T) {
	hours, length := *hoursFlag, *lengthFlag
	if hours < 0 {
		hours, length = exhaustive.Or(0.0, 0.5), exhaustive.Or(20*time.Second, length)
	}
	defer runtime.KeepAlive(allocate(*ballast))
	if *resultFlag != "" {
		signal.Ignore(os.Interrupt) // the process that adds up the results waits for this run
	}
	var sum result
	kinds := chosenFaults(t)
	seed := *seedFlag
	if *hoursFlag > 0 {
		seed += runMany(t, seed, hours, &sum)
	}
	for ; *hoursFlag <= 0 && (seed == *seedFlag || sum.Virtual.Hours() < hours); seed++ {
		possible := kinds
		if *plainFlag || seed%4 == 0 { // as before the members changed
			possible = slices.DeleteFunc(slices.Clone(kinds), func(f *fault) bool { return f.reconfigures })
		}
		standstills := *faultsFlag != "" || seed%5 == 1 || seed%5 == 3 // the others are the runs that there were before
		if !standstills || *plainFlag {
			possible = slices.DeleteFunc(slices.Clone(possible), func(f *fault) bool { return f.awaited })
		}
		p := drawPlan(seed, length, possible)
		if calm := *calmFlag; calm > 0 && seed%calm == 0 {
			p = drawCalmPlan(seed, length, possible)
		}
		p.standstills = slices.ContainsFunc(possible, func(f *fault) bool { return f.awaited })
		if !*plainFlag {
			p.modes = drawModes(seed)
			p.modes.secret = p.modes.secret || p.standstills && seed%3 > 0 // then servers may come that no reconfig has named
		}
		if *hoursFlag < 0 && !exhaustive.Enabled() {
			p.pace = 10 * time.Second // for the race detector
		}
		cpu := cpuTime()
		r := runPlan(t, p)
		r.CPU = cpuTime() - cpu
		sum.add(r)
		sum.Trace = r.Trace
		if *traceFlag {
			t.Logf("seed %d: trace %016x, %d records, %v", seed, r.Trace, r.Records, r.Virtual)
		}
		if len(r.problems) > 0 {
			t.Errorf("%v\n%s\nagain: make simservers HOURS=0 SEED=%d", p, strings.Join(r.problems, "\n"), seed)
		}
	}
	for _, f := range kinds {
		enough := 450
		if f.awaited { // in two of five runs
			enough = 4000
		}
		if sum.faults() > enough && (sum.Faults[f.name] == 0 || f.reconfigures && !sum.carriedOut(f)) {
			t.Errorf("no fault of the kind %q was possible", f.name)
		}
	}
	if sum.Rested > 2*time.Hour && sum.Expired == 0 {
		t.Error("no session expired at rest")
	}
	if moves := sum.Changed[clientPortMoved+": "+voter.String()]; moves > 20 && sum.Elsewhere == 0 {
		t.Errorf("no client was connected to a member whose port for clients had moved, in %d moves", moves)
	}
	if sum.Virtual > 2*time.Hour && (sum.Watched == 0 || sum.CaughtUp == 0) {
		t.Errorf("watchers compared %d changes, and caught up %d times", sum.Watched, sum.CaughtUp)
	}
	if *resultFlag != "" {
		b, err := json.Marshal(sum)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(*resultFlag, b, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Logf("%d runs, %.2f simulated hours, of rest %.2f, in %v of processor time: %.0f simulated seconds per second; %d records, %d sessions lost, %d expired at rest; "+
		"watchers compared %d changes, caught up %d times, and not %d times\n"+
		"longest time without a write while a majority was well: %v\n%d faults: %s\n%.2f hours with changes of the members: %s",
		seed-*seedFlag, sum.Virtual.Hours(), sum.Rested.Hours(), sum.CPU.Round(time.Millisecond), sum.Virtual.Seconds()/sum.CPU.Seconds(), sum.Records, sum.Lost, sum.Expired,
		sum.Watched, sum.CaughtUp, sum.Missed, sum.Longest, sum.faults(), listOf(sum.Faults), sum.Changing.Hours(), listOf(sum.Changed))
}

func allocate(n int) (objects [][]*byte) {
	for size := 1; size < 2<<10/8; size += 1 + size/8 {
		for range n {
			objects = append(objects, make([]*byte, size))
		}
	}
	return objects
}

// runMany runs plans from seed on, several at once, until they add up to the hours or an interrupt
// asks for the sum so far. It returns how many it ran.
func runMany(t *testing.T, seed uint64, hours float64, sum *result) (n uint64) {
	t.Helper()
	ctx, cancel := signal.NotifyContext(t.Context(), os.Interrupt)
	defer cancel()
	more := func() bool { return sum.Virtual.Hours() < hours && ctx.Err() == nil }
	results := make(chan result)
	told := time.Now()
	for running := 0; running > 0 || more(); {
		if running < max(1, *jobsFlag) && more() {
			go func(seed uint64) { results <- runOnceOrTwice(t, seed) }(seed + n) // ends with its run; its result is awaited below
			n++
			running++
			continue
		}
		sum.add(<-results)
		running--
		if time.Since(told) > time.Minute {
			told = time.Now()
			t.Logf("%d runs, %.1f of %.0f simulated hours, %d faults", n-uint64(running), sum.Virtual.Hours(), hours, sum.faults())
		}
	}
	return n
}

func runOnceOrTwice(t *testing.T, seed uint64) result {
	r := runApart(t, seed)
	if *twiceFlag && *overlay == "" {
		t.Log("runs are not compared: without the overlay they differ")
	} else if *twiceFlag {
		again := runApart(t, seed, "-sim.ballast=100")
		if again.Trace != r.Trace {
			t.Errorf("seed %d: clients saw %016x, and %016x in a repetition", seed, r.Trace, again.Trace)
		}
	}
	return r
}

// runApart runs a plan in a process of its own, with more flags: earlier runs change where objects
// are in memory, on which the order of some maps depends, so a run after others might not be the
// same run.
func runApart(t *testing.T, seed uint64, flags ...string) (r result) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "result")
	run := exec.Command(os.Args[0], "-test.run=^TestSim$", "-test.v", "-test.timeout=0", "-test.cpu=1", "-sim.hours=0", "-sim.result="+file,
		fmt.Sprintf("-sim.seed=%d", seed), fmt.Sprintf("-sim.length=%v", *lengthFlag), "-sim.faults="+*faultsFlag, "-sim.dir="+*dirFlag,
		fmt.Sprintf("-sim.trace=%v", *traceFlag || *twiceFlag), fmt.Sprintf("-sim.plain=%v", *plainFlag), fmt.Sprintf("-sim.calm=%v", *calmFlag))
	run.Args = append(run.Args, flags...)
	out, hung, err := runUnlessHung(run, hangInterval, processorTicks)
	if hung {
		t.Errorf("seed %d hung: it used no processor time for %v, and was ended", seed, hangLooks*hangInterval)
	}
	if err != nil {
		t.Errorf("seed %d: %v\n%s", seed, err, out)
	} else if *traceFlag {
		t.Logf("%s", out)
	}
	b, err := os.ReadFile(file)
	if err != nil { // it panicked, and says so above
		t.Errorf("seed %d: %v", seed, err)
		return r
	}
	if err := json.Unmarshal(b, &r); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
	return r
}

func chosenFaults(t *testing.T) (kinds []*fault) {
	wanted := strings.Split(*faultsFlag, ",")
	for _, f := range faults() {
		if slices.Contains(wanted, f.name) || *faultsFlag == "" {
			kinds = append(kinds, f)
		}
	}
	if len(kinds) == 0 && *faultsFlag != "none" {
		t.Fatalf("-sim.faults=%q names no fault", *faultsFlag)
	}
	return kinds
}

// result is what one run shows, or several.
type result struct {
	Virtual time.Duration
	CPU     time.Duration
	Records int
	Lost    int           // sessions that their clients could not continue
	Longest time.Duration // without a write while a majority was well
	Faults  map[string]int
	Changed map[string]int // changes of the members that were carried out
	// Part of Virtual, in runs with such changes.
	Changing time.Duration
	Rested   time.Duration // part of Virtual in which the clients rested
	Expired  int           // sessions of movers, at rest
	// Changes that watchers compared with their events, and how often they returned with and
	// without all of these.
	Watched, CaughtUp, Missed int64
	// Connections to members whose port for clients had moved.
	Elsewhere int64
	Trace     uint64 // of a single run, if wanted: hash of the history

	problems []string
}

func (r *result) add(o result) {
	r.Virtual += o.Virtual
	r.CPU += o.CPU
	r.Records += o.Records
	r.Lost += o.Lost
	r.Longest = max(r.Longest, o.Longest)
	r.Rested += o.Rested
	r.Expired += o.Expired
	r.Watched += o.Watched
	r.CaughtUp += o.CaughtUp
	r.Missed += o.Missed
	r.Elsewhere += o.Elsewhere
	r.Changing += o.Changing
	r.Faults, r.Changed = sumOf(r.Faults, o.Faults), sumOf(r.Changed, o.Changed)
}

func sumOf(a, b map[string]int) map[string]int {
	sum := map[string]int{}
	for _, counts := range []map[string]int{a, b} {
		for k, n := range counts {
			sum[k] += n
		}
	}
	return sum
}

// carriedOut reports whether the members were changed by faults of a kind.
func (r *result) carriedOut(f *fault) bool {
	for k := range r.Changed {
		if strings.HasPrefix(k, f.name+":") {
			return true
		}
	}
	return false
}

func (r *result) faults() (n int) {
	for _, m := range r.Faults {
		n += m
	}
	return n
}

func listOf(counts map[string]int) string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, fmt.Sprintf("%s %d", k, counts[k]))
	}
	return strings.Join(all, ", ")
}

// sessionTimeout leaves a client the time to find another member: go-zookeeper waits for two thirds
// of it for a silent one.
const (
	sessionTimeout = 30 * time.Second
	shortTimeout   = 3 * tick
)

// runPlan runs a plan, and checks the history.
func runPlan(t *testing.T, p *plan) result {
	cryptotest.SetGlobalRandom(t, p.seed) // raft draws its timeouts from there
	var log bytes.Buffer
	var history []*jepsenlite.Record
	r := result{}
	synctest.Test(t, func(*testing.T) {
		w := newWorld(p, &log)
		r.Faults = w.live()
		history = w.rec.Take()
		if r.Changed = w.reconfigured; len(r.Changed) > 0 {
			r.Changing = w.now()
		}
		r.Virtual, r.Longest, r.problems = w.now(), w.longest, w.problems
		r.Rested, r.Expired = w.rested, int(w.expired.Load())
		r.Watched, r.CaughtUp, r.Missed = w.watched.Load(), w.caughtUp.Load(), w.missed.Load()
		r.Elsewhere = w.elsewhere.Load()
	})
	if p.modes.local {
		history = withoutLocalLosses(history)
	}
	r.Records = len(history)
	lost := sessionsLost(history)
	r.Lost, r.problems = len(lost), append(r.problems, lost...)
	for _, a := range append(jepsenlite.Check(history), jepsenlite.CheckRegisters(history, "")...) {
		r.problems = append(r.problems, a.String())
	}
	if *traceFlag {
		r.Trace = traceOf(history)
	}
	if (len(r.problems) > 0 || *traceFlag) && *dirFlag != "" {
		where := filepath.Join(*dirFlag, fmt.Sprintf("seed-%d", p.seed))
		if err := os.MkdirAll(where, 0o755); err != nil {
			t.Error(err)
		}
		if err := os.WriteFile(filepath.Join(where, "log"), log.Bytes(), 0o644); err != nil {
			t.Error(err)
		}
		if err := jepsenlite.WriteHistory(filepath.Join(where, "history.jsonl"), history); err != nil {
			t.Error(err)
		}
	}
	return r
}

// live is the life of the ensemble: it forms, works under faults, recovers, and ends.
func (w *world) live() map[string]int {
	for _, m := range w.inside() {
		m.start()
	}
	n := &nemesis{w: w, counts: map[string]int{}}
	defer w.endAll()
	const recovery = 2 * time.Minute
	if !w.await(w.whole, recovery) {
		w.complain("the ensemble does not form")
		return n.counts
	}
	if !w.await(w.prepared, recovery) {
		w.complain("the first znodes are not created")
		return n.counts
	}
	endWatch := sync.OnceFunc(w.watchOver())
	defer endWatch()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ready, cancelReady := context.WithTimeout(ctx, recovery)
	defer cancelReady()
	traffic, err := jepsenlite.StartTraffic(ctx, ready, jepsenlite.TrafficConfig{
		Recorder: w.rec, Addresses: w.addresses(), Root: "/sim", Timeout: sessionTimeout, Short: shortTimeout, Pace: w.plan.pace, Rand: w.rand, Rest: w.rest,
	})
	if err != nil {
		w.complain("the clients do not begin: %v", err)
		return n.counts
	}
	n.run()
	whole := w.await(w.whole, recovery)
	if !whole {
		w.complain("the ensemble does not recover in %v", recovery)
	} else {
		w.judgeGrowth()
	}
	time.Sleep(10 * time.Second)
	if err := traffic.End(whole); err != nil {
		w.complain("%v", err)
	}
	if whole {
		if _, err := traffic.Dump(); err != nil {
			w.complain("%v", err)
		}
		endWatch()
		w.sameState()
	}
	return n.counts
}

// rand returns the source of decisions of a client.
func (w *world) rand(client string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(client)) // does not fail
	return rand.New(rand.NewPCG(w.plan.seed, h.Sum64()))
}

// endAll ends all servers.
func (w *world) endAll() {
	for _, r := range w.reconfigs {
		r.cancel()
	}
	w.requests.Wait()
	for _, m := range w.members {
		m.disk.change(func(f *diskFaults) { *f = diskFaults{} })
		m.stop()
	}
	for _, m := range w.members {
		m.ending.Wait()
	}
}

// sessionsLost finds sessions that were lost although their clients tried again and again: no
// client is ever cut off from all members, and while no write can be acknowledged no session may
// expire. The sessions of the member load are too short for that.
func sessionsLost(history []*jepsenlite.Record) (problems []string) {
	for _, r := range history {
		if r.Kind == jepsenlite.KindOpen && r.Refused && !strings.HasPrefix(r.Client, "member-member") {
			problems = append(problems, fmt.Sprintf("at %v: %s lost its session", r.Return, r.Client))
		}
	}
	return problems
}

// withoutLocalLosses leaves out that a session was refused which never had an ephemeral znode, as
// far as its client knows: such a session may be local, and ends with its server.
func withoutLocalLosses(history []*jepsenlite.Record) []*jepsenlite.Record {
	global, last := map[proto.SessionID]bool{}, map[string]proto.SessionID{} // a refusal does not name the session
	return slices.DeleteFunc(history, func(r *jepsenlite.Record) bool {
		if r.Kind == jepsenlite.KindOpen && !r.Refused {
			last[r.Client] = r.Session
		}
		for _, p := range r.Parts {
			if r.OK() && p.Made != "" && p.Mode.Ephemeral() {
				global[r.Session] = true
			}
		}
		return r.Kind == jepsenlite.KindOpen && r.Refused && !global[last[r.Client]]
	})
}

// traceOf returns a hash of all that the clients saw, and when.
func traceOf(history []*jepsenlite.Record) uint64 {
	h := fnv.New64a()
	for _, r := range history {
		_, _ = fmt.Fprintln(h, r.Kind, r.Conn, r.Client, r.Member, r.Call, r.Return, r.Xid, r.Op, r.Err, r.Zxid, r.Event, r.Path()) // does not fail
	}
	return h.Sum64()
}
