package archtest

import (
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// linked are the modules that a program gets with a package, each with the reason.
// docs/guide/embedding.md shows them.
var linked = map[string]map[string]string{
	"server": serverModules,
	"zktest": with(serverModules, map[string]string{
		"github.com/go-zookeeper/zk": "the client that `Connect` returns",
	}),
}

var serverModules = map[string]string{
	modulePath:                      "ourselves",
	"go.etcd.io/raft/v3":            "consensus: elections, replication, changes of the ensemble",
	"google.golang.org/protobuf":    "raft's messages are made with it",
	"golang.org/x/sys":              "system calls: for preallocation, folder locks and limits",
	"go.etcd.io/bbolt":              "tools read checkpoints with it; a program that only serves is linked without",
	"github.com/cespare/xxhash/v2":  "the digest of the znodes",
	"github.com/hashicorp/go-hclog": "logging: `Config.Logger` is its type",
	"github.com/fatih/color":        "hclog can print in colors",
	"github.com/mattn/go-colorable": "the same, on Windows",
	"github.com/mattn/go-isatty":    "the same, on terminals only",
}

func with(modules, more map[string]string) map[string]string {
	all := maps.Clone(modules)
	maps.Copy(all, more)
	return all
}

// heavy are packages of the standard library that the server must not bring: who needs them imports
// admin or metrics.
var heavy = []string{"net/http", "html/template", "text/template", "expvar"}

// TestFewModulesAreLinked holds the promise to those who embed us, or test with us: the short lists
// above and nothing else.
func TestFewModulesAreLinked(t *testing.T) {
	load(t) // NB: opens every source file, so that a cached result of this test dies with any change of them
	platforms := []string{"linux", "darwin", "windows"}
	closures := make(map[string]map[string][]string) // by platform
	for _, goos := range platforms {
		closures[goos] = closuresFor(t, goos)
	}
	for pkg, allowed := range linked {
		seen := make(map[string]bool)
		for _, goos := range platforms {
			for _, m := range closures[goos][pkg] {
				seen[m] = true
				p, std := strings.CutPrefix(m, "std:")
				switch {
				case std && slices.Contains(heavy, p):
					t.Errorf("%s links %s on %s", pkg, p, goos)
				case !std && allowed[m] == "":
					t.Errorf("%s links module %s on %s: it is not on the list", pkg, m, goos)
				}
			}
		}
		for m := range allowed {
			if !seen[m] {
				t.Errorf("module %s is on the list of %s, which does not link it", m, pkg)
			}
		}
	}
}

// closuresFor returns the modules of which a package of linked links something on a platform, and
// the packages of the standard library, as std:PATH.
func closuresFor(t *testing.T, goos string) map[string][]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{.ImportPath}} {{with .Module}}{{.Path}}{{else}}std:{{.ImportPath}}{{end}}{{if not .DepOnly}} {{join .Deps \" \"}}{{end}}")
	for pkg := range linked {
		cmd.Args = append(cmd.Args, "./"+pkg)
	}
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list for %s: %v", goos, err)
	}
	module := make(map[string]string)
	closures := make(map[string][]string)
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		module[f[0]] = f[1]
		if len(f) > 2 { // a package of linked, which comes after all that it imports
			var modules []string
			for _, p := range append(f[2:], f[0]) {
				modules = append(modules, module[p])
			}
			slices.Sort(modules)
			closures[strings.TrimPrefix(f[0], modulePath+"/")] = slices.Compact(modules)
		}
	}
	return closures
}

// TestNotLinked: a program that uses recipes with Connect does not link go-zookeeper; package gozk
// does. gozkd does not link what injects faults.
func TestNotLinked(t *testing.T) {
	load(t) // NB: opens every source file, so that a cached result of this test dies with any change of them
	cmd := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.ImportPath}} {{join .Deps \" \"}}", "./recipes/...", "./cmd/gozkd")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := 0
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		packages++
		if adapter := f[0] == modulePath+"/recipes/gozk"; slices.Contains(f, "github.com/go-zookeeper/zk") != adapter {
			t.Errorf("%s links go-zookeeper, or is its adapter and does not", f[0])
		}
		if slices.Contains(f, modulePath+"/internal/faultproxy") {
			t.Errorf("%s links internal/faultproxy", f[0])
		}
	}
	if packages < 10 {
		t.Errorf("%d packages", packages)
	}
}
