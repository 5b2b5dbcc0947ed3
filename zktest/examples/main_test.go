// Package examples has the complete tests that docs/guide/testing.md names as examples. They use
// nothing that a program outside this module could not use.
package examples

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(watchdog.Watch(m)) }
