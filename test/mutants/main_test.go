package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

func TestMain(m *testing.M) { watchdog.Watch(m).Run() }

// A change of the code that a patch touches must adapt the patch.
func TestPatches_Apply(t *testing.T) {
	mutants, err := load(".")
	if err != nil {
		t.Fatal(err)
	}
	if len(mutants) < 40 {
		t.Errorf("%d mutants", len(mutants))
	}
	root, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		t.Skip("not in a clone of the repository: ", err)
	}
	for _, m := range mutants {
		text, err := os.ReadFile(m.path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if name, ok := strings.CutPrefix(line, "+++ b/"); ok {
				// So that go test knows the file and runs this test again when the file changes.
				if _, err := os.ReadFile(filepath.Join("..", "..", strings.TrimSpace(name))); err != nil {
					t.Error(err)
				}
			}
		}
		cmd := exec.Command("git", "apply", "--check", "--recount", "-C1", filepath.Join("test", "mutants", m.path))
		cmd.Dir = strings.TrimSpace(string(root))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s does not apply: adapt it to the change of the code\n%s", m.name, out)
		}
	}
}

func TestParse(t *testing.T) {
	const diff = "\ndiff --git a/x b/x\n--- a/x\n"
	m, err := parse("bug: one line\nand another\ncheck: go test ./x -run 'a: b'\nwithin: 20s" + diff)
	if err != nil || m.bug != "one line and another" || m.check != "go test ./x -run 'a: b'" || m.within.Seconds() != 20 {
		t.Errorf("%+v, %v", m, err)
	}
	for _, bad := range []string{"bug: b\ncheck: c" + diff, "bug: b\nwithin: 1s" + diff, "check: c\nwithin: 1s" + diff, "bug: b\ncheck: c\nwithin: 1s\n"} {
		if m, err := parse(bad); err == nil {
			t.Errorf("%q is accepted: %+v", bad, m)
		}
	}
}

// Successive subsets cover every mutant once.
func TestSubset(t *testing.T) {
	all := []mutant{{name: "a"}, {name: "b"}, {name: "c"}, {name: "d"}, {name: "e"}}
	var names []string
	for _, part := range []string{"7/3", "8/3", "9/3"} {
		some, err := subset(all, part)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range some {
			names = append(names, m.name)
		}
	}
	if slices.Sort(names); strings.Join(names, "") != "abcde" {
		t.Error(names)
	}
	for _, bad := range []string{"1", "1/0", "-1/3", "x"} {
		if _, err := subset(all, bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
