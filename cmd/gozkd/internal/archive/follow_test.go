package archive

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store/storetest"
	"github.com/gozkd/gozkd/consensus"
)

// A follower goes on after every place of the archive's history, also within an object, and after
// no place of another history or before the first base (W1, W2).
func TestContinue(t *testing.T) {
	const ensemble = 7
	s := storetest.New(1).Client()
	put := func(name string, data []byte) {
		if err := s.Put(t.Context(), name, data); err != nil {
			t.Fatal(err)
		}
	}
	first := position{10, firstChain(ensemble, 10, 1)}
	put(baseName{position: first, zxid: 1, ms: 1, writer: "w"}.in(ensemble)+partName(0, true), nil)
	places := []Place{{Ensemble: ensemble, Index: first.index, chain: first.chain}}
	for at := first; at.index < 20; {
		var entries []consensus.LogEntry
		for range 5 {
			e, err := consensus.DecodeLogEntry(at.index+uint64(len(entries))+1, []byte{1, 0})
			if err != nil {
				t.Fatal(err)
			}
			entries = append(entries, e)
			chain := places[len(places)-1].chain.next(e.Index, e.Data)
			places = append(places, Place{Ensemble: ensemble, Index: e.Index, chain: chain})
		}
		n, b := encodeLog(ensemble, at, entries)
		put(n.in(ensemble), b)
		at = n.after()
	}
	a, err := Open(t.Context(), s, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range places {
		span, err := a.Continue(t.Context(), at)
		if err != nil {
			t.Errorf("%v: %v", at, err)
		}
		next := at.Index + 1
		for e, err := range a.EntriesAfter(t.Context(), span, at.Index) {
			if err != nil || e.Index != next {
				t.Errorf("%v: entry %d, %v", at, e.Index, err)
			}
			next++
		}
		if next != 21 {
			t.Errorf("%v: the entries end before %d", at, next)
		}
		if again, err := ParsePlace(at.String()); err != nil || again != at {
			t.Errorf("%v is read as %v, %v", at, again, err)
		}
		other := at
		other.chain[3]++
		if _, err := a.Continue(t.Context(), other); errors.Is(err, ErrCut) != (at.Index < 20) {
			t.Errorf("%v of another history: %v", at, err)
		}
	}
	if _, err := a.Continue(t.Context(), Place{Ensemble: ensemble, Index: 9}); !errors.Is(err, ErrCut) {
		t.Errorf("before the first base: %v", err)
	}
	for _, text := range []string{"", "7 10", strings.Replace(places[0].String(), fmt.Sprint(places[0].chain), "00", 1)} {
		if at, err := ParsePlace(text); err == nil {
			t.Errorf("%q is %v", text, at)
		}
	}
}
