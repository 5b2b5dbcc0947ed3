package interop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/go-zookeeper/zk"

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
func (c *cast) wakes(names, verb string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		return eachPair("/wakes-"+names+verb, c.sharers(names), func(p pair, path string) error {
			a, b := p.a.handle(), p.b.handle()
			if _, err := a.do(ctx, names+verb, path); err != nil {
				return err
			}
			waits := b.ask(names+verb, path)
			if err := c.standing(ctx, path, 2); err != nil {
				return err
			}
			return errors.Join(c.handsOver(ctx, a, waits), release(ctx, b))
		})
	}
}

// handsOver makes a release an object that waits waits for.
func (c *cast) handsOver(ctx context.Context, a *handle, waits *answer) error {
	if err := stillWait(ctx, waits); err != nil {
		return err
	}
	back := a.ask("release")
	if _, err := back.wait(ctx); err != nil {
		return err
	}
	if _, err := waits.wait(ctx); err != nil {
		return err
	}
	if waits.got.Before(back.sent) {
		return errors.New("the second got in before the first let go")
	}
	return nil
}

// grace is how long waiters have to be wrong.
const grace = 30 * time.Millisecond

// stillWait gives waiters time, and fails if one acquires.
func stillWait(ctx context.Context, all ...*answer) error {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	for _, a := range all {
		if got, err := a.wait(ctx); a.answered() {
			return errors.Join(err, fmt.Errorf("one got in while another held: %q", got))
		}
	}
	return nil
}

func release(ctx context.Context, h *handle) error {
	_, err := h.do(ctx, "release")
	return err
}

// readersAndWriter: a reads, b waits to write, a's second reader waits behind b, and each acquires
// in turn.
func (c *cast) readersAndWriter(names string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		return eachPair("/readers-and-writer-"+names, c.sharers(names), func(p pair, path string) error {
			r1, r2, r3, w := p.a.handle(), p.b.handle(), p.a.handle(), p.b.handle()
			for _, r := range []*handle{r1, r2} {
				if _, err := r.do(ctx, names+"rlock", path); err != nil {
					return err
				}
			}
			writes := w.ask(names+"wlock", path)
			if err := c.standing(ctx, path, 3); err != nil {
				return err
			}
			reads := r3.ask(names+"rlock", path)
			if err := c.standing(ctx, path, 4); err != nil {
				return err
			}
			if err := release(ctx, r2); err != nil {
				return err
			}
			if err := c.handsOver(ctx, r1, writes); err != nil {
				return fmt.Errorf("readers to writer: %w", err)
			}
			if err := c.handsOver(ctx, w, reads); err != nil {
				return fmt.Errorf("writer to reader: %w", err)
			}
			return release(ctx, r3)
		})
	}
}

// downgrades: a writer becomes a reader; other readers come in, no writer does.
func (c *cast) downgrades(ctx context.Context) error {
	return eachPair("/downgrades", c.peers, func(p pair, path string) error {
		if p.a.lang == Kazoo {
			return nil // kazoo cannot
		}
		a, b, w := p.a.handle(), p.b.handle(), p.b.handle()
		if _, err := a.do(ctx, "wlock-then-rlock", path); err != nil {
			return err
		}
		if _, err := b.do(ctx, "rlock", path); err != nil {
			return err
		}
		if got, err := w.yes(ctx, "trywlock", path, 50); err != nil || got {
			return errors.Join(err, fmt.Errorf("write while others read: %t", got))
		}
		return errors.Join(release(ctx, a), release(ctx, b))
	})
}

// ownNames shows why kazoo must be configured for Curator's names: a kazoo that only knows them
// lets Curator in while it holds. If this fails, kazoo has improved, and docs/guide/recipes.md is
// wrong.
func (c *cast) ownNames(ctx context.Context) error {
	const path = "/own-names"
	first, second := those(c.peers, Kazoo)[0].handle(), those(c.peers, Curator)[0].handle()
	if _, err := first.do(ctx, bothNames+"lock", path); err != nil {
		return err
	}
	return errors.Join(expectYes(ctx, second, "trylock", path, 1000), release(ctx, second), release(ctx, first))
}

// leavesTheLine: a waiter between two others gives up; a's second waiter acquires after a.
func (c *cast) leavesTheLine(ctx context.Context) error {
	return eachPair("/leaves-the-line", c.peers, func(p pair, path string) error {
		a, b, last := p.a.handle(), p.b.handle(), p.a.handle()
		if _, err := a.do(ctx, "lock", path); err != nil {
			return err
		}
		gives := b.ask("trylock", path, 200)
		if err := c.standing(ctx, path, 2); err != nil {
			return err
		}
		waits := last.ask("lock", path)
		if got, err := gives.wait(ctx); err != nil || got != "no" {
			return errors.Join(err, fmt.Errorf("the second got the lock: %s", got))
		}
		if err := c.standing(ctx, path, 2); err != nil {
			return err
		}
		return errors.Join(c.handsOver(ctx, a, waits), release(ctx, last))
	})
}

// inLine: two of each language acquire the lock in the order of their arrival.
func (c *cast) inLine(ctx context.Context) error {
	const path = "/in-line"
	var line []*handle
	var answers []*answer
	for range 2 {
		for _, p := range c.peers {
			h := p.handle()
			line, answers = append(line, h), append(answers, h.ask("lock", path))
			if err := c.standing(ctx, path, len(line)); err != nil {
				return err
			}
		}
	}
	for i, h := range line {
		if _, err := answers[i].wait(ctx); err != nil {
			return err
		}
		for _, p := range those(c.peers, Go) {
			// Ours knows everybody's znodes.
			got, err := p.handle().do(ctx, "line", path)
			if err := errors.Join(err, cases.Expect("who holds and waits", got, fmt.Sprint(1, len(line)-i-1))); err != nil {
				return err
			}
		}
		if err := stillWait(ctx, answers[i+1:]...); err != nil {
			return err
		}
		if err := release(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

// rounds is how often each worker of a random scenario acquires.
const rounds = 12

// workers is the number of handles per language in a random scenario.
const workers = 3

// shuffle runs workers of all these languages in parallel, each with its own random source.
func (c *cast) shuffle(peers []*peer, work func(h *handle, who string, rnd *rand.Rand) error) error {
	var fs []func() error
	for _, p := range peers {
		for i := range workers {
			h, rnd := p.handle(), rand.New(rand.NewPCG(c.rnd.Uint64(), c.rnd.Uint64()))
			who := p.lang + strconv.Itoa(i)
			fs = append(fs, func() error {
				for range rounds {
					if err := work(h, who, rnd); err != nil {
						return fmt.Errorf("%s: %w", who, err)
					}
				}
				return nil
			})
		}
	}
	return together(fs...)
}

// mutexMany: all increment a counter that only the lock protects.
func (c *cast) mutexMany(names string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		path := "/mutex-many-" + names
		count, err := c.newCounter(path + "-counter")
		if err != nil {
			return err
		}
		var had history
		err = c.shuffle(c.sharers(names), func(h *handle, who string, rnd *rand.Rand) error {
			got, err := takeSomehow(ctx, h, rnd, names+"lock", path)
			if err != nil || got == nil {
				return err
			}
			err = count.add(ctx, h)
			back := h.ask("release")
			had.add(who, got, back, 1)
			_, backErr := back.wait(ctx)
			return errors.Join(err, backErr)
		})
		return errors.Join(err, had.atMost(1), count.check(len(had.spans)), c.standing(ctx, path, 0))
	}
}

// takeSomehow acquires, in a third of the cases with little patience. nil: not acquired.
func takeSomehow(ctx context.Context, h *handle, rnd *rand.Rand, verb string, args ...any) (*answer, error) {
	if rnd.IntN(3) > 0 {
		got := h.ask(verb, args...)
		_, err := got.wait(ctx)
		return got, err
	}
	got := h.ask("try"+verb, append(args, rnd.IntN(60))...)
	words, err := got.wait(ctx)
	if err != nil || words != "yes" {
		return nil, err
	}
	return got, nil
}

// readWriteMany is mutexMany with readers, which must see the counter stand still.
func (c *cast) readWriteMany(names string) func(ctx context.Context) error {
	const share = 1000 // of a writer; a reader has 1
	return func(ctx context.Context) error {
		path := "/read-write-many-" + names
		count, err := c.newCounter(path + "-counter")
		if err != nil {
			return err
		}
		var had history
		err = c.shuffle(c.sharers(names), func(h *handle, who string, rnd *rand.Rand) error {
			verb, weight, use := "rlock", 1, count.stands
			if rnd.IntN(3) == 0 {
				verb, weight, use = "wlock", share, count.add
			}
			got, err := takeSomehow(ctx, h, rnd, names+verb, path)
			if err != nil || got == nil {
				return err
			}
			err = use(ctx, h)
			back := h.ask("release")
			had.add(who+" "+verb, got, back, weight)
			_, backErr := back.wait(ctx)
			return errors.Join(err, backErr)
		})
		writes := 0
		for _, s := range had.spans {
			if s.weight == share {
				writes++
			}
		}
		return errors.Join(err, had.atMost(share), count.check(writes), c.standing(ctx, path, 0))
	}
}

// semaphoreMany: all acquire leases, of which there are fewer than workers.
func (c *cast) semaphoreMany(names string) func(ctx context.Context) error {
	const limit = 2
	return func(ctx context.Context) error {
		path := "/semaphore-many" + names
		look, err := c.newCounter(path + "-counter")
		if err != nil {
			return err
		}
		var had history
		err = c.shuffle(c.sharers(names), func(h *handle, who string, rnd *rand.Rand) error {
			got, err := takeSomehow(ctx, h, rnd, names+"acquire", path, limit)
			if err != nil || got == nil {
				return err
			}
			err = look.stands(ctx, h) // for a while
			back := h.ask("release")
			had.add(who, got, back, 1)
			_, backErr := back.wait(ctx)
			return errors.Join(err, backErr)
		})
		leases, locks := semaphoreDirs(names, path)
		return errors.Join(err, had.atMost(limit), c.standing(ctx, leases, 0), c.standing(ctx, locks, 0))
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
func (c *cast) semaphoreWakes(names string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		return eachPair("/semaphore-wakes"+names, c.sharers(names), func(p pair, path string) error {
			a, b := p.a.handle(), p.b.handle()
			if _, err := a.do(ctx, names+"acquire", path, 1); err != nil {
				return err
			}
			waits := b.ask(names+"acquire", path, 1)
			// The waiter for a lease holds the lock meanwhile.
			if _, locks := semaphoreDirs(names, path); c.standing(ctx, locks, 1) != nil {
				return fmt.Errorf("nobody stands at %s", locks)
			}
			return errors.Join(c.handsOver(ctx, a, waits), release(ctx, b))
		})
	}
}

// maximumGrows: b of each pair waits for a lease of a semaphore without leases, until each language
// with counters raises the maximum.
func (c *cast) maximumGrows(ctx context.Context) error {
	return eachPair("/maximum-grows", c.peers, func(p pair, path string) error {
		if p.b.lang == Kazoo {
			return nil // its maximum is a constant
		}
		count := p.a.handle()
		if _, err := count.do(ctx, "count", "int", path+"-count"); err != nil {
			return err
		}
		if _, err := count.do(ctx, "add", 0); err != nil { // creates it
			return err
		}
		waiter := p.b.handle()
		waits := waiter.ask("acquire-shared", path, path+"-count")
		if err := c.standing(ctx, path+"/locks", 1); err != nil {
			return err
		}
		if err := stillWait(ctx, waits); err != nil {
			return fmt.Errorf("there was a lease of none: %w", err)
		}
		raise := count.ask("add", 1)
		if _, err := raise.wait(ctx); err != nil {
			return err
		}
		if _, err := waits.wait(ctx); err != nil {
			return err
		}
		return errors.Join(release(ctx, waiter), release(ctx, count))
	})
}

// revokes: b asks a for its lock back, in Curator's way.
func (c *cast) revokes(ctx context.Context) error {
	return eachPair("/revokes", c.peers, func(p pair, path string) error {
		if p.a.lang == Kazoo {
			return nil // kazoo does not look
		}
		a, b := p.a.handle(), p.b.handle()
		if _, err := a.do(ctx, "lock-revocable", path); err != nil {
			return err
		}
		names, err := c.children(path)
		if err != nil || len(names) != 1 {
			return errors.Join(err, fmt.Errorf("got %q", names))
		}
		if _, err := b.do(ctx, "revoke", path+"/"+names[0]); err != nil {
			return err
		}
		asked, err := a.yes(ctx, "revoked", 5000)
		if err == nil && !asked {
			err = errors.New("the holder was not told")
		}
		return errors.Join(err, release(ctx, a))
	})
}

// counter is a znode that peers increment with an unguarded read and write.
type counter struct {
	c    *cast
	path string
}

func (c *cast) newCounter(path string) (*counter, error) {
	_, err := c.conn.Create(path, []byte("0"), 0, zk.WorldACL(zk.PermAll))
	return &counter{c, path}, err
}

func (n *counter) read(ctx context.Context, h *handle) (int, error) {
	s, err := h.do(ctx, "get", n.path)
	if err != nil {
		return 0, err
	}
	b, err := unhex(s)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(b))
}

func (n *counter) add(ctx context.Context, h *handle) error {
	v, err := n.read(ctx, h)
	if err != nil {
		return err
	}
	_, err = h.do(ctx, "set", n.path, tohex([]byte(strconv.Itoa(v+1))))
	return err
}

// stands checks that nobody writes.
func (n *counter) stands(ctx context.Context, h *handle) error {
	v, err := n.read(ctx, h)
	if err != nil {
		return err
	}
	w, err := n.read(ctx, h)
	if err != nil {
		return err
	}
	return cases.Expect("the counter on the second look", w, v)
}

func (n *counter) check(want int) error {
	b, _, err := n.c.conn.Get(n.path)
	if err != nil {
		return err
	}
	return cases.Expect("the counter", string(b), strconv.Itoa(want))
}
