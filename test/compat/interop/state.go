package interop

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/cases"
)

// counts: workers of all languages increment a count: every result differs, and the last is the
// sum.
func (c *cast) counts(kind string) func(ctx context.Context) {
	return func(ctx context.Context) {
		const adds = 15
		path, peers := "/count-"+kind, c.peers
		if kind == "kazoo-int" {
			peers = c.sharers(kazooNames)
		}
		total := adds * 2 * len(peers)
		zero, sum := []byte{}, []byte(strconv.Itoa(total)) // the bytes of these numbers
		if kind != "kazoo-int" {
			// With bytes in it: kazoo creates an empty znode, in which Curator's SharedCount finds
			// no number.
			zero = make([]byte, map[string]int{"int": 4, "long": 8}[kind])
			sum = slices.Clone(zero)
			sum[len(sum)-1] = byte(total)
		}
		must.Get(c.conn.Create(path, zero, 0, zk.WorldACL(zk.PermAll)))
		var mu sync.Mutex // guards seen
		seen := make(map[string]string)
		var fs []func()
		for _, p := range slices.Concat(peers, peers) {
			fs = append(fs, func() {
				h := p.handle()
				h.do(ctx, "count", kind, path)
				for range adds {
					v := h.do(ctx, "add", 1)
					mu.Lock()
					other, twice := seen[v]
					seen[v] = p.lang
					mu.Unlock()
					if twice {
						must.Failf("%s and %s both counted to %s", other, p.lang, v)
					}
				}
				release(ctx, h)
			})
		}
		must.All(fs...)
		for i := 1; i <= total; i++ {
			if _, ok := seen[strconv.Itoa(i)]; !ok {
				must.Failf("nobody counted to %d", i)
			}
		}
		data, _ := must.Get2(c.conn.Get(path))
		cases.Expect("the bytes", Hex(data), Hex(sum))
	}
}

// value: all watch a value. Each language sets it and all are told; of those that try to replace
// the version that all have seen, a single one succeeds.
func (c *cast) value(ctx context.Context) {
	const path = "/value"
	var hs []*handle
	for _, p := range c.peers {
		h := p.handle()
		h.do(ctx, "value", path, Hex([]byte("seed")))
		hs = append(hs, h)
	}
	for i := range 3 * len(hs) {
		data := Hex([]byte{byte(i), 0, 0xff})
		hs[i%len(hs)].do(ctx, "value-set", data)
		awaitValue(ctx, hs, data)
		winner := replaces(ctx, hs, i)
		awaitValue(ctx, hs, Hex([]byte{byte(i), byte(winner)}))
	}
	for _, h := range hs {
		release(ctx, h)
	}
}

// replaces: all try to replace the version that they have seen, in alternate rounds in turn. It
// returns the successes.
func replaces(ctx context.Context, hs []*handle, round int) (winner int) {
	tries := make([]*answer, len(hs))
	for j := range hs {
		who := (round + j) % len(hs)
		tries[who] = hs[who].ask("value-try", Hex([]byte{byte(round), byte(who)}))
		if round%2 == 0 {
			tries[who].wait(ctx)
		}
	}
	winner = -1
	for j, t := range tries {
		got := t.wait(ctx)
		if got == "yes" && winner >= 0 {
			must.Failf("%s and %s both replaced one version", hs[winner].lang(), hs[j].lang())
		}
		if got == "yes" {
			winner = j
		}
	}
	if winner < 0 {
		must.Failf("nobody could replace a version that all had seen")
	}
	return winner
}

func awaitValue(ctx context.Context, hs []*handle, data string) {
	for _, h := range hs {
		h.expect(ctx, "yes", "value-await", data, patience)
	}
}

// group: a process of each language joins and leaves: all see the same members with the same data.
func (c *cast) group(ctx context.Context) {
	const path = "/group"
	var hs []*handle
	var want []string
	for i, p := range c.peers {
		h := p.handle()
		data := Hex([]byte{byte(i), 0xff})
		h.do(ctx, "join", path, "member-"+p.lang, data)
		hs, want = append(hs, h), append(want, "member-"+p.lang+"="+data)
	}
	slices.Sort(want)
	sees(ctx, hs, "members", strings.Join(want, " "))
	for i, h := range hs {
		release(ctx, h)
		want = slices.DeleteFunc(want, func(m string) bool { return strings.HasPrefix(m, "member-"+h.lang()+"=") })
		sees(ctx, hs[i+1:], "members", strings.Join(want, " "))
	}
}

// sees waits until all report the same, which may lag behind the change.
func sees(ctx context.Context, hs []*handle, verb, want string, args ...any) {
	for _, h := range hs {
		cases.EventuallyEqual(ctx, verb+" of "+h.lang(), func() string { return h.do(ctx, verb, args...) }, want)
	}
}

// persistentNode: each creates a znode that lives with it; all others read the same bytes.
func (c *cast) persistentNode(ctx context.Context) {
	eachPair("/persistent-node", c.peers, func(p pair, path string) {
		h, data := p.a.handle(), Hex([]byte("\x00\xff"+path))
		h.do(ctx, "node", path, data)
		got := p.b.handle().do(ctx, "get", path)
		cases.Expect("the data", got, data)
		release(ctx, h)
		cases.Eventually(ctx, "the znode goes with its owner", func() bool {
			there, _, err := c.conn.Exists(path)
			return err == nil && !there
		})
	})
}

// discovery: each registers an instance: all find the same.
func (c *cast) discovery(ctx context.Context) {
	const base, name = "/discovery", "web"
	var hs []*handle
	var want []string
	for i, p := range c.peers {
		h, id := p.handle(), "id-"+p.lang
		address, port, payload := "10.0.0."+strconv.Itoa(i), 8000+i, "p"+strconv.Itoa(i)
		h.do(ctx, "register", base, name, id, address, port, payload)
		hs = append(hs, h)
		want = append(want, fmt.Sprintf("%s|%s|%d|%s|DYNAMIC", id, address, port, payload))
	}
	slices.Sort(want)
	var asks []*handle
	for _, p := range c.peers {
		asks = append(asks, p.handle())
	}
	sees(ctx, asks, "instances", strings.Join(want, " "), base, name)
	for _, h := range hs {
		release(ctx, h)
		want = slices.DeleteFunc(want, func(i string) bool { return strings.HasPrefix(i, "id-"+h.lang()+"|") })
		if len(want) == 0 {
			break // the container may be gone, which each language reports differently
		}
		sees(ctx, asks, "instances", strings.Join(want, " "), base, name)
	}
}

// party: two of each language join and leave one of kazoo's parties: all know the same members.
func (c *cast) party(kind string) func(ctx context.Context) {
	return func(ctx context.Context) {
		path := "/party-" + kind
		var hs []*handle
		var want []string
		for range 2 {
			for _, p := range c.sharers(kazooNames) {
				h := p.handle()
				h.do(ctx, "party", kind, path, "guest-"+p.lang)
				hs, want = append(hs, h), append(want, "guest-"+p.lang)
			}
		}
		for i, h := range hs {
			now := slices.Sorted(slices.Values(want[i:]))
			sees(ctx, hs, "guests", strings.Join(now, " "))
			release(ctx, h)
		}
		sees(ctx, hs, "guests", "")
	}
}

// partition: members of both languages come and go. Each time they settle, every part belongs to a
// single share, and share sizes differ by at most one.
func (c *cast) partition(ctx context.Context) {
	const path = "/partition"
	parts := []any{"a", "b", "c", "d", "e", "f", "g"}
	var hs []*handle
	for i := range 2 {
		for _, p := range c.sharers(kazooNames) {
			h := p.handle()
			h.do(ctx, "partition", append([]any{path, p.lang + strconv.Itoa(i)}, parts...)...)
			hs = append(hs, h)
		}
	}
	// All, and the rest after the first has gone.
	for range 2 {
		divided(ctx, hs, parts)
		release(ctx, hs[0])
		hs = hs[1:]
	}
	for _, h := range hs {
		release(ctx, h)
	}
}

func divided(ctx context.Context, hs []*handle, parts []any) {
	cases.Eventually(ctx, "the parts are divided", func() bool {
		var all []string
		for _, h := range hs {
			got := h.do(ctx, "share")
			mine := strings.Fields(got)
			if got == "none" || len(mine) < len(parts)/len(hs) || len(mine) > len(parts)/len(hs)+1 {
				return false
			}
			all = append(all, mine...)
		}
		slices.Sort(all)
		return len(all) == len(parts) && len(slices.Compact(all)) == len(parts)
	})
}

// discoveryObjects: Go and Curator each register instances without a payload and with a map and a
// list, and each reads all of them.
func (c *cast) discoveryObjects(ctx context.Context) {
	const base, name = "/discovery-objects", "web"
	peers := those(c.peers, Go, Curator)
	var want []string
	for _, p := range peers {
		for payload, text := range map[string]string{"none": "null", "map": "{zone=north}", "list": "[north]"} {
			p.handle().do(ctx, "register-object", base, name, p.lang+"-"+payload, payload)
			want = append(want, p.lang+"-"+payload+"="+text)
		}
	}
	slices.Sort(want)
	var hs []*handle
	for _, p := range peers {
		hs = append(hs, p.handle())
	}
	sees(ctx, hs, "objects", strings.Join(want, " "), base, name)
}

// instanceBytes: Go and Curator register the same except for the time: they write the same bytes.
func (c *cast) instanceBytes(ctx context.Context) {
	written := make(map[string]string)
	for _, p := range those(c.peers, Go, Curator) {
		h, base := p.handle(), "/instance-bytes-"+p.lang
		h.do(ctx, "register", base, "web", "id", "10.0.0.1", 80, "p<&é>")
		data, _ := must.Get2(c.conn.Get(base + "/web/id"))
		release(ctx, h)
		written[p.lang] = registrationTime.ReplaceAllString(string(data), "TIME")
	}
	cases.Expect("what Go writes", written[Go], written[Curator])
}

var registrationTime = regexp.MustCompile(`\b\d{13}\b`)

// lease: a obtains a lease that b cannot get until it is over, unless b uses a's name.
func (c *cast) lease(ctx context.Context) {
	const long, short = 60_000, 1
	eachPair("/lease", c.sharers(kazooNames), func(p pair, path string) {
		a, b := p.a.handle(), p.b.handle()
		a.expect(ctx, "yes", "lease", path, "holder-a", long)
		b.expect(ctx, "no", "lease", path, "holder-b", long)
		// The same holder in another language: it holds the lease from now on, for a short time.
		b.expect(ctx, "yes", "lease", path, "holder-a", short)
		cases.Eventually(ctx, "the lease is over", func() bool { return b.do(ctx, "lease", path, "holder-b", long) == "yes" })
	})
}
