package config

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

// The library that reads properties runs a goroutine per file and can leave it behind: see readProperties.
func TestMain(m *testing.M) { goleak.VerifyTestMain(watchdog.Watch(m)) }
