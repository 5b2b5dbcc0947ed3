package recipetest

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

// Main must be called by TestMain of a package of recipes. Main runs the tests, and fails if a
// goroutine is left. Each property is checked in a few drawn worlds, and in 100 in make exhaustive.
func Main(m *testing.M) {
	exhaustive.DefaultChecks(3, 100)
	goleak.VerifyTestMain(watchdog.Watch(m))
}
