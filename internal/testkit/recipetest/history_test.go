package recipetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/recipes"
)

func want(t *testing.T, err error, text string) {
	t.Helper()
	switch {
	case text == "" && err != nil:
		t.Errorf("found %v, want nothing", err)
	case text != "" && (err == nil || !strings.Contains(err.Error(), text)):
		t.Errorf("found %v, want %q", err, text)
	}
}

func TestHolds_Finds(t *testing.T) {
	alive := context.Background()
	over, cancel := context.WithCancel(alive)
	cancel()
	for _, c := range []struct {
		name    string
		permits int
		run     func(h *HoldHistory)
		want    string
	}{
		{"one after the other", 1, func(h *HoldHistory) { h.Begin(alive, 1, 1).End(); h.Begin(alive, 2, 1).End() }, ""},
		{"two at once", 1, func(h *HoldHistory) { h.Begin(alive, 1, 1); h.Begin(alive, 2, 1) }, "2 of 1 permits"},
		{"lost in between", 1, func(h *HoldHistory) {
			ctx, cancel := context.WithCancel(alive)
			h.Begin(ctx, 1, 1)
			cancel()
			h.Begin(alive, 2, 1)
		}, ""},
		{"never held", 1, func(h *HoldHistory) { h.Begin(alive, 1, 1); h.Begin(over, 2, 1) }, ""},
		{"same token", 1, func(h *HoldHistory) { h.Begin(alive, 1, 1).End(); h.Begin(alive, 1, 1) }, "begins after a hold of 1 with token 0x1"},
		{"token falls", 1, func(h *HoldHistory) {
			h.Begin(alive, 1, 1).End()
			h.Begin(alive, 3, 1).End()
			h.Begin(alive, 2, 1).End()
		}, "with token 0x3"},
		{"semaphore", 2, func(h *HoldHistory) { h.Begin(alive, 5, 1); h.Begin(alive, 4, 1) }, ""},
		{"semaphore overdrawn", 2, func(h *HoldHistory) { h.Begin(alive, 1, 1); h.Begin(alive, 2, 1); h.Begin(alive, 3, 1) }, "3 of 2 permits"},
		{"readers", 9, func(h *HoldHistory) { h.Begin(alive, 2, 1); h.Begin(alive, 2, 1); h.Begin(alive, 1, 1) }, ""},
		{"writer and reader", 9, func(h *HoldHistory) { h.Begin(alive, 1, 9); h.Begin(alive, 2, 1) }, "10 of 9 permits"},
		{"reader and writer", 9, func(h *HoldHistory) { h.Begin(alive, 1, 1); h.Begin(alive, 2, 9) }, "10 of 9 permits"},
		{"writer older than reader", 9, func(h *HoldHistory) { h.Begin(alive, 2, 1).End(); h.Begin(alive, 1, 9) }, "begins after"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := NewHoldHistory(c.permits)
			c.run(h)
			want(t, h.Err(), c.want)
		})
	}
	h := NewHoldHistory(1)
	h.Begin(over, 1, 1)
	h.Begin(alive, 2, 1)
	if h.Len() != 1 {
		t.Errorf("%d", h.Len())
	}
}

var errRefused = errors.New("refused")

// history builds a history from words: "+a" is put, "-a" taken, "?a" put with unknown outcome, "!a"
// not put, "?" a take with unknown outcome, "." a take that got nothing.
func history(words string) *ItemHistory {
	i := NewItemHistory()
	for word := range strings.FieldsSeq(words) {
		kind, name := word[0], word[1:]
		switch {
		case kind == '+':
			i.Put(name)(nil)
		case kind == '!':
			i.Put(name)(errRefused)
		case kind == '?' && name != "":
			i.Put(name)(recipes.ErrOutcomeUnknown)
		case kind == '?':
			i.Take()("", recipes.ErrOutcomeUnknown)
		case kind == '.':
			i.Take()("", context.Canceled)
		case kind == '-':
			i.Take()(name, nil)
		}
	}
	return i
}

func TestItems_Finds(t *testing.T) {
	for _, c := range []struct{ words, exactly, atLeast string }{
		{"+a +b -a -b", "", ""},
		{"+a -a -a", "a was taken 2 times", ""},
		{"+a +b -a", "b was put and never taken", "b was put and never taken"},
		{"+a +b -a ?", "", "b was put and never taken"},
		{"+a +b ?", "", "was put and never taken"},
		{"+a +b +c ? .", "c was put and never taken", "a was put and never taken"},
		{"?a ?b -a", "", ""},
		{"?a -a -a", "a was taken 2 times", ""},
		{"!a", "", ""},
		{"!a -a", "a was taken, and its put had failed: refused", "its put had failed"},
		{"-a", "a was taken and never put", "a was taken and never put"},
	} {
		i := history(c.words)
		exactly := c.exactly
		if c.words == "+a +b ?" {
			exactly = "never taken" // two are missing, but only one take is unknown
		}
		want(t, i.ExactlyOnce(), exactly)
		want(t, i.AtLeastOnce(), c.atLeast)
	}
	unfinished := NewItemHistory()
	unfinished.Put("a")
	want(t, unfinished.ExactlyOnce(), "")
	if n := history("+a +b -a -a .").Taken(); n != 1 {
		t.Errorf("%d taken", n)
	}
}

func TestItems_InOrder_Finds(t *testing.T) {
	byName := func(a, b string) bool { return a < b }
	for _, c := range []struct{ words, fifo, byName string }{
		{"+a +b -a -b", "", ""},
		{"+a +b -b -a", "b was taken before a", "b was taken before a"},
		{"+b +a -a -b", "a was taken before b", ""},
		{"+b -b +a -a", "", ""},
		{"+a +b -b", "b was taken before a", "b was taken before a"},
		{"+a +b ? -b", "", ""},
		{"?a +b -b -a", "", ""},
		{"+a +b -a -b -a", "", ""},
	} {
		i := history(c.words)
		want(t, i.InOrder(nil), c.fifo)
		want(t, i.InOrder(byName), c.byName)
	}
	// Overlapping operations may come in any order.
	i := NewItemHistory()
	a := i.Put("a")
	b := i.Put("b")
	a(nil)
	b(nil)
	take := i.Take()
	i.Take()("b", nil)
	take("a", nil)
	want(t, i.InOrder(nil), "")
	i = history("+a +b")
	take = i.Take()
	i.Take()("b", nil)
	take("a", nil)
	want(t, i.InOrder(nil), "")
	if names := i.sorted(); !slices.IsSortedFunc(names, func(a, b *item) int { return a.put.begin - b.put.begin }) {
		t.Error("not sorted")
	}
}
