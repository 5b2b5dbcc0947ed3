package main

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/test/mutants/internal/typecheck"
)

func TestMain(m *testing.M) { watchdog.Watch(m).Run() }

// A change of the code that a patch touches must adapt the patch.
func TestPatches_Compile(t *testing.T) {
	mutants := load(".")
	if len(mutants) < 40 {
		t.Errorf("%d mutants", len(mutants))
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	tree := typecheck.List(root, "work")
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(m.path)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			packages := make(map[string]map[string][]byte) // changed files by package
			for line := range strings.Lines(string(text)) {
				if name, ok := strings.CutPrefix(line, "+++ b/"); ok {
					name = strings.TrimSpace(name)
					packages[path.Dir(name)] = make(map[string][]byte)
					copyFile(filepath.Join(dir, name), filepath.Join(root, name))
				}
			}
			if out, err := plant(t.Context(), dir, m); err != nil {
				t.Fatalf("%s does not apply: adapt it to the change of the code\n%s", m.name, out)
			}
			for name, changed := range packages {
				files, err := filepath.Glob(filepath.Join(dir, name, "*.go"))
				for _, file := range files {
					if err == nil {
						changed[filepath.Join(root, name, filepath.Base(file))], err = os.ReadFile(file)
					}
				}
				if err != nil {
					t.Fatal(err)
				}
				if _, _, err := tree.Check(name, changed, nil); err != nil {
					t.Errorf("with %s the code does not compile: %v", m.name, err)
				}
			}
		})
	}
}

// A check that runs no test finds no bug.
func TestPatches_NameTests(t *testing.T) {
	mutants := load(".")
	names := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)\(`)
	command := regexp.MustCompile(`^go test \./(\S+)(?:.* -run '?([^\s'/]*))?`)
	tests := make(map[string]string) // one a line, by directory
	for _, m := range mutants {
		parts := command.FindStringSubmatch(m.check)
		if parts == nil {
			t.Errorf("%s: the check is not a go test of one package: %s", m.name, m.check)
			continue
		}
		dir := filepath.Clean(parts[1])
		if tests[dir] == "" {
			files, err := filepath.Glob(filepath.Join("..", "..", dir, "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				for _, found := range names.FindAllSubmatch(text, -1) {
					tests[dir] += string(found[1]) + "\n"
				}
			}
		}
		patterns := []string{parts[2]}
		if !strings.Contains(parts[2], "(") {
			patterns = strings.Split(parts[2], "|")
		}
		for _, pattern := range patterns {
			if !regexp.MustCompile("(?m)" + pattern).MatchString(tests[dir]) {
				t.Errorf("%s: %s has no test %s", m.name, dir, pattern)
			}
		}
	}
}

func TestParse(t *testing.T) {
	const diff = "\ndiff --git a/x b/x\n--- a/x\n"
	m := parse("bug: one line\nand another\ncheck: go test ./x -run 'a: b'\nwithin: 20s" + diff)
	if m.bug != "one line and another" || m.check != "go test ./x -run 'a: b'" || m.within.Seconds() != 20 {
		t.Errorf("%+v", m)
	}
	for _, bad := range []string{"bug: b\ncheck: c" + diff, "bug: b\nwithin: 1s" + diff, "check: c\nwithin: 1s" + diff, "bug: b\ncheck: c\nwithin: 1s\n"} {
		if must.Try(func() { parse(bad) }) == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// Successive subsets cover every mutant once.
func TestSubset(t *testing.T) {
	all := []mutant{{name: "a"}, {name: "b"}, {name: "c"}, {name: "d"}, {name: "e"}}
	var names []string
	for _, part := range []string{"7/3", "8/3", "9/3"} {
		for _, m := range subset(all, part) {
			names = append(names, m.name)
		}
	}
	if slices.Sort(names); strings.Join(names, "") != "abcde" {
		t.Error(names)
	}
	for _, bad := range []string{"1", "1/0", "-1/3", "x"} {
		if must.Try(func() { subset(all, bad) }) == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
