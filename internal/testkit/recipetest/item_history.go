package recipetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/gozkd/gozkd/recipes"
)

// ItemHistory records and checks which items were put into a queue and taken from it. Each item is
// put once and has a unique name. Safe for concurrent use.
type ItemHistory struct {
	mu      sync.Mutex
	moment  int // counts records
	items   map[string]*item
	unknown int // takes with an unknown outcome
}

type item struct {
	name  string
	put   span
	err   error // of the put
	takes []span
}

// span is the time between two recorded moments; 0 means never.
type span struct{ begin, end int }

// NewItemHistory returns an empty history.
func NewItemHistory() *ItemHistory { return &ItemHistory{items: make(map[string]*item)} }

func (i *ItemHistory) now() int {
	i.moment++
	return i.moment
}

func (i *ItemHistory) item(name string) *item {
	x := i.items[name]
	if x == nil {
		x = &item{name: name}
		i.items[name] = x
	}
	return x
}

// Put records that an item is about to be put. done must be called with the result: nil if the item
// was put, recipes.ErrOutcomeUnknown if that is unknown, another error if the item was not put.
func (i *ItemHistory) Put(name string) (done func(error)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	x := i.item(name)
	x.put.begin = i.now()
	x.err = recipes.ErrOutcomeUnknown // until done is called
	return func(err error) {
		i.mu.Lock()
		defer i.mu.Unlock()
		x.put.end, x.err = i.now(), err
	}
}

// Take records that a consumer is about to take an item. done must be called with the item's name;
// or with an error if no item was taken, which is recipes.ErrOutcomeUnknown if an item may have
// been taken.
func (i *ItemHistory) Take() (done func(name string, err error)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	begin := i.now()
	return func(name string, err error) {
		i.mu.Lock()
		defer i.mu.Unlock()
		switch {
		case err == nil:
			x := i.item(name)
			x.takes = append(x.takes, span{begin, i.now()})
		case errors.Is(err, recipes.ErrOutcomeUnknown):
			i.unknown++
		}
	}
}

// Taken returns how many different items were taken.
func (i *ItemHistory) Taken() (n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, x := range i.items {
		if len(x.takes) > 0 {
			n++
		}
	}
	return n
}

// ExactlyOnce checks that every item that was put was taken once, that items with an unknown put
// were taken at most once, and that nothing else was taken. As many items may be missing as takes
// ended unknown. The queue must be empty.
func (i *ItemHistory) ExactlyOnce() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	var errs []error
	for _, x := range i.sorted() {
		if len(x.takes) > 1 {
			errs = append(errs, fmt.Errorf("recipetest: item %s was taken %d times", x.name, len(x.takes)))
		}
	}
	return errors.Join(append(errs, i.atLeastOnce(i.unknown))...)
}

// AtLeastOnce is ExactlyOnce for items that may be taken several times but must not be lost.
func (i *ItemHistory) AtLeastOnce() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.atLeastOnce(0)
}

// atLeastOnce tolerates this many missing items.
func (i *ItemHistory) atLeastOnce(missing int) error {
	var errs, lost []error
	for _, x := range i.sorted() {
		switch {
		case x.put.begin == 0:
			errs = append(errs, fmt.Errorf("recipetest: item %s was taken and never put", x.name))
		case x.err == nil && len(x.takes) == 0:
			lost = append(lost, fmt.Errorf("recipetest: item %s was put and never taken", x.name))
		case x.err != nil && !errors.Is(x.err, recipes.ErrOutcomeUnknown) && len(x.takes) > 0:
			errs = append(errs, fmt.Errorf("recipetest: item %s was taken, and its put had failed: %w", x.name, x.err))
		}
	}
	if len(lost) > missing {
		errs = append(errs, lost...)
	}
	return errors.Join(errs...)
}

// InOrder checks that no item was taken before an item that precedes it and had been put before the
// take began. An item precedes another if before says so. If before is nil or does not order the
// two, an item precedes another if its put ended before the other's began. For an item that was
// returned to the queue, the first take counts.
func (i *ItemHistory) InOrder(before func(a, b string) bool) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	var errs []error
	all := i.sorted()
	for _, a := range all {
		if a.err != nil {
			continue // when it was put is unknown
		}
		for _, b := range all {
			if a == b || len(b.takes) == 0 {
				continue
			}
			first := a.put.end < b.put.begin
			if before != nil && (before(a.name, b.name) || before(b.name, a.name)) {
				first = before(a.name, b.name)
			}
			passed := len(a.takes) == 0 && i.unknown == 0 || len(a.takes) > 0 && b.takes[0].end < a.takes[0].begin
			if first && passed && a.put.end < b.takes[0].begin {
				errs = append(errs, fmt.Errorf("recipetest: item %s was taken before %s", b.name, a.name))
			}
		}
	}
	return errors.Join(errs...)
}

func (i *ItemHistory) sorted() []*item {
	var all []*item
	for _, x := range i.items {
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b *item) int { return a.put.begin - b.put.begin })
	return all
}
