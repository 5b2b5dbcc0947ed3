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
)

// required are the modules that the library's go.mod requires directly, each with the reason: every
// program that imports gozkd has them in its build list.
var required = map[string]string{
	"go.etcd.io/raft/v3":                "consensus",
	"go.etcd.io/bbolt":                  "a second reader of checkpoints",
	"github.com/go-zookeeper/zk":        "the client that zktest connects and recipes/gozk wraps",
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

// nextVersion returns the version in which the modules require one another, from go.work.
func nextVersion(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "go.work"))
	if err != nil {
		t.Fatal(err)
	}
	return requirements(string(text))[modulePath]
}

// otherVersions lists the requirements of our own modules in another version than that of the next
// release.
func otherVersions(name, text, next string) []string {
	var findings []string
	for m, v := range requirements(text) {
		if (m == modulePath || strings.HasPrefix(m, modulePath+"/")) && v != next {
			findings = append(findings, fmt.Sprintf("%s: %s is at %s, go.work says %s; make version VERSION=%s makes them equal", name, m, v, next, next[1:]))
		}
	}
	return findings
}

// TestModules_RequireTheNextVersion checks that the modules can be released together.
func TestModules_RequireTheNextVersion(t *testing.T) {
	n, next := 0, nextVersion(t)
	for _, f := range tracked(t) {
		if base := filepath.Base(f.name); base != "go.mod" && base != "go.work" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(f.name)))
		if err != nil {
			t.Fatal(err)
		}
		n++
		report(t, otherVersions(f.name, string(text), next))
	}
	if n < 8 {
		t.Errorf("found %d files go.mod and go.work", n)
	}
}

// TestChart_HasTheVersion checks that the Helm chart runs the image of the next version.
func TestChart_HasTheVersion(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "deploy", "helm", "gozkd", "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	number := nextVersion(t)[1:]
	for _, key := range []string{"version", "appVersion"} {
		if line := "\n" + key + ": " + number + "\n"; !strings.Contains(string(text), line) {
			t.Errorf("Chart.yaml has no line %q; make version VERSION=%s writes it", strings.TrimSpace(line), number)
		}
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

// undeclared lists imports of a package in another module of ours that go.mod does not require:
// they build here, where go.work takes all modules from the tree, and nowhere else. gomods has the
// text of each go.mod by its directory, "" for the root.
func undeclared(srcs []source, gomods map[string]string) []string {
	moduleOf := func(pkg string) (dir string) {
		for d := range gomods {
			if len(d) > len(dir) && (pkg == d || strings.HasPrefix(pkg, d+"/")) {
				dir = d
			}
		}
		return dir
	}
	declared := make(map[string]map[string]string)
	for dir, text := range gomods {
		declared[dir] = requirements(text)
	}
	var findings []string
	for _, s := range srcs {
		from := moduleOf(s.pkg)
		for _, imp := range s.imports() {
			pkg, ours := strings.CutPrefix(imp.path, modulePath+"/")
			to := moduleOf(pkg)
			if path := strings.TrimSuffix(modulePath+"/"+to, "/"); ours && from != to && declared[from][path] == "" {
				findings = append(findings, fmt.Sprintf("%s: %s is in another module, which %s does not require", s.at(imp.pos), pkg, filepath.ToSlash(filepath.Join(from, "go.mod"))))
			}
		}
	}
	return findings
}

// TestModules_RequireWhatTheyImport checks packages and their tests. That released modules require
// no other ones is left to make release-check.
func TestModules_RequireWhatTheyImport(t *testing.T) {
	gomods := make(map[string]string)
	for _, f := range tracked(t) {
		if dir, base := filepath.Split(f.name); base == "go.mod" {
			text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(f.name)))
			if err != nil {
				t.Fatal(err)
			}
			gomods[strings.TrimSuffix(dir, "/")] = string(text)
		}
	}
	report(t, undeclared(load(t), gomods))
}

func TestModules_Finds(t *testing.T) {
	gomods := map[string]string{"": "", "metrics": "require (\n\t" + modulePath + " v0.1.0\n)\n", "cmd/gozkd": "\n\t" + modulePath + "/metrics v0.1.0\n"}
	for _, c := range []struct{ name, imports, want string }{
		{"server/a.go", "wal", ""},
		{"metrics/a.go", "server", ""},
		{"cmd/gozkd/internal/a/a.go", "metrics", ""},
		{"cmd/gozkd/a.go", "server", "server is in another module, which cmd/gozkd/go.mod does not require"},
		{"server/a_test.go", "metrics", "metrics is in another module, which go.mod does not require"},
		{"metrics/a.go", "cmd/gozkd/internal/a", "which metrics/go.mod does not require"},
	} {
		mustFind(t, func(srcs []source) []string { return undeclared(srcs, gomods) }, sample(t, c.name, fmt.Sprintf("package p\nimport %q\n", modulePath+"/"+c.imports)), c.want)
	}

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
