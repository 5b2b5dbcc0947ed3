package main

import (
	"testing"

	"github.com/gozkd/gozkd/examples/internal/exampletest"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

func TestMain(m *testing.M) { watchdog.Watch(m).Run() }

func TestRun(t *testing.T) {
	exampletest.Expect(t, exampletest.Lines(t, run),
		"candidate 1 stands",
		"candidate 1 leads: candidate 1",
		"candidate 2 stands",
		"candidate 3 stands",
		"candidate 1 dies",
		"candidate 2 leads: candidate 2, candidate 3",
		"candidate 2 resigns",
		"candidate 3 leads: candidate 3",
		"candidate 3 resigns")
}
