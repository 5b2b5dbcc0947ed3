package interop

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/cases"
)

// queueLangs names the languages that have a kind of queue; unlisted kinds exist in all.
var queueLangs = map[string][]string{
	"delay":        {Curator, Go}, // kazoo has no clock in its queues
	"kazoo":        {Kazoo, Go},
	"kazoo-locked": {Kazoo, Go},
}

func (c *cast) queuePeers(kind string) []*peer {
	if langs, ok := queueLangs[kind]; ok {
		return those(c.peers, langs...)
	}
	return c.peers
}

// queue checks a kind: the order with a consumer of each language, and exactly-once with many.
func (c *cast) queue(kind string) func(ctx context.Context) {
	return func(ctx context.Context) {
		c.inOrder(ctx, kind, make([]int, 12), func(h *handle, path string, item []byte, i int) {
			put(ctx, h, kind, path, item, i)
		})
		c.queueMany(ctx, kind, "/queue-many-"+kind, c.queuePeers(kind))
	}
}

// returns: a of each pair takes an item and returns it, and b takes it then.
func (c *cast) returns(kind string) func(ctx context.Context) {
	return func(ctx context.Context) {
		eachPair("/returns-"+kind, c.queuePeers(kind), func(p pair, path string) {
			const item = "item"
			a, b := p.a.handle(), p.b.handle()
			put(ctx, b, kind, path, []byte(item), 0)
			a.do(ctx, "consume", kind, path)
			cases.Expect("what the first gets", a.do(ctx, "take", patience), Hex([]byte(item)))
			a.do(ctx, "return")
			// A Curator consumer goes on taking until closed, which waits for the return, and may
			// get the item once more.
			release(ctx, a)
			b.do(ctx, "consume", kind, path)
			cases.Expect("what the second gets", take(ctx, b, kind, patience), Hex([]byte(item)))
			c.emptied(ctx, kind, path)
			release(ctx, b)
		})
	}
}

// odd are items whose bytes are easily corrupted.
var odd = [][]byte{{}, {0}, []byte("\x00\x01\x00\x01\x01\x02"), []byte("é\xff\xfe|/"), make([]byte, 5000)}

// put puts an item; i is its number, and its id in the kind that has ids.
func put(ctx context.Context, h *handle, kind, path string, item []byte, i int) {
	args := []any{kind, path, Hex(item)}
	if kind == "id" {
		args = append(args, "id-"+strconv.Itoa(100-i)) // the id must not decide the order
	}
	h.do(ctx, "put", args...)
}

func take(ctx context.Context, h *handle, kind string, ms int) string {
	got := h.do(ctx, "take", ms)
	if got != "none" && hasLocks(kind) {
		h.do(ctx, "ack")
	}
	return got
}

// hasLocks reports whether a queue keeps taken items until they are acknowledged.
func hasLocks(kind string) bool { return kind == "locked" || kind == "kazoo-locked" }

func (c *cast) emptied(ctx context.Context, kind, path string) {
	if hasLocks(kind) {
		c.standing(ctx, path+"/entries", 0)
		c.standing(ctx, path+"/taken", 0)
		return
	}
	c.standing(ctx, path, 0)
}

// queueMany: all put and take in parallel: each item is taken once.
func (c *cast) queueMany(ctx context.Context, kind, path string, peers []*peer) {
	const each = 30
	total := each * len(peers)
	var taken atomic.Int64
	var mu sync.Mutex // guards got
	got := make(map[string][]string)
	var fs, releases []func()
	for _, p := range peers {
		fs = append(fs, func() {
			h := p.handle()
			for i := range each {
				put(ctx, h, kind, path, []byte(p.lang+strconv.Itoa(i)), i)
			}
		})
		for range 2 {
			h := p.handle()
			releases = append(releases, func() { release(ctx, h) })
			fs = append(fs, func() {
				h.do(ctx, "consume", kind, path)
				for taken.Load() < int64(total) {
					item := take(ctx, h, kind, 50)
					if item == "none" {
						continue
					}
					taken.Add(1)
					mu.Lock()
					got[item] = append(got[item], p.lang)
					mu.Unlock()
				}
			})
		}
	}
	if err := must.Try(func() { must.All(fs...) }); err != nil {
		must.Failf("%w; taken %d of %d", err, taken.Load(), total)
	}
	for _, item := range slices.Sorted(maps.Keys(got)) {
		if len(got[item]) > 1 {
			must.Failf("%s was taken by %q", item, got[item])
		}
	}
	// Emptied before the consumers end: Curator's removes an item and its lock after the ack, and
	// close interrupts it.
	cases.Expect("items taken", len(got), total)
	c.emptied(ctx, kind, path)
	must.All(releases...)
}

// queuePriority puts with priorities and takes by them.
func (c *cast) queuePriority(kind string) func(ctx context.Context) {
	priorities := []int{7, 3, 3, 0, 2147483647, -5, 3, 16, -2147483648}
	if kind != "priority" {
		priorities = []int{7, 3, 3, 0, 999, 5, 3, 16}
	}
	return func(ctx context.Context) {
		c.inOrder(ctx, kind, priorities, func(h *handle, path string, item []byte, i int) {
			h.do(ctx, "put", kind, path, Hex(item), priorities[i])
		})
	}
}

// queueDelay puts items due at different past times, and an item due in the future.
func (c *cast) queueDelay(ctx context.Context) {
	const kind = "delay"
	now := time.Now().UnixMilli()
	due := []int{500, 100, 900, 300, 700}
	c.inOrder(ctx, kind, due, func(h *handle, path string, item []byte, i int) {
		h.do(ctx, "put", kind, path, Hex(item), now+int64(due[i])-1000)
	})
}

// inOrder: all put items in turn, and a consumer of each language gets all bytes, by the numbers of
// the items.
func (c *cast) inOrder(ctx context.Context, kind string, numbers []int, put func(h *handle, path string, item []byte, i int)) {
	peers := c.queuePeers(kind)
	var checks []func()
	for _, taker := range peers {
		if kind == "id" && taker.lang == Kazoo {
			continue // it takes whole names, which are the ids
		}
		checks = append(checks, func() {
			path := "/queue-order-" + kind + "-" + taker.lang
			items, order := make([][]byte, len(numbers)), make([]int, len(numbers))
			for i := range numbers {
				items[i], order[i] = []byte(strconv.Itoa(i)), i
				if i < len(odd) {
					items[i] = odd[i]
				}
				put(peers[i%len(peers)].handle(), path, items[i], i)
			}
			slices.SortStableFunc(order, func(a, b int) int { return numbers[a] - numbers[b] })
			h := taker.handle()
			h.do(ctx, "consume", kind, path)
			for n, i := range order {
				cases.Expect(fmt.Sprintf("item %d, taken by %s", n, taker.lang), take(ctx, h, kind, patience), Hex(items[i]))
			}
			cases.Expect("after the last item", take(ctx, h, kind, 20), "none")
			c.emptied(ctx, kind, path)
			release(ctx, h)
		})
	}
	must.All(checks...)
}
