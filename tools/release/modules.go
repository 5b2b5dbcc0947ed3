package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// root is the path of the library's module, and the beginning of those of the others.
const root = "github.com/gozkd/gozkd"

// released are the directories of the modules that users install and import.
var released = []string{"", "metrics", "sasl/kerberos", "web", "cmd/gozkd", "cmd/gozkd-testkit"}

// publish makes a proxy of the modules in tree, and returns their version.
func (u *user) publish(tree, proxy string, at time.Time) (version string) {
	for _, sub := range released {
		for _, v := range check(tree, sub) {
			if version = cmp.Or(version, v); v != version {
				must.Failf("%s/go.mod requires a module of gozkd at %s, another is required at %s: run make version", sub, v, version)
			}
		}
	}
	for _, sub := range released {
		m := module.Version{Path: modulePath(sub), Version: version}
		var packed bytes.Buffer
		must.Do(zip.CreateFromDir(&packed, m, filepath.Join(tree, sub)))
		info := must.Get(json.Marshal(map[string]any{"Version": version, "Time": at.UTC().Truncate(time.Second)}))
		into := filepath.Join(proxy, filepath.FromSlash(m.Path), "@v")
		write(filepath.Join(into, "list"), []byte(version+"\n"))
		write(filepath.Join(into, version+".info"), info)
		write(filepath.Join(into, version+".mod"), must.Get(os.ReadFile(filepath.Join(tree, sub, "go.mod"))))
		write(filepath.Join(into, version+".zip"), packed.Bytes())
		fmt.Printf("%s %s: %d KB packed\n", m.Path, version, packed.Len()>>10)
	}
	return version
}

func modulePath(sub string) string { return strings.TrimSuffix(root+"/"+sub, "/") }

// check returns the versions in which a go.mod requires other modules of gozkd. It fails if the
// go.mod cannot be released.
func check(tree, sub string) (required []string) {
	name := filepath.Join(sub, "go.mod")
	f := must.Get(modfile.Parse(name, must.Get(os.ReadFile(filepath.Join(tree, name))), nil))
	if f.Module.Mod.Path != modulePath(sub) {
		must.Failf("%s is of module %s, want %s", name, f.Module.Mod.Path, modulePath(sub))
	}
	if len(f.Replace)+len(f.Exclude) > 0 {
		must.Failf("%s replaces or excludes modules, which go install refuses: only go.work may", name)
	}
	for _, r := range f.Require {
		if path, below := strings.CutPrefix(r.Mod.Path, root+"/"); below && !slices.Contains(released, path) {
			must.Failf("%s requires %s, which is never released", name, r.Mod.Path)
		} else if below || r.Mod.Path == root {
			required = append(required, r.Mod.Version)
		}
	}
	return required
}
