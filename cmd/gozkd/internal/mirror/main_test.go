package mirror

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(watchdog.Watch(m)) }
