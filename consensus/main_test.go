package consensus

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if arg := os.Getenv(childEnv); arg != "" {
		runChild(arg)
	}
	goleak.VerifyTestMain(m)
}
