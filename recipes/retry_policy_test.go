package recipes_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/gozkd/gozkd/recipes"
)

func TestRetryPolicies(t *testing.T) {
	most := func(n int64) int64 { return n - 1 }
	for _, c := range []struct {
		name   string
		policy recipes.RetryPolicy
		want   []time.Duration // then there are no further retries
	}{
		{"never", recipes.Times(0, 0), nil},
		{"times", recipes.Times(2, 5), []time.Duration{5, 5}},
		{"until", recipes.UntilElapsed(20, 7), []time.Duration{7, 7}},
		{"exponential", recipes.ExponentialWith(10, 100, 6, most), []time.Duration{10, 20, 40, 80, 100, 100}},
		{"no pause", recipes.Exponential(0, 0, 2), []time.Duration{0, 0}},
	} {
		var got []time.Duration
		var elapsed time.Duration
		for attempt := 1; ; attempt++ {
			wait, again := c.policy(attempt, elapsed)
			if !again {
				break
			}
			got = append(got, wait)
			elapsed += wait
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if wait, again := recipes.Forever(3)(1<<30, math.MaxInt64); wait != 3 || !again {
		t.Error("Forever stopped")
	}
	if wait, again := recipes.Exponential(time.Second, time.Minute, math.MaxInt)(1000, 0); wait > time.Minute || !again {
		t.Errorf("unexpected pause %v, %v", wait, again)
	}
}
