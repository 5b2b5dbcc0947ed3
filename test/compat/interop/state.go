package interop

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/test/compat/cases"
)

// counts: workers of all languages increment a count: every result differs, and the last is the
// sum.
func (c *cast) counts(kind string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		const adds = 15
		path, peers := "/count-"+kind, c.peers
		total := 0
		zero, sum := []byte{}, []byte(nil) // the bytes of these numbers
		switch kind {
		case "kazoo-int":
			peers = those(c.peers, Kazoo, Go)
			total = adds * 2 * len(peers)
			sum = []byte(strconv.Itoa(total))
		default:
			total = adds * 2 * len(peers)
			// With bytes in it: kazoo creates an empty znode, in which Curator's SharedCount finds
			// no number.
			zero = make([]byte, map[string]int{"int": 4, "long": 8}[kind])
			sum = slices.Clone(zero)
			sum[len(sum)-1] = byte(total)
		}
		if _, err := c.conn.Create(path, zero, 0, zk.WorldACL(zk.PermAll)); err != nil {
			return err
		}
		var mu sync.Mutex // guards seen
		seen := make(map[string]string)
		var fs []func() error
		for _, p := range slices.Concat(peers, peers) {
			fs = append(fs, func() error {
				h := p.handle()
				if _, err := h.do(ctx, "count", kind, path); err != nil {
					return err
				}
				for range adds {
					v, err := h.do(ctx, "add", 1)
					if err != nil {
						return err
					}
					mu.Lock()
					other, twice := seen[v]
					seen[v] = p.lang
					mu.Unlock()
					if twice {
						return fmt.Errorf("%s and %s both counted to %s", other, p.lang, v)
					}
				}
				return release(ctx, h)
			})
		}
		if err := together(fs...); err != nil {
			return err
		}
		for i := 1; i <= total; i++ {
			if _, ok := seen[strconv.Itoa(i)]; !ok {
				return fmt.Errorf("nobody counted to %d", i)
			}
		}
		data, _, err := c.conn.Get(path)
		return errors.Join(err, cases.Expect("the bytes", tohex(data), tohex(sum)))
	}
}

// value: all watch a value. Each language sets it and all are told; of those that try to replace
// the version that all have seen, a single one succeeds.
func (c *cast) value(ctx context.Context) error {
	const path = "/value"
	var hs []*handle
	for _, p := range c.peers {
		h := p.handle()
		if _, err := h.do(ctx, "value", path, tohex([]byte("seed"))); err != nil {
			return err
		}
		hs = append(hs, h)
	}
	for i := range 3 * len(hs) {
		data := tohex([]byte{byte(i), 0, 0xff})
		if _, err := hs[i%len(hs)].do(ctx, "value-set", data); err != nil {
			return err
		}
		if err := awaitValue(ctx, hs, data); err != nil {
			return err
		}
		winner, err := replaces(ctx, hs, i)
		if err != nil {
			return err
		}
		if err := awaitValue(ctx, hs, tohex([]byte{byte(i), byte(winner)})); err != nil {
			return err
		}
	}
	var fs []func() error
	for _, h := range hs {
		fs = append(fs, func() error { return release(ctx, h) })
	}
	return together(fs...)
}

// replaces: all try to replace the version that they have seen, in alternate rounds in turn. It
// returns the successful ones.
func replaces(ctx context.Context, hs []*handle, round int) (winner int, err error) {
	tries := make([]*answer, len(hs))
	for j := range hs {
		who := (round + j) % len(hs)
		tries[who] = hs[who].ask("value-try", tohex([]byte{byte(round), byte(who)}))
		if round%2 == 0 {
			if _, err := tries[who].wait(ctx); err != nil {
				return 0, err
			}
		}
	}
	winner = -1
	for j, t := range tries {
		got, err := t.wait(ctx)
		if err != nil {
			return 0, err
		}
		if got == "yes" && winner >= 0 {
			return 0, fmt.Errorf("%s and %s both replaced one version", hs[winner].lang(), hs[j].lang())
		}
		if got == "yes" {
			winner = j
		}
	}
	if winner < 0 {
		return 0, errors.New("nobody could replace a version that all had seen")
	}
	return winner, nil
}

func awaitValue(ctx context.Context, hs []*handle, data string) error {
	for _, h := range hs {
		if err := expectYes(ctx, h, "value-await", data, patience); err != nil {
			return err
		}
	}
	return nil
}

// group: a process of each language joins and leaves: all see the same members with the same data.
func (c *cast) group(ctx context.Context) error {
	const path = "/group"
	var hs []*handle
	var want []string
	for i, p := range c.peers {
		h := p.handle()
		data := tohex([]byte{byte(i), 0xff})
		if _, err := h.do(ctx, "join", path, "member-"+p.lang, data); err != nil {
			return err
		}
		hs, want = append(hs, h), append(want, "member-"+p.lang+"="+data)
	}
	slices.Sort(want)
	if err := sees(ctx, hs, "members", strings.Join(want, " ")); err != nil {
		return err
	}
	for i, h := range hs {
		if err := release(ctx, h); err != nil {
			return err
		}
		want = slices.DeleteFunc(want, func(m string) bool { return strings.HasPrefix(m, "member-"+h.lang()+"=") })
		if err := sees(ctx, hs[i+1:], "members", strings.Join(want, " ")); err != nil {
			return err
		}
	}
	return nil
}

// sees waits until all report the same, which may lag behind the change.
func sees(ctx context.Context, hs []*handle, verb, want string, args ...any) error {
	for _, h := range hs {
		var got string
		var err error
		e := cases.Eventually(ctx, verb+" of "+h.lang(), func() bool {
			got, err = h.do(ctx, verb, args...)
			return err != nil || got == want
		})
		if e != nil {
			e = fmt.Errorf("%w: got %q, want %q", e, got, want)
		}
		if err := errors.Join(err, e); err != nil {
			return err
		}
	}
	return nil
}

// persistentNode: each creates a znode that lives with it; all others read the same bytes.
func (c *cast) persistentNode(ctx context.Context) error {
	return eachPair("/persistent-node", c.peers, func(p pair, path string) error {
		h, data := p.a.handle(), tohex([]byte("\x00\xff"+path))
		if _, err := h.do(ctx, "node", path, data); err != nil {
			return err
		}
		got, err := p.b.handle().do(ctx, "get", path)
		if err := errors.Join(err, cases.Expect("the data", got, data), release(ctx, h)); err != nil {
			return err
		}
		return cases.Eventually(ctx, "the znode goes with its owner", func() bool {
			there, _, err := c.conn.Exists(path)
			return err == nil && !there
		})
	})
}

// discovery: each registers an instance: all find the same.
func (c *cast) discovery(ctx context.Context) error {
	const base, name = "/discovery", "web"
	var hs []*handle
	var want []string
	for i, p := range c.peers {
		h, id := p.handle(), "id-"+p.lang
		address, port, payload := "10.0.0."+strconv.Itoa(i), 8000+i, "p"+strconv.Itoa(i)
		if _, err := h.do(ctx, "register", base, name, id, address, port, payload); err != nil {
			return err
		}
		hs = append(hs, h)
		want = append(want, fmt.Sprintf("%s|%s|%d|%s|DYNAMIC", id, address, port, payload))
	}
	slices.Sort(want)
	var asks []*handle
	for _, p := range c.peers {
		asks = append(asks, p.handle())
	}
	if err := sees(ctx, asks, "instances", strings.Join(want, " "), base, name); err != nil {
		return err
	}
	for _, h := range hs {
		if err := release(ctx, h); err != nil {
			return err
		}
		want = slices.DeleteFunc(want, func(i string) bool { return strings.HasPrefix(i, "id-"+h.lang()+"|") })
		if len(want) == 0 {
			break // the container may be gone, which each language reports differently
		}
		if err := sees(ctx, asks, "instances", strings.Join(want, " "), base, name); err != nil {
			return err
		}
	}
	return nil
}

// party: two of each language join and leave one of kazoo's parties: all know the same members.
func (c *cast) party(kind string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		path := "/party-" + kind
		var hs []*handle
		var want []string
		for range 2 {
			for _, p := range c.sharers(kazooNames) {
				h := p.handle()
				if _, err := h.do(ctx, "party", kind, path, "guest-"+p.lang); err != nil {
					return err
				}
				hs, want = append(hs, h), append(want, "guest-"+p.lang)
			}
		}
		for i, h := range hs {
			now := slices.Sorted(slices.Values(want[i:]))
			if err := sees(ctx, hs, "guests", strings.Join(now, " ")); err != nil {
				return err
			}
			if err := release(ctx, h); err != nil {
				return err
			}
		}
		return sees(ctx, hs, "guests", "")
	}
}

// partition: members of both languages come and go. Each time they settle, every part belongs to a
// single share, and share sizes differ by at most one.
func (c *cast) partition(ctx context.Context) error {
	const path = "/partition"
	parts := []any{"a", "b", "c", "d", "e", "f", "g"}
	var hs []*handle
	for i := range 2 {
		for _, p := range c.sharers(kazooNames) {
			h := p.handle()
			if _, err := h.do(ctx, "partition", append([]any{path, p.lang + strconv.Itoa(i)}, parts...)...); err != nil {
				return err
			}
			hs = append(hs, h)
		}
	}
	// All, and the rest after the first has gone.
	for range 2 {
		if err := divided(ctx, hs, parts); err != nil {
			return err
		}
		if err := release(ctx, hs[0]); err != nil {
			return err
		}
		hs = hs[1:]
	}
	var fs []func() error
	for _, h := range hs {
		fs = append(fs, func() error { return release(ctx, h) })
	}
	return together(fs...)
}

func divided(ctx context.Context, hs []*handle, parts []any) error {
	var shares []string
	var err error
	e := cases.Eventually(ctx, "the parts are divided", func() bool {
		shares = nil
		var all []string
		for _, h := range hs {
			var got string
			if got, err = h.do(ctx, "share"); err != nil {
				return true
			}
			shares = append(shares, got)
			mine := strings.Fields(got)
			if got == "none" || len(mine) < len(parts)/len(hs) || len(mine) > len(parts)/len(hs)+1 {
				return false
			}
			all = append(all, mine...)
		}
		slices.Sort(all)
		return len(all) == len(parts) && len(slices.Compact(all)) == len(parts)
	})
	if e != nil {
		e = fmt.Errorf("%w: shares %q", e, shares)
	}
	return errors.Join(err, e)
}

// instanceBytes: Go and Curator register the same except for the time: they write the same bytes.
func (c *cast) instanceBytes(ctx context.Context) error {
	written := make(map[string]string)
	for _, p := range those(c.peers, Go, Curator) {
		h, base := p.handle(), "/instance-bytes-"+p.lang
		if _, err := h.do(ctx, "register", base, "web", "id", "10.0.0.1", 80, "p<&é>"); err != nil {
			return err
		}
		data, _, err := c.conn.Get(base + "/web/id")
		if err := errors.Join(err, release(ctx, h)); err != nil {
			return err
		}
		written[p.lang] = registrationTime.ReplaceAllString(string(data), "TIME")
	}
	return cases.Expect("what Go writes", written[Go], written[Curator])
}

var registrationTime = regexp.MustCompile(`\b\d{13}\b`)

// lease: a obtains a lease that b cannot get until it is over, unless b uses a's name.
func (c *cast) lease(ctx context.Context) error {
	const long, short = 60_000, 1
	return eachPair("/lease", c.sharers(kazooNames), func(p pair, path string) error {
		a, b := p.a.handle(), p.b.handle()
		if err := expectYes(ctx, a, "lease", path, "holder-a", long); err != nil {
			return err
		}
		if got, err := b.yes(ctx, "lease", path, "holder-b", long); err != nil || got {
			return errors.Join(err, fmt.Errorf("b obtained what a has: %t", got))
		}
		// The same holder in another language: it holds the lease from now on, for a short time.
		if err := expectYes(ctx, b, "lease", path, "holder-a", short); err != nil {
			return err
		}
		var err error
		return errors.Join(cases.Eventually(ctx, "the lease is over", func() bool {
			var got bool
			got, err = b.yes(ctx, "lease", path, "holder-b", long)
			return err != nil || got
		}), err)
	})
}
