package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// plan is one run. Its seed decides all of it, and all further choices.
type plan struct {
	seed      uint64
	members   int // that vote; 3 or 5
	observers int
	snapCount int
	pace      time.Duration
	length    time.Duration // faults begin until then
	steps     []step
	modes     modes
	// standstills: some of the faults are, and members keep few entries.
	standstills bool
}

// modes are options of all servers.
type modes struct {
	local    bool // sessions are local until they have an ephemeral znode
	readOnly bool // servers without a leader go on in read-only mode
	relays   bool // observers follow followers
	secret   bool // members prove to each other that they know a secret
	reserve  bool // the reserve of the disks is configured, so each disk decides
}

func (m modes) peerSecret() []byte {
	if !m.secret {
		return nil
	}
	return []byte("a secret of the members")
}

// drawModes draws modes. They do not change the rest of the plan.
func drawModes(seed uint64) modes {
	rng := rand.New(rand.NewPCG(seed, 2))
	return modes{local: rng.IntN(4) == 0, readOnly: rng.IntN(4) == 0, relays: rng.IntN(2) == 0, secret: rng.IntN(2) == 0, reserve: rng.IntN(2) == 0}
}

// step is a fault, or the beginning of a time of rest.
type step struct {
	gap   time.Duration // after the previous step began
	rest  time.Duration // not 0: how long the clients rest
	idle  bool          // the clients rest without a request
	fault *fault
	who   int           // a member, counted from the leader
	other int           // a further choice
	lasts time.Duration // at most
}

// drawPlan draws a plan with steps until the given time.
func drawPlan(seed uint64, length time.Duration, kinds []*fault) *plan {
	rng := rand.New(rand.NewPCG(seed, 0))
	p := &plan{
		seed: seed, length: length, members: pick(rng, 3, 3, 3, 5), observers: pick(rng, 0, 0, 0, 1), snapCount: pick(rng, 30, 200, 1000, 100_000),
		pace: pick(rng, 300*time.Millisecond, 2*time.Second, 2*time.Second, 5*time.Second, 5*time.Second, 5*time.Second, 10*time.Second, 10*time.Second),
	}
	if len(kinds) > 0 {
		p.drawFaults(rng, length, kinds)
	}
	return p
}

// drawFaults appends faults for a time, and returns how long they take to begin.
func (p *plan) drawFaults(rng *rand.Rand, length time.Duration, kinds []*fault) (at time.Duration) {
	weights := 0
	for _, f := range kinds {
		weights += f.weight
	}
	for at < length {
		s := step{
			gap:   between(rng, 0, pick(rng, 3*time.Second, 15*time.Second, 40*time.Second)),
			who:   pick(rng, 0, 0, 1, 2, 3, 4, 5), // 0: the leader
			other: rng.IntN(1 << 20),
			lasts: between(rng, 0, pick(rng, 500*time.Millisecond, 3*time.Second, 12*time.Second, time.Minute)),
		}
		n := rng.IntN(weights)
		for _, f := range kinds {
			if n -= f.weight; n < 0 {
				s.fault = f
				break
			}
		}
		at += s.gap
		p.steps = append(p.steps, s)
	}
	return at
}

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

func between(rng *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(rng.Int64N(int64(most-least)+1)).Round(time.Millisecond)
}

func (p *plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, %d voters, %d observers, a checkpoint each %d requests, pace %v, modes %+v\n", p.seed, p.members, p.observers, p.snapCount, p.pace, p.modes)
	at := time.Duration(0)
	for _, s := range p.steps {
		at += s.gap
		if s.fault == nil {
			fmt.Fprintf(&b, "%10v: rest for %v, idle: %v\n", at, s.rest, s.idle)
			continue
		}
		fmt.Fprintf(&b, "%10v: %s, leader+%d, other %d, for %v\n", at, s.fault.name, s.who, s.other, s.lasts)
	}
	return b.String()
}
