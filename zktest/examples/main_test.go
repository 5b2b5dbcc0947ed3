// Package examples has the complete examples of docs/guide/testing.md. They use nothing that a program outside this module could not.
package examples

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(watchdog.Watch(m)) }
