package recipetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/gozkd/gozkd/recipes"
)

// Items records what was put somewhere and taken out of it. Each item is put once, under a name of its own. Safe for concurrent use.
type ItemHistory struct {
	mu      sync.Mutex
	moment  int // counts what is recorded
	items   map[string]*item
	unknown int // takes
}

type item struct {
	name  string
	put   span
	err   error // of the put
	takes []span
}

// span is from one recorded moment to another; 0 is never.
type span struct{ begin, end int }

// NewItems returns an empty record.
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

// Put records that an item is going to be put. done is called with what came of it: nil is acknowledged, an error that is
// recipes.ErrOutcomeUnknown leaves it open, and any other says that it was not put.
func (i *ItemHistory) Put(name string) (done func(error)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	x := i.item(name)
	x.put.begin = i.now()
	x.err = recipes.ErrOutcomeUnknown // until done
	return func(err error) {
		i.mu.Lock()
		defer i.mu.Unlock()
		x.put.end, x.err = i.now(), err
	}
}

// Take records that somebody is going to take an item. done is called with the one that he got; or with an error, and then
// nobody got one, but where it is recipes.ErrOutcomeUnknown one may have been taken away.
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

// ExactlyOnce returns what contradicts: all that was acknowledged was taken once, what is unknown was taken once or not, and nothing else was
// taken. As many may be missing as takes ended unknown. All must have been taken out before.
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

// AtLeastOnce is ExactlyOnce for items that may be taken several times, and never get lost.
func (i *ItemHistory) AtLeastOnce() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.atLeastOnce(0)
}

// atLeastOnce lets so many be missing.
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

// InOrder returns what contradicts an order: an item was taken by a take that ended before another item's began, which had been there all
// the time and comes before it. One comes before another if before says so, and if it says nothing of the two, by its put having ended
// when the other's began. Without before only that counts: first in, first out. Of an item that comes back its first take counts.
func (i *ItemHistory) InOrder(before func(a, b string) bool) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	var errs []error
	all := i.sorted()
	for _, a := range all {
		if a.err != nil {
			continue // when it was there is not known
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
