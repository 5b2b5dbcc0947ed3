// Package guesses bounds how often strangers guess passwords and tokens.
package guesses

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/internal/fair"
)

// MaxText bounds a name and a password in bytes, because the names of guesses are remembered.
const MaxText = 1 << 10

// Bounds bounds failed logins: per network, per user, and in all. The failures of others do not
// lock out a user with a recent login from the same network. Nor do failures with other names lock
// out a caller there whose password was right in the last hour. So that this exception tells nobody
// which password is right, guesses for that user from that network have a bound of their own.
//
// A guess takes its tokens before the password is compared, and a right one gives them back.
// Otherwise guesses that are compared at the same time would all use the same token.
type Bounds struct {
	hosts, users, all, known *fair.Rate
	right                    *fair.Rate // a proof that must wait was right within the last hour
	pairs, near              *fair.Rate // guesses of a user who logged in from a network; of all of them
	salt                     [32]byte   // of proofs
	now                      func() time.Time

	refused, allRefused *fair.Rate // refusals that are recorded
	unrecorded          atomic.Int64

	mu        sync.Mutex
	compared  sync.Cond      // after each comparison; its lock is mu
	comparing map[string]int // comparisons under way, by network
}

// maxGuessers is how many networks, users and pairs of both are remembered.
const maxGuessers = 4096

// New returns Bounds without any guess. Every time is of the clock now.
func New(now func() time.Time) *Bounds {
	g := &Bounds{now: now, comparing: make(map[string]int)}
	g.hosts, g.all = networks()
	g.refused, g.allRefused = networks()
	g.users = fair.NewRate(5*time.Second, 20, maxGuessers)
	g.right = fair.NewRate(time.Hour, 1, maxGuessers)
	g.pairs, g.near = fair.NewRate(5*time.Second, 20, maxGuessers), fair.NewRate(5*time.Second, 40, maxGuessers)
	_, _ = rand.Read(g.salt[:])
	g.known = fair.NewRate(30*24*time.Hour, 1, maxGuessers) // a pair that must wait has logged in
	g.compared.L = &g.mu
	return g
}

// networks returns the bound of each network, and that of all networks together.
func networks() (each, all *fair.Rate) {
	return fair.NewRate(10*time.Second, 10, maxGuessers), fair.NewRate(time.Second/20, 200, 1)
}

// proof is a key for a name and a password from a network, from which nobody gets them.
func (g *Bounds) proof(host, user, password string) string {
	sum := sha256.Sum256(append(g.salt[:], pair(host, user)+"\x00"+password...))
	return string(sum[:])
}

// Begin returns a function to call after the comparison of a password, or false and how long to
// wait. It waits for guesses of the same network that may be right and hold its tokens.
func (g *Bounds) Begin(host, user, password string) (end func(right bool), wait time.Duration, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	proof, guess := g.proof(host, user, password), func() {}
	from, who, spent := fair.Network(host), pair(host, user), time.Duration(1)
	if g.known.Wait(who, g.now()) > 0 { // made-up names do not push others out of pairs
		if spent, _ = g.near.Take(from, g.now()); spent == 0 {
			spent, _ = g.pairs.Take(who, g.now())
		}
	}
	if spent == 0 {
		guess = func() {
			g.pairs.Give(who, g.now())
			g.near.Give(from, g.now())
		}
		if g.right.Wait(proof, g.now()) > 0 {
			guess()
			return func(right bool) {
				if !right { // the password was changed
					g.right.Give(proof, g.now())
				}
			}, 0, true
		}
	}
	for {
		giveBack, wait, ok := g.take(host, user)
		if !ok {
			if g.comparing[from] == 0 {
				return nil, wait, false
			}
			g.compared.Wait()
			continue
		}
		g.comparing[from]++
		return func(right bool) {
			g.mu.Lock()
			defer g.mu.Unlock()
			if right {
				giveBack()
				guess()
				g.right.Take(proof, g.now())
				g.known.Take(who, g.now())
			}
			if g.comparing[from]--; g.comparing[from] == 0 {
				delete(g.comparing, from)
			}
			g.compared.Broadcast()
		}, 0, true
	}
}

// take takes the tokens of a guess, or none. A user known in the network needs only the network's.
func (g *Bounds) take(host, user string) (giveBack func(), wait time.Duration, ok bool) {
	now := g.now()
	unknown := g.known.Wait(pair(host, user), now) == 0
	var taken []func()
	giveBack = func() {
		for _, give := range taken {
			give()
		}
	}
	for _, b := range []struct {
		rate   *fair.Rate
		key    string
		needed bool
	}{{g.hosts, fair.Network(host), true}, {g.users, user, unknown}, {g.all, "", unknown}} {
		switch wait, _ := b.rate.Take(b.key, now); {
		case wait == 0:
			taken = append(taken, func() { b.rate.Give(b.key, g.now()) })
		case b.needed:
			giveBack()
			return nil, wait, false
		}
	}
	return giveBack, 0, true
}

// Record reports whether to record the refusal of a caller without a right, in a log that strangers
// must not fill. unrecorded is how many refusals were not recorded since the last one that was.
func (g *Bounds) Record(host string) (unrecorded int64, ok bool) {
	wait, _ := g.refused.Take(fair.Network(host), g.now())
	if wait == 0 {
		wait, _ = g.allRefused.Take("", g.now())
	}
	if wait > 0 {
		g.unrecorded.Add(1)
		return 0, false
	}
	return g.unrecorded.Swap(0), true
}

func pair(host, user string) string { return fair.Network(host) + " " + user }
