package main

import (
	"testing"

	"github.com/gozkd/gozkd/examples/internal/exampletest"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

func TestMain(m *testing.M) { watchdog.Watch(m).Run() }

func TestRun(t *testing.T) {
	exampletest.Expect(t, exampletest.Lines(t, run),
		"first: owns the lock",
		"second: waits for two seconds",
		"second: timed out waiting for the lock",
		"first has it, and 0 wait",
		"first: unlocked",
		"second: works while it owns the lock",
		"second: unlocked")
}
