package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pure packages are functions of their arguments: replicas agree, and the simulator's runs repeat,
// because nothing else can reach them.
var pure = []string{"consensus/internal/core", "consensus/internal/turn", "datatree", "internal/slab", "internal/zkfiles", "proto", "proto/jute", "server/internal/capacity", "server/internal/liveness", "session", "watch"}

// timed are the pure packages that compute with instants, which are handed to them.
var timed = []string{"consensus/internal/core", "consensus/internal/turn", "server/internal/liveness", "session"}

// outside are the imports that bring in the world. net/netip is arithmetic on addresses, so it is
// no part of net.
var outside = []string{
	"crypto/rand", "math/rand", "math/rand/v2",
	"os", "os/exec", "os/signal", "os/user", "io/ioutil", "path/filepath", "syscall",
	"net", "net/http", "net/rpc", "net/smtp", "net/textproto", "net/url",
	"log", "log/slog",
}

// clock are the names of package time that read a clock or wait for one. Durations and instants are
// values.
var clock = []string{"Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Sleep", "Local", "."}

// impurities lists what pure packages reach for. A pure package starts no goroutine either: who
// runs two of its functions at a time is up to the caller.
func impurities(srcs []source) []string {
	var findings []string
	for _, s := range srcs {
		if s.test || !slices.Contains(pure, s.pkg) {
			continue
		}
		for _, imp := range s.imports() {
			switch {
			case slices.Contains(outside, imp.path):
				findings = append(findings, fmt.Sprintf("%s: %s is pure and may not import %s", s.at(imp.pos), s.pkg, imp.path))
			case imp.path == "time" && !slices.Contains(timed, s.pkg):
				findings = append(findings, fmt.Sprintf("%s: %s may not import time: of the pure packages only %s compute with instants, which are handed to them",
					s.at(imp.pos), s.pkg, strings.Join(timed, ", ")))
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok {
				findings = append(findings, fmt.Sprintf("%s: %s is pure and may not start a goroutine", s.at(g.Pos()), s.pkg))
			}
			return true
		})
		if slices.Contains(timed, s.pkg) {
			s.uses("time", func(name string, pos token.Pos) {
				if slices.Contains(clock, name) {
					findings = append(findings, fmt.Sprintf("%s: %s may not use time.%s: time is passed in", s.at(pos), s.pkg, name))
				}
			})
		}
	}
	return findings
}

func TestPurePackages(t *testing.T) {
	srcs := load(t)
	report(t, impurities(srcs))
	for _, p := range pure {
		if !slices.ContainsFunc(srcs, func(s source) bool { return s.pkg == p }) {
			t.Logf("not there yet, so not checked: %s", p)
		}
	}
}

func TestPurePackages_Finds(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"datatree/a.go", `import "os"`, "may not import os"},
		{"datatree/a.go", `import "time"`, "may not import time"},
		{"datatree/a.go", `import "net/netip"`, ""},
		{"proto/a.go", `import r "math/rand/v2"`, "may not import math/rand/v2"},
		{"datatree/a.go", `func f() { go f() }`, "may not start a goroutine"},
		{"server/a.go", `func f() { go f() }`, ""},
		{"consensus/internal/turn/a.go", `func f() { go f() }`, "may not start a goroutine"},
		{"consensus/internal/core/a.go", `import "time"; var f = time.Now`, "time.Now"},
		{"session/a.go", `import "time"; var d time.Duration = time.Second`, ""},
		{"session/a.go", `import "time"; func f() time.Time { return time.Now() }`, "time.Now"},
		{"session/a.go", `import clk "time"; var f = clk.Since`, "time.Since"},
		{"session/a.go", `import . "time"; var f = Now`, "time.."},
		{"server/a.go", `import "time"; var f = time.Now`, ""},
		{"session/a_test.go", `import "time"; var f = time.Now`, ""},
	} {
		mustFind(t, impurities, sample(t, c.name, "package p\n"+strings.ReplaceAll(c.text, "; ", "\n")), c.want)
	}
}

// simulator begins the names of the files of the simulations, which run without the race detector.
const simulator = "consensus/sim_"

// concurrent lists where the sources of some packages and of the simulator, tests included, may do
// two things at a time, except in tests named TestRace_.
func concurrent(srcs []source, packages []string) (findings []string) {
	for _, s := range srcs {
		if !slices.Contains(packages, s.pkg) && !strings.HasPrefix(s.name, simulator) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if f, ok := n.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "TestRace_") {
				return false
			}
			_, starts := n.(*ast.GoStmt)
			if call, ok := n.(*ast.SelectorExpr); ok {
				starts = call.Sel.Name == "Go" || call.Sel.Name == "Parallel"
			}
			if starts {
				findings = append(findings, fmt.Sprintf("%s: make test runs %s without the race detector: only a TestRace_ may start a goroutine", s.at(n.Pos()), s.pkg))
			}
			return true
		})
	}
	return findings
}

// TestUnraced: make test leaves the race detector out where it can find nothing.
func TestUnraced(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`(?m)^UNRACED = ((?:.*\\\n)*.*)$`).FindSubmatch(makefile)
	if list == nil {
		t.Fatal("the Makefile has no UNRACED")
	}
	packages := regexp.MustCompile(`[^\s\\]+`).FindAllString(string(list[1]), -1)
	for i, p := range packages {
		packages[i] = strings.TrimPrefix(p, "./")
	}
	srcs := load(t)
	report(t, concurrent(srcs, slices.DeleteFunc(slices.Clone(packages), func(p string) bool { return p == "test/mutants" })))
	for _, p := range packages {
		if !slices.ContainsFunc(srcs, func(s source) bool { return s.pkg == p && s.test }) {
			t.Errorf("UNRACED has %s, where no tests are", p)
		}
	}
	found := func(srcs []source) []string { return concurrent(srcs, []string{"wal"}) }
	mustFind(t, found, sample(t, "wal/a.go", "package wal\nfunc a() { go a() }"), "start a goroutine")
	mustFind(t, found, sample(t, "wal/a_test.go", "package wal\nfunc TestRace_A() { go a() }"), "")
	mustFind(t, found, sample(t, simulator+"test.go", "package consensus\nfunc a() { go a() }"), "start a goroutine")
	mustFind(t, found, sample(t, "consensus/a_test.go", "package consensus\nfunc a() { go a() }"), "")
	mustFind(t, found, sample(t, "wal/a_test.go", "package wal\nfunc TestA(t *testing.T) { t.Parallel() }"), "start a goroutine")
	mustFind(t, found, sample(t, "wal/a.go", "package wal\nfunc a() { a() }"), "")
}
