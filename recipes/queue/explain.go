package queue

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/sequence"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// Snapshot describes a queue as the Client's server shows it.
type Snapshot struct {
	Items []ItemInfo // in the order in which they will be taken
	// Waiting lists the consumers that stand in line for an item, in order. Only Go consumers have
	// a znode.
	Waiting []recipes.Contender
	// Chief is the consumer that takes without standing in line, and is waiting or busy; nil if
	// there is none.
	Chief *recipes.Contender
	// AwaitingRoom lists the producers that wait until a queue with MaxItems has room, in order.
	AwaitingRoom []recipes.Contender
}

// ItemInfo describes an item in a queue.
type ItemInfo struct {
	recipes.Contender           // of the item's znode; Since is the time of the Put
	Priority          int64     // in a queue with priorities
	Due               time.Time // in a queue with delays
	// the consumer that has locked the item, and since when; nil if none
	Holder *recipes.Contender
	// Skipped is why this Client cannot take the item: proto.ErrNoAuth if it may not read the item,
	// proto.ErrNotEmpty if a Take found that the item has children; nil otherwise.
	Skipped error
}

// Explain returns a description of the queue. Explain only reads, including the items' data, and
// the result may mix moments.
func (e *engine) Explain(ctx context.Context) (Snapshot, error) {
	var s Snapshot
	names, err := contend.ChildNames(ctx, e.client, e.path)
	if err != nil {
		return s, err
	}
	sorted := e.layout.sorted(names)
	byName := make(map[string]*entry, len(sorted))
	names = names[:0]
	for _, x := range sorted {
		names = append(names, x.name)
		byName[x.name] = x
	}
	items, err := contend.ReadChildren(ctx, e.client, e.path, names)
	if err != nil {
		return s, err
	}
	var locks []recipes.Contender
	if e.locks != "" {
		if locks, err = contend.ReadAll(ctx, e.client, e.locks, nil); err != nil {
			return s, err
		}
	}
	holders := make(map[string]*recipes.Contender, len(locks))
	for i := range locks {
		holders[znodepath.Base(locks[i].Path)] = &locks[i]
	}
	e.mu.Lock()
	skipped := maps.Clone(e.consumer.skipped)
	e.mu.Unlock()
	for _, item := range items {
		x := byName[znodepath.Base(item.Path)]
		state := ItemInfo{Contender: item, Holder: holders[x.name], Skipped: skipped[x.name]}
		if item.Zxid == 0 {
			state.Skipped = proto.ErrNoAuth
		}
		if e.layout.due != nil {
			state.Due = time.UnixMilli(x.due)
		} else {
			state.Priority = x.sortKey
		}
		s.Items = append(s.Items, state)
	}
	if s.Waiting, err = contend.Contenders(ctx, e.client, e.members, isWaiting); err != nil {
		return s, err
	}
	if s.AwaitingRoom, err = contend.Contenders(ctx, e.client, e.members, isAwaitingRoom); err != nil {
		return s, err
	}
	chief, err := contend.ReadChildren(ctx, e.client, e.members, []string{chiefName})
	if len(chief) > 0 {
		s.Chief = &chief[0]
	}
	return s, err
}

var isWaiting, isAwaitingRoom = hasLabel(waitPrefix), hasLabel(roomPrefix)

// hasLabel returns a function that reports whether label and a number end a name.
func hasLabel(label string) func(name string) bool {
	return func(name string) bool {
		_, prefix, _ := sequence.Parse(name)
		return strings.HasSuffix(prefix, label)
	}
}
