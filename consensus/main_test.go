package consensus

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

func TestMain(m *testing.M) {
	if arg := os.Getenv(childEnv); arg != "" {
		runChild(arg)
	}
	goleak.VerifyTestMain(watchdog.Watch(m))
}
