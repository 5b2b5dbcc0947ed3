package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// linked are the modules that a program gets when it embeds the server, each with what brings it.
var linked = map[string]string{
	modulePath:                      "ourselves",
	"go.etcd.io/raft/v3":            "consensus",
	"google.golang.org/protobuf":    "raft's messages",
	"go.etcd.io/bbolt":              "the checkpoint",
	"golang.org/x/sys":              "bbolt, and system calls of our own",
	"github.com/cespare/xxhash/v2":  "datatree's digest",
	"github.com/hashicorp/go-hclog": "logging",
	"github.com/fatih/color":        "hclog",
	"github.com/mattn/go-colorable": "hclog",
	"github.com/mattn/go-isatty":    "hclog",
}

// heavy are packages of the standard library that the server must not bring: who needs them imports admin or metrics.
var heavy = []string{"net/http", "html/template", "text/template", "expvar"}

// TestServerLinksFewModules holds the promise to those who embed us: the short list above and nothing else.
func TestServerLinksFewModules(t *testing.T) {
	if _, err := os.Stat(filepath.Join(root, "server")); err != nil {
		t.Skip("not there yet, so not checked: server")
	}
	load(t) // NB: opens every source file, so that a cached result of this test dies with any change of them
	for _, goos := range []string{"linux", "darwin", "windows"} {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{else}}std:{{.ImportPath}}{{end}}", "./server")
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list for %s: %v", goos, err)
		}
		modules := strings.Fields(string(out))
		if !slices.Contains(modules, modulePath) {
			t.Fatalf("go list for %s does not list our own module: %q", goos, modules)
		}
		slices.Sort(modules)
		for _, m := range slices.Compact(modules) {
			if p, std := strings.CutPrefix(m, "std:"); std {
				if slices.Contains(heavy, p) {
					t.Errorf("server links %s on %s", p, goos)
				}
				continue
			}
			if linked[m] == "" {
				t.Errorf("server links module %s on %s: it is not on the list", m, goos)
			}
		}
	}
}
