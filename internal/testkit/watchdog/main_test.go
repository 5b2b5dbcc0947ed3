package watchdog

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) { os.Exit(Watch(m).Run()) }
