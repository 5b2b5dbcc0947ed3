package server

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/internal/capacity"
	"github.com/gozkd/gozkd/server/internal/meter"
	"github.com/gozkd/gozkd/watch"
)

// relieve disconnects the slowest readers if the budget is exceeded, and those with most watches if
// the memory of watches is, or that of watches and connections. The caller holds no Link.mu.
func (t *connTable) relieve() {
	if t.links.Memory.UnreadExceeded() {
		t.evict()
	}
	if t.excess(0, 0) > 0 {
		t.evictWatchers()
	}
}

// excess returns how many bytes watches, or connections and watches, take more than they may if
// this many eighths are to be free, when connections of closing bytes have ended.
func (t *connTable) excess(free, closing int64) int64 {
	used, together := t.growth.crowd(false)
	over := func(used, limit int64) int64 { return used - limit + limit/8*free }
	return max(over(t.watches.Bytes(), t.watchBound(together)), over(used-closing, together))
}

// watchBound returns how many bytes watches may take if that many are for connections and watches.
func (t *connTable) watchBound(together int64) int64 {
	return min(t.watchLimit(), capacity.WatchLimit(together))
}

// evictWatchers closes connections until an eighth of the exceeded limit is free: first those
// from the address whose watches take most, so that a client with many connections is not spared at
// the expense of a client with many watches on a single connection.
func (t *connTable) evictWatchers() {
	t.evicting.Lock()
	defer t.evicting.Unlock()
	if t.excess(0, 0) <= 0 { // another goroutine was here
		return
	}
	type watcher struct {
		watch.Held
		c *conn
	}
	var all []watcher
	sum := map[string]int64{} // by address
	for _, w := range t.watches.Held() {
		c := t.get(w.Conn)
		if c == nil { // it is ending
			t.watches.RemoveConn(w.Conn)
			continue
		}
		sum[c.addr] += w.Bytes
		all = append(all, watcher{w, c})
	}
	sort.Slice(all, func(i, j int) bool {
		x, y := all[i], all[j]
		return cmp.Or(cmp.Compare(sum[y.c.addr], sum[x.c.addr]), cmp.Compare(y.Bytes, x.Bytes), cmp.Compare(x.Conn, y.Conn)) < 0
	})
	_, together := t.growth.crowd(false)
	bound, closing := t.watchBound(together), int64(0)
	for _, w := range all {
		if t.excess(1, closing) <= 0 {
			return
		}
		w.c.closeFor("the watches of all clients exceeded their memory")
		closing += capacity.ConnectionCost
		t.meter.Count(meter.TooManyWatches)
		w.c.logger().Warn("connection closed: the watches of all clients, or these and the connections, "+
			"exceed their memory, and its address has most of them", "bytes", w.Bytes, "of_address_bytes", sum[w.c.addr],
			"limit_bytes", bound, "limit_with_connections_bytes", together)
		t.watches.RemoveConn(w.Conn) // at once: its reader may take a while to end
	}
}

// moveInterval is how often spread disconnects a session at most: its client may know no other
// server, and come back.
const moveInterval = 10 * time.Minute

// spread closes the connections of a fiftieth of the excess if there are more sessions than nine
// eighths of an equal part: those that have been quiet longest, and none whose client waits for an
// answer. The sessions live on.
func (t *connTable) spread(equal int) {
	now := time.Now()
	maps.DeleteFunc(t.moved, func(_ proto.SessionID, at time.Time) bool { return now.Sub(at) >= moveInterval })
	t.mu.Lock()
	own := maps.Clone(t.bySession)
	t.mu.Unlock()
	if len(own) <= equal+equal/8 {
		return
	}
	left := (len(own) - equal + 49) / 50
	quietest := func(a, b proto.SessionID) int { return own[a].LastBytes().Compare(own[b].LastBytes()) }
	for _, id := range slices.SortedFunc(maps.Keys(own), quietest) {
		if c := own[id]; left > 0 && t.moved[id].IsZero() && c.as == nil && !c.owesAnswers() {
			left--
			t.moved[id] = now
			c.closeFor("the data are full, and this server has more clients than others")
			c.logger().Info("connection closed: the data are full, and this server has more clients than others",
				"sessions", len(own), "equal_part", equal)
		}
	}
}

// evict closes connections until an eighth of the budget is free, so that the search for the
// slowest is worth its cost. The connection with the largest product of bytes and time goes first:
// a client that reads holds even a large reply only for moments.
func (t *connTable) evict() {
	b := &t.links.Memory
	t.evicting.Lock()
	defer t.evicting.Unlock()
	if !b.UnreadExceeded() { // another goroutine was here
		return
	}
	type candidate struct {
		c     *conn
		bytes int64
		rank  float64
		waits time.Duration
	}
	var slow []candidate
	for _, c := range t.all() {
		c.Lock()
		unread, _, shared := c.Charged()
		bytes := unread + b.Portion(shared)
		c.Unlock()
		if bytes > 0 {
			waits := c.Waits()
			slow = append(slow, candidate{c, bytes, float64(bytes) * float64(waits+time.Millisecond), waits})
		}
	}
	sort.Slice(slow, func(i, j int) bool { return slow[i].rank > slow[j].rank })
	limit := b.Limit.Load()
	for _, v := range slow {
		if b.Unread.Load() <= limit-limit/8 {
			return
		}
		if !v.c.CloseSlow() {
			continue
		}
		v.c.closeFor("all clients exceeded their memory, and this one was the slowest")
		t.meter.Count(meter.Evicted)
		v.c.logger().Warn("connection closed: the unread output and unfinished requests of all clients "+
			"exceed their memory, and this client is the slowest",
			"unread_bytes", v.bytes, "waiting_ms", v.waits.Milliseconds(), "limit_bytes", limit)
	}
}
