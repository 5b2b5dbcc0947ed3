package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/examples/internal/exampletest"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

func TestMain(m *testing.M) { watchdog.Watch(m).Run() }

func TestRun(t *testing.T) {
	lines := exampletest.Lines(t, run)
	if len(exampletest.WithPrefix(lines, "a crawler dies")) != 1 {
		t.Errorf("no crawler died: %q", lines)
	}
	var fetched, added []string
	failed := 0
	for _, line := range exampletest.WithPrefix(lines, "crawler") {
		if _, link, ok := strings.Cut(line, " fetched "); ok {
			fetched = append(fetched, link)
		} else if strings.HasSuffix(line, "server is busy") {
			failed++
		}
	}
	for a := 1; a <= adders; a++ {
		for n := 1; n <= each; n++ {
			added = append(added, fmt.Sprintf("http://site-%d.example/%d", a, n))
		}
	}
	slices.Sort(fetched)
	if !slices.Equal(fetched, added) || failed == 0 {
		t.Errorf("%q were fetched, %q added, and %d fetches failed", fetched, added, failed)
	}
}
