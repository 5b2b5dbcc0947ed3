package kill

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
)

// options make checkpoints and new log segments as frequent as they can be.
var options = []string{"snapCount=200", "preAllocSize=64", "tickTime=500", "maxSessionTimeout=60000", "globalOutstandingLimit=400"}

// TestKill kills the server at a random moment of each round: under load, while a checkpoint is
// written, or when the clients are reconnecting. Before the next round's load the server is often
// killed once or twice more while it starts.
func TestKill(t *testing.T) {
	rounds, seed := number(t, "KILLS", exhaustive.Or[uint64](3, 5)), number(t, "KILL_SEED", rand.Uint64())
	t.Logf("KILLS=%d KILL_SEED=%d", rounds, seed)
	begun := time.Now()
	r := newRig(t, newServer(t, build(t), options...), seed, 4, 2)
	kills := map[string]int{}
	var restarts []time.Duration
	for range rounds {
		lost, rest := r.load(t)
		switch n := r.rng.IntN(10); {
		case n < 2:
			pause(time.Duration(r.rng.IntN(20)) * time.Millisecond)
			kills["while the clients came back"]++
		case n < 6 && pause(time.Duration(50+r.rng.IntN(150))*time.Millisecond) && r.untilCheckpoint():
			pause(time.Duration(r.rng.IntN(3000)) * time.Microsecond)
			kills["around a checkpoint"]++
		default:
			pause(time.Duration(50+r.rng.IntN(450)) * time.Millisecond)
			kills["at any moment of the load"]++
		}
		r.kill()
		lost()
		for range max(0, r.rng.IntN(4)-1) {
			must(t, r.start())
			pause(time.Duration(r.rng.IntN(30_000)) * time.Microsecond)
			r.kill()
			kills["during the start"]++
		}
		must(t, r.start())
		c, took, err := r.ready(t.Context())
		if err != nil {
			r.verdict(t)
			t.Fatal(err)
		}
		restarts = append(restarts, took)
		rest()
		must(t, c.end())
		// Sometimes the next load and the next kill follow at once.
		if r.rng.IntN(4) > 0 {
			r.check(t)
			r.verdict(t)
		}
	}
	r.check(t)
	r.verdict(t)
	if err := r.stop(); err != nil {
		t.Errorf("a clean stop ended with %v", err)
	}
	must(t, r.start())
	c, _, err := r.ready(t.Context())
	must(t, err)
	r.check(t)
	r.expire(t, c)
	must(t, c.end())
	r.verdict(t)

	total := 0
	for _, how := range slices.Sorted(maps.Keys(kills)) {
		t.Logf("%-34s %7d", "killed "+how, kills[how])
		total += kills[how]
	}
	for _, what := range []string{"sessions taken up again", "acknowledged", "of these by go-zookeeper", "without an answer", "found without an answer", "reads and refusals"} {
		t.Logf("%-34s %7d", what, r.ledger.counts[what])
	}
	slices.Sort(restarts)
	t.Logf("%d kills in %v, broken promises: %d, znodes at the end: %d", total, time.Since(begun).Round(time.Millisecond), len(r.ledger.faults), len(r.record.live))
	t.Logf("exec to the first answer after a kill: median %v, slowest %v", restarts[len(restarts)/2], restarts[len(restarts)-1])
	if r.ledger.counts["acknowledged"] < 100*int(rounds) || r.ledger.counts["of these by go-zookeeper"] < int(rounds) || r.ledger.counts["without an answer"] < int(rounds) {
		t.Error("that was no load")
	}
}

// expire waits until the abandoned sessions have expired, with their ephemerals.
func (r *rig) expire(t *testing.T, c *client) {
	t.Helper()
	for late := time.Now().Add(patience); ; pause(50 * time.Millisecond) {
		left, err := checkVisitors(c, r.ledger, r.visitors)
		must(t, err)
		if left == 0 {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("%d ephemerals of sessions that nobody holds are still there", left)
		}
	}
}

// pause lets the load continue. It returns true.
func pause(d time.Duration) bool {
	<-time.After(d)
	return true
}

// number reads a whole number from the environment.
func number(t *testing.T, name string, def uint64) uint64 {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return def
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", name, err))
	}
	return n
}
