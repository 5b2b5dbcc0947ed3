package main

import (
	"slices"
	"testing"

	"github.com/gozkd/gozkd/examples/internal/exampletest"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

func TestMain(m *testing.M) { watchdog.Watch(m).Run() }

// No process enters before all have arrived, and none leaves before all are done. The order is
// otherwise free.
func TestRun(t *testing.T) {
	lines := exampletest.Lines(t, run)
	if len(lines) != 4*processes {
		t.Fatalf("%q", lines)
	}
	slices.Sort(lines[processes : 2*processes])
	slices.Sort(lines[3*processes:])
	exampletest.Expect(t, lines,
		"1 Arrived at the barrier", "2 Arrived at the barrier", "3 Arrived at the barrier",
		"1 Entered the barrier", "2 Entered the barrier", "3 Entered the barrier",
		"1 Done", "2 Done", "3 Done",
		"1 Left the barrier", "2 Left the barrier", "3 Left the barrier")
}
