package sequence_test

import (
	"os"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

func TestMain(m *testing.M) { os.Exit(watchdog.Watch(m).Run()) }
