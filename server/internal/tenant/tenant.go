// Package tenant holds budgets: how much a subtree or an identity may use per second, see ADR 15.
// It decides the charge of a request and how long the request must wait; the server makes it wait.
package tenant

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gozkd/gozkd/internal/fair"
	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/proto"
)

const maxLogged = 256 // bytes of a path or a text in an error

// Cost is the charge of a request to a budget.
type Cost struct{ Ops, Bytes float64 }

// budget is that of a subtree or an identity. Its buckets hold the tokens of one second.
type budget struct {
	mu                 sync.Mutex // guards all
	ops, bytes         fair.Bucket
	opsLimit, byteRate float64 // per second; 0: no bound
	place              place
}

// place is the next turn in a budget. It belongs to the client that has asked in vain for longest,
// while its request waits and until it may have come back.
type place struct {
	claim    Claim
	cost     Cost
	deadline time.Time // of the request; afterwards the client keeps the place for comeBack
}

const comeBack = 2 * time.Second

// room returns how long the tokens of the request that has the place may take to come, if others
// are served before. A refused client may come back at once.
func (p *place) room(now time.Time) time.Duration {
	if left := p.deadline.Sub(now); left > 0 {
		return left
	}
	return p.claim.Most
}

// Claim says for whom a request takes tokens. While a client has the place in a budget, others take
// only as much as leaves room for its request.
type Claim struct {
	Client uint64        // 0: the request takes no place, and heeds none
	Since  time.Time     // of the client's first request in a row that waits or was refused
	Most   time.Duration // for which the request may wait
	Waited time.Duration // for which it has waited
}

// Budgets are those of a state, by subtree and by identity. The zero value has none. Budgets may be
// used by several goroutines while none calls Set.
type Budgets struct {
	paths   map[string]*budget
	ids     map[proto.ID]*budget
	longest int // no path in paths is longer
}

// Empty reports whether there is no budget.
func (b *Budgets) Empty() bool { return len(b.paths)+len(b.ids) == 0 }

// Set takes a znode below proto.QuotaRoot as it is now, or without data if it does not exist.
// Znodes that cannot be budgets are ignored. An error: the data are no budget; then there is none.
func (b *Budgets) Set(path string, data []byte, exists bool, now time.Time) (err error) {
	target, ok := strings.CutSuffix(strings.TrimPrefix(path, proto.QuotaRoot), proto.QuotaBudget)
	if !ok {
		return nil
	}
	var limits proto.Quota
	if exists {
		if limits, err = proto.ParseQuota(string(data)); err != nil {
			err = fmt.Errorf("%s: %s: there is no budget until setquota sets it again",
				printable.Shortened(path, maxLogged), printable.Shortened(err.Error(), maxLogged))
		}
	}
	ops, bytes := max(0, limits.Get(proto.QuotaOps)), max(0, limits.Get(proto.QuotaByteRate))
	if name, ok := strings.CutPrefix(target, proto.QuotaIdentities); ok {
		text, _ := url.PathUnescape(name) // malformed: no client has such an id
		var id proto.ID
		id.Scheme, id.ID, _ = strings.Cut(text, ":")
		put(&b.ids, id, float64(ops), float64(bytes), now)
	} else if strings.HasPrefix(target, "/") && !Free(target) {
		put(&b.paths, target, float64(ops), float64(bytes), now)
		b.longest = max(b.longest, len(target))
	}
	return err
}

// Free reports whether a path costs nothing: it is /zookeeper or below, as znodes of budgets are.
func Free(path string) bool {
	rest, ok := strings.CutPrefix(path, "/zookeeper")
	return ok && (rest == "" || rest[0] == '/')
}

// put sets the budget of a key. What is missing from its buckets stays missing.
func put[K comparable](m *map[K]*budget, key K, ops, bytes float64, now time.Time) {
	if ops == 0 && bytes == 0 {
		delete(*m, key)
		return
	}
	if *m == nil {
		*m = make(map[K]*budget)
	}
	b := (*m)[key]
	if b == nil {
		b = new(budget)
		(*m)[key] = b
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ops.Missing(limit(b.opsLimit), now) // adds the tokens that have come until now
	b.bytes.Missing(limit(b.byteRate), now)
	b.opsLimit, b.byteRate = ops, bytes
	if ops == 0 {
		b.ops = fair.Bucket{}
	}
	if bytes == 0 {
		b.bytes = fair.Bucket{}
	}
}

func limit(perSecond float64) fair.Limit { return fair.Limit{Size: perSecond, PerSecond: perSecond} }

// reserve takes the tokens due within the time that is left to the claim, and returns when.
// Otherwise the claim takes the place, if that is free or its client has not waited for so long,
// and reserve returns when it may try again.
func (b *budget) reserve(c Cost, now time.Time, by Claim) (wait time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c = b.due(c)
	wait = b.wait(c, now)
	first := b.place
	taken := first.claim.Client != by.Client && now.Before(first.deadline.Add(comeBack))
	left := by.Most - by.Waited
	if wait <= left && (!taken || by.Client == 0 ||
		b.wait(Cost{c.Ops + first.cost.Ops, c.Bytes + first.cost.Bytes}, now) <= first.room(now)) {
		b.ops.Take(c.Ops)
		b.bytes.Take(c.Bytes)
		return wait, true
	}
	if by.Client == 0 || taken && !by.Since.Before(first.claim.Since) {
		return left, false
	}
	b.place = place{by, c, now.Add(left)}
	return min(left, max(wait-left, by.Most/looks)), false
}

// looks bounds how often the request that has the place tries again.
const looks = 8

// wait returns how long it takes until the tokens are there. b.mu is held.
func (b *budget) wait(c Cost, now time.Time) (wait time.Duration) {
	if b.opsLimit > 0 {
		wait = b.ops.Wait(limit(b.opsLimit), c.Ops, now)
	}
	if b.byteRate > 0 {
		wait = max(wait, b.bytes.Wait(limit(b.byteRate), c.Bytes, now))
	}
	return wait
}

func (b *budget) leave(client uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.place.claim.Client == client {
		b.place = place{}
	}
}

// due returns the tokens that a cost takes from the budget, at most those of a second: one request
// does not shut a tenant out. b.mu is held.
func (b *budget) due(c Cost) Cost {
	return Cost{min(c.Ops, b.opsLimit), min(c.Bytes, b.byteRate)}
}

func (b *budget) giveBack(c Cost) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c = b.due(c)
	b.ops.Take(-c.Ops)
	b.bytes.Take(-c.Bytes)
}

// Bill is the charge of a request to each budget.
type Bill struct {
	items []item
	index map[*budget]int // of items, for a long bill; nil: it is short
}

type item struct {
	*budget
	Cost
}

// ChargePath charges a request to the budget of the nearest subtree at or above a path.
func (b *Budgets) ChargePath(bill *Bill, path string, c Cost) {
	for len(path) > 1 {
		if len(path) <= b.longest {
			if found := b.paths[path]; found != nil {
				bill.add(found, c)
				return
			}
		}
		i := strings.LastIndexByte(path[:min(len(path), b.longest+1)], '/')
		if i < 0 {
			return
		}
		path = path[:i]
	}
}

// ChargeIDs charges a request to the budgets of a client's identities.
func (b *Budgets) ChargeIDs(bill *Bill, ids []proto.ID, c Cost) {
	for _, id := range ids {
		if found := b.ids[id]; found != nil {
			bill.add(found, c)
		}
	}
}

// longBill is the length from which on a bill has an index.
const longBill = 8

func (b *Bill) add(to *budget, c Cost) {
	at, known := b.index[to]
	if b.index == nil {
		at = slices.IndexFunc(b.items, func(i item) bool { return i.budget == to })
		known = at >= 0
	}
	if known {
		b.items[at].Ops += c.Ops
		b.items[at].Bytes += c.Bytes
		return
	}
	b.items = append(b.items, item{to, c})
	switch n := len(b.items); {
	case n == longBill:
		b.index = make(map[*budget]int)
		for i := range b.items {
			b.index[b.items[i].budget] = i
		}
	case n > longBill:
		b.index[to] = n - 1
	}
}

// Take takes the tokens for a request from all its budgets, and returns how long it must wait until
// they are there. If that is longer than the claim has left, or there is no room beside a request
// that waits in vain, Take takes nothing, and returns false and how long to wait before the next
// attempt: nothing if the request must be refused.
func (b *Bill) Take(now time.Time, by Claim) (wait time.Duration, ok bool) {
	for i := range b.items {
		w, ok := b.items[i].reserve(b.items[i].Cost, now, by)
		if !ok {
			for _, taken := range b.items[:i] {
				taken.giveBack(taken.Cost)
			}
			return w, false
		}
		wait = max(wait, w)
	}
	for i := range b.items {
		b.items[i].leave(by.Client)
	}
	return wait, true
}
