package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/examples/internal/exampletest"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

func TestMain(m *testing.M) { watchdog.Watch(m).Run() }

func TestRun(t *testing.T) {
	lines := exampletest.Lines(t, run)
	for id := 1; id <= 4; id++ {
		n := fmt.Sprint(id, " ")
		exampletest.Expect(t, exampletest.WithPrefix(lines, n), n+"Acquiring Lock", n+"get Lock", n+"Releasing Lock", n+"Released Lock")
	}
	holder := ""
	for _, line := range lines {
		id, what, _ := strings.Cut(line, " ")
		switch what {
		case "get Lock":
			if holder != "" {
				t.Errorf("%s gets the lock while %s has it", id, holder)
			}
			holder = id
		case "Releasing Lock":
			holder = ""
		}
	}
}
