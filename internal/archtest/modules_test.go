package archtest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/version"
)

// required are the modules that the library's go.mod requires directly, each with the reason: every
// program that imports gozkd has them in its build list.
var required = map[string]string{
	"go.etcd.io/raft/v3":                "consensus",
	"go.etcd.io/bbolt":                  "a second reader of checkpoints",
	"github.com/go-zookeeper/zk":        "the client that zktest and recipes know",
	"github.com/hashicorp/go-hclog":     "logging",
	"pgregory.net/rapid":                "properties in tests",
	"google.golang.org/protobuf":        "raft's messages; raft requires it",
	"golang.org/x/sys":                  "system calls; bbolt requires it",
	"github.com/cockroachdb/datadriven": "scripts of tests; raft requires it",
	"github.com/cespare/xxhash/v2":      "the digest of the znodes",
	"go.uber.org/goleak":                "leaks in tests",
	"github.com/anishathalye/porcupine": "linearizability in a test of server",
}

// requirement is a line of a go.mod or go.work that names a module and its version, without those
// that are there for other modules' sake.
var requirement = regexp.MustCompile(`(?m)^\s+(?:require )?(\S+\.\S+/\S+) (v\S+)( // indirect)?`)

// requirements returns the modules of a go.mod that its packages import, with their versions.
func requirements(text string) map[string]string {
	all := make(map[string]string)
	for _, m := range requirement.FindAllStringSubmatch(text, -1) {
		if m[3] == "" {
			all[m[1]] = m[2]
		}
	}
	return all
}

// otherVersions lists the requirements of our own modules in another version than that of the next
// release.
func otherVersions(name, text, next string) []string {
	var findings []string
	for m, v := range requirements(text) {
		if (m == modulePath || strings.HasPrefix(m, modulePath+"/")) && v != next {
			findings = append(findings, fmt.Sprintf("%s: %s is at %s, internal/version says %s; make version VERSION=%s makes them equal", name, m, v, next, next[1:]))
		}
	}
	return findings
}

// TestModules_RequireTheNextVersion checks that the modules can be released together.
func TestModules_RequireTheNextVersion(t *testing.T) {
	n := 0
	for _, f := range tracked(t) {
		if base := filepath.Base(f.name); base != "go.mod" && base != "go.work" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(f.name)))
		if err != nil {
			t.Fatal(err)
		}
		n++
		report(t, otherVersions(f.name, string(text), "v"+version.Number))
	}
	if n < 8 {
		t.Errorf("found %d files go.mod and go.work", n)
	}
}

// TestModules_LibraryRequiresFew checks the direct requirements of the library.
func TestModules_LibraryRequiresFew(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	got, want := slices.Sorted(maps.Keys(requirements(string(text)))), slices.Sorted(maps.Keys(required))
	if !slices.Equal(got, want) {
		t.Errorf("go.mod requires\n%s\nand the list in internal/archtest has\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestModules_Finds(t *testing.T) {
	text := "module " + modulePath + "/x\n\nrequire (\n\t" + modulePath + " v0.1.0\n\texample.com/a v1.0.0\n\texample.com/b v1.0.0 // indirect\n)\n"
	if got, want := requirements(text), map[string]string{modulePath: "v0.1.0", "example.com/a": "v1.0.0"}; !maps.Equal(got, want) {
		t.Errorf("requirements %v, want %v", got, want)
	}
	if found := otherVersions("go.mod", text, "v0.1.0"); len(found) != 0 {
		t.Errorf("found %q, want nothing", found)
	}
	if found := otherVersions("go.mod", text, "v0.2.0"); len(found) != 1 || !strings.Contains(found[0], "make version VERSION=0.2.0") {
		t.Errorf("found %q, want one finding with the command that helps", found)
	}
}
