// Command release installs and imports the modules of gozkd as users do once they are released,
// from a module proxy that it makes from HEAD and the changes to tracked files, and fails if they
// can't:
//
//	release DIR
//
// DIR is the root of the repository. Modules of others come from the module cache, or from the
// proxy of go env GOPROXY.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
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

// imported are packages that a program imports without inheriting more than maxBuildList modules.
var imported = []string{"server", "zktest", "client", "recipes/lock"}

const maxBuildList = 60

// foreign are modules that gozkd's programs require, in older versions, which a program that
// imports gozkd must be able to keep.
var foreign = []struct{ module, version, pkg string }{
	{"github.com/prometheus/client_golang", "v1.20.5", "github.com/prometheus/client_golang/prometheus"},
	{"github.com/minio/minio-go/v7", "v7.0.80", "github.com/minio/minio-go/v7"},
}

func main() { must.Program("release", run) }

func run(ctx context.Context, args []string) {
	if len(args) != 1 {
		must.Failf("usage: release DIR")
	}
	u := user{ctx: ctx, dir: must.Get(os.MkdirTemp("", "gozkd-release-"))}
	defer must.Finally(func() error { return os.RemoveAll(u.dir) })
	version := u.publish(must.Get(filepath.Abs(args[0])))
	u.environment()
	u.install(version)
	for _, pkg := range imported {
		u.imports(version, pkg)
	}
	u.keepsVersions(version)
}

// user is somebody with a directory, to whom only the proxy is known.
type user struct {
	ctx context.Context
	dir string
	env []string
}

// publish fills a proxy with the modules, and returns their version.
func (u *user) publish(dir string) (version string) {
	archive, tree := filepath.Join(u.dir, "tree.tar"), filepath.Join(u.dir, "tree")
	must.Do(os.Mkdir(tree, 0o755))
	changed := u.output(dir, "git", "stash", "create") // a commit, or nothing
	u.output(dir, "git", "archive", "-o", archive, cmp.Or(changed, "HEAD"))
	u.output(dir, "tar", "-xf", archive, "-C", tree)
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
		info := must.Get(json.Marshal(map[string]any{"Version": version, "Time": time.Now().UTC().Truncate(time.Second)}))
		at := filepath.Join(u.dir, "proxy", filepath.FromSlash(m.Path), "@v")
		write(filepath.Join(at, "list"), []byte(version+"\n"))
		write(filepath.Join(at, version+".info"), info)
		write(filepath.Join(at, version+".mod"), must.Get(os.ReadFile(filepath.Join(tree, sub, "go.mod"))))
		write(filepath.Join(at, version+".zip"), packed.Bytes())
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

// environment sets what go commands of the user see: the proxy, and an empty module cache, because
// another release may have packed the version with other contents.
func (u *user) environment() {
	cache, proxy, _ := strings.Cut(u.output(u.dir, "go", "env", "GOMODCACHE", "GOPROXY"), "\n")
	url := func(dir ...string) string { return "file://" + filepath.ToSlash(filepath.Join(dir...)) }
	u.env = []string{
		"GOWORK=off", "GOFLAGS=-mod=mod -modcacherw -trimpath", "GONOSUMDB=" + root,
		"GOBIN=" + filepath.Join(u.dir, "bin"), "GOMODCACHE=" + filepath.Join(u.dir, "mod"),
		"GOPROXY=" + url(u.dir, "proxy") + "," + url(cache, "cache", "download") + "," + proxy,
	}
}

// install installs the programs in an empty directory, and runs them.
func (u *user) install(version string) {
	empty := filepath.Join(u.dir, "empty")
	must.Do(os.Mkdir(empty, 0o755))
	for _, program := range []string{"gozkd", "gozkd-testkit"} {
		u.output(empty, "go", "install", root+"/cmd/"+program+"@"+version)
		out := u.output(empty, filepath.Join(u.dir, "bin", program), "--version")
		if !strings.Contains(out, version[1:]) {
			must.Failf("%s --version prints %q, want %s in it", program, out, version)
		}
		fmt.Printf("go install %s@%s: %s\n", program, version, out)
	}
}

// program builds a program that imports packages in an empty module, after go get of modules.
func (u *user) program(name string, get, packages []string) (dir string) {
	dir = filepath.Join(u.dir, "programs", name)
	write(filepath.Join(dir, "go.mod"), []byte("module example.com/"+name+"\n\ngo 1.26.0\n"))
	for _, m := range get {
		u.output(dir, "go", "get", m)
	}
	text := "package main\n\nimport (\n"
	for _, pkg := range packages {
		text += fmt.Sprintf("\t_ %q\n", pkg)
	}
	write(filepath.Join(dir, "main.go"), []byte(text+")\n\nfunc main() {}\n"))
	u.output(dir, "go", "mod", "tidy")
	u.output(dir, "go", "build", "-o", os.DevNull, ".")
	return dir
}

// imports bounds the modules in the build list of a program that imports a package.
func (u *user) imports(version, pkg string) {
	dir := u.program(strings.ReplaceAll(pkg, "/", ""), []string{root + "@" + version}, []string{root + "/" + pkg})
	list := u.output(dir, "go", "list", "-m", "all")
	n := strings.Count(list, "\n") // the first line is the program itself
	fmt.Printf("a program that imports %s has %d modules in its build list\n", pkg, n)
	if n > maxBuildList {
		must.Failf("a program that imports %s has %d modules in its build list, allowed are %d:\n%s", pkg, n, maxBuildList, list)
	}
}

// keepsVersions checks that a program keeps its modules in older versions than gozkd requires.
func (u *user) keepsVersions(version string) {
	var get, packages []string
	for _, f := range foreign {
		get, packages = append(get, f.module+"@"+f.version), append(packages, f.pkg)
	}
	for _, pkg := range imported {
		packages = append(packages, root+"/"+pkg)
	}
	dir := u.program("own", append(get, root+"@"+version), packages)
	for _, f := range foreign {
		if got := u.output(dir, "go", "list", "-m", "-f", "{{.Version}}", f.module); got != f.version {
			must.Failf("gozkd raises the %s of a program from %s to %s", f.module, f.version, got)
		}
		fmt.Printf("a program that imports gozkd keeps %s %s\n", f.module, f.version)
	}
}

func write(name string, data []byte) {
	must.Do(os.MkdirAll(filepath.Dir(name), 0o755))
	must.Do(os.WriteFile(name, data, 0o644))
}

// output runs a program and returns what it prints, without the last newline.
func (u *user) output(dir, name string, args ...string) string {
	cmd := exec.CommandContext(u.ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), u.env...)
	var says bytes.Buffer
	cmd.Stderr = &says
	out, err := cmd.Output()
	if err != nil {
		must.Failf("%s: %w\n%s%s", cmd, err, out, says.Bytes())
	}
	return strings.TrimSpace(string(out))
}
