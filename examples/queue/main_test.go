package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/examples/internal/exampletest"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

func TestMain(m *testing.M) { watchdog.Watch(m).Run() }

func TestRun(t *testing.T) {
	lines := exampletest.Lines(t, run)
	exampletest.Expect(t, lines[:7],
		"enqueued: first", "enqueued: second", "enqueued: third",
		"dequeued: first", "dequeued: second", "dequeued: third", "dequeued: nothing, the queue is empty")
	var taken, put []string
	for _, line := range exampletest.WithPrefix(lines, "consumer") {
		_, item, _ := strings.Cut(line, " took ")
		taken = append(taken, item)
	}
	for p := 1; p <= producers; p++ {
		for n := 1; n <= each; n++ {
			put = append(put, fmt.Sprintf("item %d.%d", p, n))
		}
	}
	slices.Sort(taken)
	if !slices.Equal(taken, put) {
		t.Errorf("%q were taken, %q put", taken, put)
	}
}
