package config

import (
	"testing"

	"go.uber.org/goleak"
)

// The library that reads properties runs a goroutine per file and can leave it behind: see readProperties.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
