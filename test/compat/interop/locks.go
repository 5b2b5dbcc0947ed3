package interop

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/cases"
)

// The naming schemes of lock znodes. They prefix the verbs, and decide who can share a lock.
const (
	curatorNames = ""       // Curator's, which kazoo can be configured for
	kazooNames   = "kazoo-" // plain kazoo's
	bothNames    = "extra-" // each its own: kazoo knows Curator's by extra_lock_patterns, Go both
)

// sharers returns the languages that can share objects of a naming scheme.
func (c *cast) sharers(names string) []*peer {
	if names == curatorNames {
		return c.peers
	}
	return those(c.peers, Kazoo, Go)
}

// wakes: a of each pair acquires the lock, b waits, and a releases: b must acquire then and not
// before.
func (c *cast) wakes(names, verb string) func(ctx context.Context) {
	return func(ctx context.Context) {
		eachPair("/wakes-"+names+verb, c.sharers(names), func(p pair, path string) {
			a, b := p.a.handle(), p.b.handle()
			a.do(ctx, names+verb, path)
			waits := b.ask(names+verb, path)
			c.standing(ctx, path, 2)
			c.handsOver(ctx, a, waits)
			release(ctx, b)
		})
	}
}

// handsOver makes a release an object that waits waits for.
func (c *cast) handsOver(ctx context.Context, a *handle, waits *answer) {
	stillWait(ctx, waits)
	back := a.ask("release")
	back.wait(ctx)
	waits.wait(ctx)
	if waits.got.Before(back.sent) {
		must.Failf("the second got in before the first let go")
	}
}

// grace is how long waiters have to be wrong.
const grace = 30 * time.Millisecond

// stillWait gives waiters time, and fails if any acquires.
func stillWait(ctx context.Context, all ...*answer) {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	for _, a := range all {
		select {
		case <-a.done:
		case <-ctx.Done():
		}
		if a.answered() {
			must.Do(a.err)
			must.Failf("one got in while another held: %q", a.words)
		}
	}
}

func release(ctx context.Context, h *handle) { h.do(ctx, "release") }

// readersAndWriter: a reads, b waits to write, a's second reader waits after b, and each acquires
// in turn.
func (c *cast) readersAndWriter(names string) func(ctx context.Context) {
	return func(ctx context.Context) {
		eachPair("/readers-and-writer-"+names, c.sharers(names), func(p pair, path string) {
			r1, r2, r3, w := p.a.handle(), p.b.handle(), p.a.handle(), p.b.handle()
			for _, r := range []*handle{r1, r2} {
				r.do(ctx, names+"rlock", path)
			}
			writes := w.ask(names+"wlock", path)
			c.standing(ctx, path, 3)
			reads := r3.ask(names+"rlock", path)
			c.standing(ctx, path, 4)
			release(ctx, r2)
			c.handsOver(ctx, r1, writes)
			c.handsOver(ctx, w, reads)
			release(ctx, r3)
		})
	}
}

// downgrades: a writer becomes a reader; other readers come in, no writer does.
func (c *cast) downgrades(ctx context.Context) {
	eachPair("/downgrades", c.peers, func(p pair, path string) {
		if p.a.lang == Kazoo {
			return // kazoo cannot
		}
		a, b, w := p.a.handle(), p.b.handle(), p.b.handle()
		a.do(ctx, "wlock-then-rlock", path)
		b.do(ctx, "rlock", path)
		w.expect(ctx, "no", "trywlock", path, 50)
		release(ctx, a)
		release(ctx, b)
	})
}

// ownNames shows why kazoo must be configured for Curator's names: a kazoo that only knows them
// lets Curator in while it holds. If this fails, kazoo has improved, and docs/guide/recipes.md is
// wrong.
func (c *cast) ownNames(ctx context.Context) {
	const path = "/own-names"
	first, second := those(c.peers, Kazoo)[0].handle(), those(c.peers, Curator)[0].handle()
	first.do(ctx, bothNames+"lock", path)
	second.expect(ctx, "yes", "trylock", path, 1000)
	release(ctx, second)
	release(ctx, first)
}

// leavesTheLine: a waiter between two others gives up; a's second waiter acquires after a.
func (c *cast) leavesTheLine(ctx context.Context) {
	eachPair("/leaves-the-line", c.peers, func(p pair, path string) {
		a, b, last := p.a.handle(), p.b.handle(), p.a.handle()
		a.do(ctx, "lock", path)
		gives := b.ask("trylock", path, 200)
		c.standing(ctx, path, 2)
		waits := last.ask("lock", path)
		cases.Expect("the second gets the lock", gives.wait(ctx), "no")
		c.standing(ctx, path, 2)
		c.handsOver(ctx, a, waits)
		release(ctx, last)
	})
}

// inLine: two of each language acquire the lock in the order of their arrival.
func (c *cast) inLine(ctx context.Context) {
	const path = "/in-line"
	var line []*handle
	var answers []*answer
	for range 2 {
		for _, p := range c.peers {
			h := p.handle()
			line, answers = append(line, h), append(answers, h.ask("lock", path))
			c.standing(ctx, path, len(line))
		}
	}
	for i, h := range line {
		answers[i].wait(ctx)
		for _, p := range those(c.peers, Go) {
			// Ours knows everybody's znodes.
			got := p.handle().do(ctx, "line", path)
			cases.Expect("who holds and waits", got, fmt.Sprint(1, len(line)-i-1))
		}
		stillWait(ctx, answers[i+1:]...)
		release(ctx, h)
	}
}

// rounds is how often each worker of a random scenario acquires.
const rounds = 12

// workers is the number of handles per language in a random scenario.
const workers = 3

// shuffle runs workers of all these languages in parallel, each with its own random source.
func (c *cast) shuffle(peers []*peer, work func(h *handle, who string, rnd *rand.Rand)) {
	var fs []func()
	for _, p := range peers {
		for i := range workers {
			h, rnd := p.handle(), rand.New(rand.NewPCG(c.rnd.Uint64(), c.rnd.Uint64()))
			who := p.lang + strconv.Itoa(i)
			fs = append(fs, func() {
				for range rounds {
					must.Doing(who, func() { work(h, who, rnd) })
				}
			})
		}
	}
	must.All(fs...)
}

// mutexMany: all increment a counter that only the lock protects.
func (c *cast) mutexMany(names string) func(ctx context.Context) {
	return func(ctx context.Context) {
		path := "/mutex-many-" + names
		count := c.newCounter(path + "-counter")
		var had history
		c.shuffle(c.sharers(names), func(h *handle, who string, rnd *rand.Rand) {
			takeSomehow(ctx, h, rnd, names+"lock", path).held(ctx, h, &had, who, 1, count.add)
		})
		had.atMost(1)
		count.check(len(had.spans))
		c.standing(ctx, path, 0)
	}
}

// held uses an object that a granted to h, records the time, and releases the object. a is nil if
// the object was not acquired.
func (a *answer) held(ctx context.Context, h *handle, had *history, who string, weight int, use func(ctx context.Context, h *handle)) {
	if a == nil {
		return
	}
	use(ctx, h)
	back := h.ask("release")
	had.add(who, a, back, weight)
	back.wait(ctx)
}

// takeSomehow acquires, in a third of the cases with little patience. nil: not acquired.
func takeSomehow(ctx context.Context, h *handle, rnd *rand.Rand, verb string, args ...any) *answer {
	if rnd.IntN(3) > 0 {
		got := h.ask(verb, args...)
		got.wait(ctx)
		return got
	}
	got := h.ask("try"+verb, append(args, rnd.IntN(60))...)
	if got.wait(ctx) != "yes" {
		return nil
	}
	return got
}

// readWriteMany is mutexMany with readers, which must see the counter stand still.
func (c *cast) readWriteMany(names string) func(ctx context.Context) {
	const share = 1000 // of a writer; a reader has 1
	return func(ctx context.Context) {
		path := "/read-write-many-" + names
		count := c.newCounter(path + "-counter")
		var had history
		c.shuffle(c.sharers(names), func(h *handle, who string, rnd *rand.Rand) {
			verb, weight, use := "rlock", 1, count.stands
			if rnd.IntN(3) == 0 {
				verb, weight, use = "wlock", share, count.add
			}
			takeSomehow(ctx, h, rnd, names+verb, path).held(ctx, h, &had, who+" "+verb, weight, use)
		})
		writes := 0
		for _, s := range had.spans {
			if s.weight == share {
				writes++
			}
		}
		had.atMost(share)
		count.check(writes)
		c.standing(ctx, path, 0)
	}
}

// semaphoreMany: all acquire leases, of which there are fewer than workers.
func (c *cast) semaphoreMany(names string) func(ctx context.Context) {
	const limit = 2
	return func(ctx context.Context) {
		path := "/semaphore-many" + names
		look := c.newCounter(path + "-counter")
		var had history
		c.shuffle(c.sharers(names), func(h *handle, who string, rnd *rand.Rand) {
			takeSomehow(ctx, h, rnd, names+"acquire", path, limit).held(ctx, h, &had, who, 1, look.stands) // for a while
		})
		leases, locks := semaphoreDirs(names, path)
		had.atMost(limit)
		c.standing(ctx, leases, 0)
		c.standing(ctx, locks, 0)
	}
}

// semaphoreDirs returns the parents of the leases and of the waiters.
func semaphoreDirs(names, path string) (leases, locks string) {
	if names == kazooNames {
		return path, path + "-__lock__"
	}
	return path + "/leases", path + "/locks"
}

// semaphoreWakes: a of each pair acquires the only lease, and b waits for it.
func (c *cast) semaphoreWakes(names string) func(ctx context.Context) {
	return func(ctx context.Context) {
		eachPair("/semaphore-wakes"+names, c.sharers(names), func(p pair, path string) {
			a, b := p.a.handle(), p.b.handle()
			a.do(ctx, names+"acquire", path, 1)
			waits := b.ask(names+"acquire", path, 1)
			// The waiter for a lease holds the lock meanwhile.
			_, locks := semaphoreDirs(names, path)
			c.standing(ctx, locks, 1)
			c.handsOver(ctx, a, waits)
			release(ctx, b)
		})
	}
}

// maximumGrows: b of each pair waits for a lease of a semaphore without leases, until each language
// with counters raises the maximum.
func (c *cast) maximumGrows(ctx context.Context) {
	eachPair("/maximum-grows", c.peers, func(p pair, path string) {
		if p.b.lang == Kazoo {
			return // its maximum is a constant
		}
		count := p.a.handle()
		count.do(ctx, "count", "int", path+"-count")
		count.do(ctx, "add", 0) // creates it
		waiter := p.b.handle()
		waits := waiter.ask("acquire-shared", path, path+"-count")
		c.standing(ctx, path+"/locks", 1)
		stillWait(ctx, waits)
		count.do(ctx, "add", 1)
		waits.wait(ctx)
		release(ctx, waiter)
		release(ctx, count)
	})
}

// revokes: b asks a for its lock back, in Curator's way.
func (c *cast) revokes(ctx context.Context) {
	eachPair("/revokes", c.peers, func(p pair, path string) {
		if p.a.lang == Kazoo {
			return // kazoo does not look
		}
		a, b := p.a.handle(), p.b.handle()
		a.do(ctx, "lock-revocable", path)
		names := c.children(path)
		cases.Expect("znodes of the lock", len(names), 1)
		b.do(ctx, "revoke", path+"/"+names[0])
		a.expect(ctx, "yes", "revoked", 5000)
		release(ctx, a)
	})
}

// counter is a znode that peers increment with an unguarded read and write.
type counter struct {
	c    *cast
	path string
}

func (c *cast) newCounter(path string) *counter {
	must.Get(c.conn.Create(path, []byte("0"), 0, zk.WorldACL(zk.PermAll)))
	return &counter{c, path}
}

func (n *counter) read(ctx context.Context, h *handle) int {
	return must.Get(strconv.Atoi(string(Unhex(h.do(ctx, "get", n.path)))))
}

func (n *counter) add(ctx context.Context, h *handle) {
	h.do(ctx, "set", n.path, Hex([]byte(strconv.Itoa(n.read(ctx, h)+1))))
}

// stands checks that nobody writes.
func (n *counter) stands(ctx context.Context, h *handle) {
	v := n.read(ctx, h)
	cases.Expect("the counter on the second look", n.read(ctx, h), v)
}

func (n *counter) check(want int) {
	b, _ := must.Get2(n.c.conn.Get(n.path))
	cases.Expect("the counter", string(b), strconv.Itoa(want))
}

// span is a time in which a peer certainly held an object: from the arrival of the answer to the
// sending of the release.
type span struct {
	who      string
	from, to time.Time
	weight   int // of a share
}

// history holds the spans of a scenario. Safe for concurrent use.
type history struct {
	mu    sync.Mutex
	spans []span
}

// add records that a peer held an object from the answer that granted it to the request that
// released it.
func (h *history) add(who string, got, back *answer, weight int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.spans = append(h.spans, span{who, got.got, back.sent, weight})
}

// atMost checks that concurrent holders never exceeded limit together.
func (h *history) atMost(limit int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	byStart := slices.SortedFunc(slices.Values(h.spans), func(a, b span) int { return a.from.Compare(b.from) })
	var open []span
	for _, s := range byStart {
		open = slices.DeleteFunc(open, func(o span) bool { return !o.to.After(s.from) })
		open = append(open, s)
		sum, who := 0, []string{}
		for _, o := range open {
			sum += o.weight
			who = append(who, o.who)
		}
		if sum > limit {
			must.Failf("%v had %d of %d together", who, sum, limit)
		}
	}
}
