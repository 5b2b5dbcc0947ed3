package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

func TestMain(m *testing.M) { watchdog.Watch(m).Run() }

var (
	tree      = flag.String("tree", "", "the repository of which TestModules uses the modules")
	artifacts = flag.String("dist", "", "the directory of make release that TestArtifacts uses")
)

// TestModules installs and imports the modules of HEAD and changes to it, as users do after a
// release. make release-check runs it.
func TestModules(t *testing.T) { use(t, *tree, (*user).checkModules) }

// TestArtifacts takes artifacts as their users do: nothing of the repository is read. make
// release-try runs it.
func TestArtifacts(t *testing.T) { use(t, *artifacts, (*user).try) }

func use(t *testing.T, dir string, work func(u *user, dir string)) {
	if dir == "" {
		t.Skip("make release-check and release-try name what to test")
	}
	u := &user{ctx: t.Context(), dir: t.TempDir()}
	if err := must.Try(func() { work(u, must.Get(filepath.Abs(dir))) }); err != nil {
		t.Fatal(err)
	}
}

// imported are packages that a program imports without inheriting more than maxBuildList modules.
var imported = []string{"server", "zktest", "client", "recipes/lock"}

const maxBuildList = 60

// foreign are modules that gozkd's programs require, in older versions, which a program that
// imports gozkd must be able to keep.
var foreign = []struct{ module, version, pkg string }{
	{"github.com/prometheus/client_golang", "v1.20.5", "github.com/prometheus/client_golang/prometheus"},
	{"github.com/minio/minio-go/v7", "v7.0.80", "github.com/minio/minio-go/v7"},
}

// checkModules installs and imports the modules of HEAD and changes to it.
func (u *user) checkModules(dir string) {
	tree := filepath.Join(u.dir, "tree")
	must.Do(os.Mkdir(tree, 0o755))
	archive := filepath.Join(u.dir, "tree.tar")
	changed := u.output(dir, "git", "stash", "create") // a commit, or nothing
	u.output(dir, "git", "archive", "-o", archive, cmp.Or(changed, "HEAD"))
	u.output(dir, "tar", "-xf", archive, "-C", tree)
	version := u.publish(tree, filepath.Join(u.dir, "proxy"), time.Now())
	u.environment(filepath.Join(u.dir, "proxy"))
	u.checkUse(version)
}

// checkUse installs and imports the modules of the proxy.
func (u *user) checkUse(version string) {
	u.install(version)
	for _, pkg := range imported {
		u.imports(version, pkg)
	}
	u.keepsVersions(version)
	u.followsPage(version)
}

// pages has the guide's pages for newcomers. It is all of the repository that users read here.
const pages = "../../docs/guide/start"

// followsPage runs the program and the test of the page go.md in a module of their own.
func (u *user) followsPage(version string) {
	dir := filepath.Join(u.dir, "programs", "page")
	write(filepath.Join(dir, "go.mod"), []byte("module example.com/page\n\ngo 1.26.0\n"))
	blocks := strings.Split(string(must.Get(os.ReadFile(filepath.Join(pages, "go.md")))), "```")
	for i, name := range []string{"main.go", "main_test.go"} {
		write(filepath.Join(dir, name), []byte(strings.TrimPrefix(blocks[2*i+1], "go\n")))
	}
	u.output(dir, "go", "get", root+"@"+version)
	u.output(dir, "go", "mod", "tidy")
	if got := u.output(dir, "go", "run", "."); !strings.HasPrefix(got, "alone with 127.0.0.1:") {
		must.Failf("the program of go.md prints %q", got)
	}
	fmt.Println("go.md:", u.output(dir, "go", "test", "."))
}

// environment sets what go commands of the user see: the proxy, and an empty module cache, because
// another release may have packed the version with other contents.
func (u *user) environment(proxies string) {
	cache, proxy, _ := strings.Cut(u.output(u.dir, "go", "env", "GOMODCACHE", "GOPROXY"), "\n")
	url := func(dir ...string) string { return "file://" + filepath.ToSlash(filepath.Join(dir...)) }
	u.env = []string{
		"GOWORK=off", "GOFLAGS=-mod=mod -modcacherw -trimpath", "GONOSUMDB=" + root,
		"GOBIN=" + filepath.Join(u.dir, "bin"), "GOMODCACHE=" + filepath.Join(u.dir, "mod"),
		"GOPROXY=" + url(proxies) + "," + url(cache, "cache", "download") + "," + proxy,
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
