package config

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

// The properties library starts a goroutine per file and may leak it: see readProperties.
func TestMain(m *testing.M) { goleak.VerifyTestMain(watchdog.Watch(m)) }
