package archtest

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// budget bounds lines of Go that are no tests: limit is what they may be today, and falls; goal is
// what it must fall to.
type budget struct{ limit, goal int }

var (
	shippedBudget = budget{limit: 110_741, goal: 97_000}
	neverBudget   = budget{limit: 35_744, goal: 34_000}
)

// shippedRoots are what users run and import. With all that they import they are what is shipped.
var shippedRoots = []string{"cmd/gozkd", "cmd/gozkd-testkit", "zktest", "client", "recipes/..."}

// lineCounts returns how many lines are shipped and how many are not: measurements, harnesses,
// examples, tools, and packages that only tests import.
func lineCounts(srcs []source) (shipped, never int) {
	lines := make(map[string]int)
	imports := make(map[string]map[string]bool)
	for _, s := range srcs {
		if s.test {
			continue
		}
		if imports[s.pkg] == nil {
			imports[s.pkg] = make(map[string]bool)
		}
		lines[s.pkg] += strings.Count(s.text, "\n")
		for _, imp := range s.imports() {
			if to, ours := strings.CutPrefix(imp.path, modulePath+"/"); ours {
				imports[s.pkg][to] = true
			}
		}
	}
	reached := make(map[string]bool)
	var reach func(pkg string)
	reach = func(pkg string) {
		if !reached[pkg] {
			reached[pkg] = true
			for to := range imports[pkg] {
				reach(to)
			}
		}
	}
	for pkg := range maps.Keys(lines) {
		if slices.ContainsFunc(shippedRoots, func(p string) bool { return covers(p, pkg) }) {
			reach(pkg)
		}
	}
	for pkg, n := range lines {
		if reached[pkg] {
			shipped += n
		} else {
			never += n
		}
	}
	return shipped, never
}

// TestLines prints the lines, and fails above the budgets.
func TestLines(t *testing.T) {
	shipped, never := lineCounts(load(t))
	for _, c := range []struct {
		what  string
		lines int
		budget
	}{
		{"are shipped: those of " + strings.Join(shippedRoots, ", ") + ", and of all that they import", shipped, shippedBudget},
		{"are not shipped", never, neverBudget},
	} {
		t.Logf("%d lines of Go %s. Allowed are %d, the goal is %d.", c.lines, c.what, c.limit, c.goal)
		if c.lines > c.limit {
			t.Errorf("%d lines of Go %s, allowed are %d", c.lines, c.what, c.limit)
		}
	}
}

func TestLines_Finds(t *testing.T) {
	ours := "import \"" + modulePath
	var srcs []source
	for name, text := range map[string]string{
		"cmd/gozkd/a.go":             "package main\n\n" + ours + "/server\"\n", // 3 lines
		"server/a.go":                "package server\n\n" + ours + "/wal\"\n",  // 3
		"server/a_test.go":           "package server\n\n" + ours + "/internal/testkit/must\"\n",
		"wal/a.go":                   "package wal\n",                                 // 1
		"recipes/lock/a.go":          "package lock\n",                                // 1
		"internal/testkit/must/a.go": "package must\n\n\n\n\n",                        // 5 not shipped
		"examples/lock/a.go":         "package main\n\n" + ours + "/recipes/lock\"\n", // 3
	} {
		srcs = append(srcs, sample(t, name, text)...)
	}
	if shipped, never := lineCounts(srcs); shipped != 8 || never != 8 {
		t.Errorf("counted %d lines that are shipped and %d that are not, want 8 and 8", shipped, never)
	}
}
