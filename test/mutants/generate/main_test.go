package main

import (
	"os"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/test/mutants/internal/typecheck"
)

func TestMain(m *testing.M) { watchdog.Watch(m).Run() }

// A mutant of equivalent.txt that is not there any more must go, or be judged again.
func TestEquivalent(t *testing.T) {
	text, err := os.ReadFile(equivalentFile)
	if err != nil {
		t.Fatal(err)
	}
	tree := typecheck.List("../../..", "work")
	for line := range strings.Lines(string(text)) {
		name := strings.TrimSpace(line)
		if name == "" || line[0] == '#' || line[0] == '\t' || strings.Contains(line, " | ") {
			continue
		}
		r := rewrite(load(tree, name))
		if _, _, err := tree.Check(name, r.rewritten(), nil); err != nil {
			t.Errorf("%s with its mutants: %v", name, err)
		}
		reasons := readEquivalent(string(text), name)
		for _, m := range r.mutants {
			if reason, ok := reasons[m.key]; ok && reason == "" {
				t.Errorf("%s: no reason", m.key)
			}
			delete(reasons, m.key)
		}
		for key := range reasons {
			t.Errorf("%s has no mutant %s", name, key)
		}
	}
}
