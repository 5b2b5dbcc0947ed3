package sequence_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/sequence"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name   string
		number int32
		prefix string
		ok     bool
	}{
		{"lock-0000000003", 3, "lock-", true},
		{"_c_1e0b6c6c-6f8a-4d4b-8f5e-0f6d3c1e2a3b-lock-0000000012", 12, "_c_1e0b6c6c-6f8a-4d4b-8f5e-0f6d3c1e2a3b-lock-", true},
		{"8e6fb4a2d2ac4b5f__lock__0000000007", 7, "8e6fb4a2d2ac4b5f__lock__", true},
		{"0000000000", 0, "", true},
		{"n_2147483647", math.MaxInt32, "n_", true},
		{"lock--2147483648", math.MinInt32, "lock-", true},
		{"lock-2147483648", math.MinInt32, "lock", true},
		{"8e6f__lock__-2147483640", -2147483640, "8e6f__lock__", true},
		{"n-000000001", -1, "n", true},
		{"n--000000001", -1, "n-", true},
		{"-1000000000", -1000000000, "", true},
		{"id12345678901", 0, "", false}, // 2345678901 is out of range
		{"lock", 0, "", false},
		{"lock-12", 0, "", false},
		{"", 0, "", false},
	} {
		number, prefix, ok := sequence.Parse(c.name)
		if ok != c.ok || ok && (number != c.number || prefix != c.prefix) {
			t.Errorf("%q: %d, %q, %v", c.name, number, prefix, ok)
		}
	}
}

// TestSequential checks that names are ordered as the server numbers them, whatever their prefixes,
// including the overflow.
func TestSequential(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		first := rapid.Int32().Draw(rt, "first")
		prefixes := []string{"lock-", "_c_0a-lock-", "5f__lock__", "n_"}
		var want []string
		for i := range rapid.IntRange(0, 20).Draw(rt, "n") {
			want = append(want, fmt.Sprintf("%s%010d", rapid.SampledFrom(prefixes).Draw(rt, "prefix"), first+int32(i)))
		}
		names := rapid.Permutation(append(want, "other", "lock-1")).Draw(rt, "names")
		if got := sequence.Sequential(names); !slices.Equal(got, want) {
			rt.Errorf("%q, want %q", got, want)
		}
	})
}

// TestIndex finds each name, also among numbers that no server would assign together.
func TestIndex(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		number := rapid.OneOf(rapid.Int32(), rapid.Int32Range(0, 3))
		var names []string
		for i := range rapid.IntRange(0, 20).Draw(rt, "n") {
			names = append(names, fmt.Sprintf("%d-%010d", i, number.Draw(rt, "number")))
		}
		names = sequence.Sequential(names)
		for i, name := range names {
			if got := sequence.Index(names, name); got != i {
				rt.Errorf("%s in %q: %d", name, names, got)
			}
		}
		if got := sequence.Index(names, "other-0000000001"); got >= 0 {
			rt.Errorf("a missing name: %d", got)
		}
	})
}
