package main

import (
	"testing"

	"github.com/gozkd/gozkd/examples/internal/exampletest"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

func TestMain(m *testing.M) { watchdog.Watch(m).Run() }

func TestRun(t *testing.T) {
	exampletest.Expect(t, exampletest.Lines(t, run),
		"No members in group sample-group",
		"[child-1]",
		"[child-1 child-2]",
		"[child-1 child-2 child-3]",
		"[child-2 child-3]",
		"[child-3]",
		"No members in group sample-group",
		"Group sample-group does not exist")
}
