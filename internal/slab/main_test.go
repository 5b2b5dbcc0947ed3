package slab

import (
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

func TestMain(m *testing.M) { watchdog.Watch(m).Run() }
