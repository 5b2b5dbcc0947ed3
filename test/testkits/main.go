// Command testkits builds the test kits for other languages and tests each as its user would: what
// was built is installed into an empty project, away from the repository, and runs without a
// network. With -all it builds the packages of all platforms, and tests nothing.
package main

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/install"
)

func main() { must.Program("testkits", run) }

// build is where the packages are made.
type build struct {
	root, dir, out string
	programs       string // a directory with gozkd-testkit-OS-ARCH
	version        string
	all            bool
}

func run(ctx context.Context, flags *flag.FlagSet, args []string) {
	b := build{root: install.Root(ctx)}
	flags.BoolVar(&b.all, "all", false, "build the packages of all platforms, and test nothing")
	flags.StringVar(&b.out, "out", "", "keep the packages in this directory")
	flags.StringVar(&b.version, "version", "", "the version of the packages (that of HEAD's tag, or of a prerelease)")
	only := flags.String("only", "python,java,js", "the kits, separated by commas")
	built := flags.String("programs", "", "take gozkd-testkit from OS/ARCH in this directory, and do not build it")
	must.Parsed(flags.Parse(args))
	if b.version == "" {
		b.version = versionOf(ctx, b.root)
	}
	b.dir = must.Get(os.MkdirTemp("", "gozkd-testkits-"))
	defer must.Finally(func() error { return os.RemoveAll(b.dir) })
	if b.out == "" {
		b.out = filepath.Join(b.dir, "out")
	}
	b.out = must.Get(filepath.Abs(b.out))
	b.programs = filepath.Join(b.dir, "programs")
	platforms := []string{platform}
	if b.all {
		platforms = strings.Fields("linux-amd64 linux-arm64 darwin-amd64 darwin-arm64 windows-amd64 windows-arm64")
	}
	for _, p := range platforms {
		system, arch, _ := strings.Cut(p, "-")
		program := filepath.Join(b.programs, "gozkd-testkit-"+p)
		suffix := ""
		if system == "windows" {
			suffix = ".exe"
		}
		program += suffix
		if *built != "" {
			must.Do(os.MkdirAll(b.programs, 0o755))
			must.Do(os.Link(filepath.Join(*built, system, arch, "gozkd-testkit"+suffix), program))
			continue
		}
		install.Output(ctx, b.root, "env", "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch,
			"go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, "./cmd/gozkd-testkit")
	}
	b.licences(*built)
	wanted := strings.Split(*only, ",")
	for _, kit := range []struct {
		name string
		do   func(*build, context.Context)
	}{{"python", (*build).python}, {"java", (*build).java}, {"js", (*build).js}} {
		if slices.Contains(wanted, kit.name) {
			must.Doing(kit.name, func() { kit.do(&b, ctx) })
		}
	}
}

// licences puts the texts of the licences beside the programs: ours, and with programs of a release
// those of what is linked.
func (b *build) licences(built string) {
	linked := must.Get(filepath.Glob(filepath.Join(built, "LICENSES-OF-LIBRARIES")))
	copied(b.programs, append(linked, filepath.Join(b.root, "LICENSE"))...)
}

// copied copies files into a directory, which is made if need be.
func copied(dir string, files ...string) {
	must.Do(os.MkdirAll(dir, 0o755))
	for _, file := range files {
		must.Do(os.WriteFile(filepath.Join(dir, filepath.Base(file)), must.Get(os.ReadFile(file)), 0o644))
	}
}

// versionOf returns the version of the tag of HEAD. Without a tag it returns a version with the
// number of commits, which Maven, PEP 440 and npm take for one before that of go.work.
func versionOf(ctx context.Context, root string) string {
	if tags := strings.Fields(install.Output(ctx, root, "git", "tag", "--points-at", "HEAD", "v*")); len(tags) > 0 {
		return tags[0][1:]
	}
	workspace := string(must.Get(os.ReadFile(filepath.Join(root, "go.work"))))
	_, next, _ := strings.Cut(workspace, "github.com/gozkd/gozkd v")
	return strings.Fields(next)[0] + "-alpha." + strings.TrimSpace(install.Output(ctx, root, "git", "rev-list", "--count", "HEAD"))
}

const platform = runtime.GOOS + "-" + runtime.GOARCH

// project copies the tests of a kit to a new directory, and the code of the page about it to the
// file example there. container, unless empty, is the file for the page about Testcontainers.
func (b *build) project(kit, example, container string) (dir string) {
	dir = filepath.Join(b.dir, kit+"-project")
	must.Do(os.CopyFS(dir, os.DirFS(filepath.Join(b.root, "testkit", kit, "tests"))))
	for page, file := range map[string]string{kit: example, "testcontainers": container} {
		text := string(must.Get(os.ReadFile(filepath.Join(b.root, "docs", "guide", "testkits", page+".md"))))
		var code []string
		for _, block := range strings.Split(text, "```"+kit+"\n")[1:] {
			text, _, _ := strings.Cut(block, "```")
			code = append(code, text)
		}
		if len(code) == 0 {
			must.Failf("testkits: docs/guide/testkits/%s.md has no code in %s", page, kit)
		}
		if file != "" {
			must.Do(os.WriteFile(filepath.Join(dir, file), []byte(strings.Join(code, "\n")), 0o644))
		}
	}
	return dir
}

// python checks the descriptions of our HTTP interfaces, builds wheels, and runs the tests with the
// wheel of this machine in two workers.
func (b *build) python(ctx context.Context) {
	kit := filepath.Join(b.root, "testkit", "python")
	interpreter := install.Python(ctx, b.root, "testkit", filepath.Join(kit, "tests", "requirements.txt"))
	install.Output(ctx, b.root, interpreter, "-m", "openapi_spec_validator", "testkit/openapi.json", "web/internal/restv2/openapi.json")
	install.Output(ctx, "", interpreter, filepath.Join(kit, "build.py"), b.version, b.out, b.programs)
	if b.all {
		return
	}
	wheels := must.Get(filepath.Glob(filepath.Join(b.out, "*.whl")))
	// From nowhere but the file.
	pip := []string{"-m", "pip", "install", "-q", "--no-index", "--no-deps", "--force-reinstall"}
	install.Output(ctx, "", interpreter, append(pip, wheels...)...)
	project := b.project("python", "test_page.py", "")
	pytest := []string{"-m", "pytest", "-q", "-rP", "-n", "2", "-p", "no:cacheprovider"}
	fmt.Print(install.Offline(ctx, project, interpreter, pytest...))
}

// java builds the jars, installs them into a local repository, and runs the tests of a project with
// Maven.
func (b *build) java(ctx context.Context) {
	source := filepath.Join(b.dir, "java")
	must.Do(os.CopyFS(source, os.DirFS(filepath.Join(b.root, "testkit", "java"))))
	programs := filepath.Join(b.dir, "java-programs")
	licences := must.Get(filepath.Glob(filepath.Join(b.programs, "LICENSE*")))
	own := filepath.Join(source, "src", "main", "resources", "META-INF")
	copied(own, filepath.Join(b.programs, "LICENSE"))
	for _, file := range must.Get(filepath.Glob(filepath.Join(b.programs, "gozkd-testkit-*"))) {
		name, suffix := strings.TrimPrefix(filepath.Base(file), "gozkd-testkit-"), filepath.Ext(file)
		name = strings.TrimSuffix(name, suffix)
		to := filepath.Join(programs, name, "gozkd-testkit", name)
		program := must.Get(os.ReadFile(file))
		must.Do(os.MkdirAll(to, 0o755))
		must.Do(os.WriteFile(filepath.Join(to, "gozkd-testkit"+suffix), program, 0o755))
		must.Do(os.WriteFile(filepath.Join(to, "sha256"), fmt.Appendf(nil, "%x\n", sha256.Sum256(program)), 0o644))
		copied(filepath.Join(programs, name, "META-INF"), licences...)
	}
	pom := filepath.Join(source, "pom.xml")
	text := string(must.Get(os.ReadFile(pom)))
	text = strings.Replace(text, "<version>0.0.0</version>", "<version>"+b.version+"</version>", 1)
	must.Do(os.WriteFile(pom, []byte(text), 0o644))
	install.Mvn(ctx, b.root, source, "-q", "install", "-Dprograms="+programs)
	copied(b.out, must.Get(filepath.Glob(filepath.Join(source, "target", "gozkd-testkit-*.jar")))...)
	// It has no dependency on what the jar contains.
	published := must.Get(os.ReadFile(filepath.Join(source, "dependency-reduced-pom.xml")))
	must.Do(os.WriteFile(filepath.Join(b.out, "gozkd-testkit-"+b.version+".pom"), published, 0o644))
	if b.all {
		return
	}
	project := b.project("java", "src/test/java/PageTest.java", "src/test/java/ZooKeeperContainer.java")
	test := []string{"test", "-Dtestkit.version=" + b.version, "-Dplatform=" + platform}
	install.Mvn(ctx, b.root, project, append(test, "-Dtest=PerMethodTest")...) // fetches all that a test needs
	fmt.Print(install.Mvn(ctx, b.root, project, append(test, "-o")...))
}

// js builds the packages for npm, and runs the tests of a project with that of this machine.
func (b *build) js(ctx context.Context) {
	kit := filepath.Join(b.root, "testkit", "js")
	install.Node(ctx)
	install.Output(ctx, "", "node", filepath.Join(kit, "build.mjs"), b.version, b.out, b.programs)
	if b.all {
		return
	}
	project := b.project("js", "page.test.js", "container.js")
	packages := must.Get(filepath.Glob(filepath.Join(b.out, "gozkd-testkit-*.tgz")))
	// The packages of other platforms are not there to be asked for.
	npm := []string{"install", "--silent", "--no-audit", "--no-fund", "--no-package-lock", "--omit=optional"}
	install.Output(ctx, project, "npm", append(npm, packages...)...)
	install.Offline(ctx, project, "npx", "--no-install", "tsc", "-p", ".")
	tests := must.Get(filepath.Glob(filepath.Join(project, "*.test.js")))
	fmt.Print(install.Offline(ctx, project, "node", append([]string{"--test"}, tests...)...))
	// Not with the kit: vitest has packages for each platform, too. A project finds them above.
	install.Output(ctx, b.dir, "npm", "install", "--silent", "--no-audit", "--no-fund", "--no-package-lock", "vitest@3.2.4", "jest@30.2.0")
	runners := filepath.Join(b.dir, "node_modules", ".bin")
	fmt.Print(install.Offline(ctx, project, filepath.Join(runners, "vitest"), "run", "vitest.spec.js"))
	install.Offline(ctx, project, filepath.Join(runners, "jest"), "--testMatch", "**/jest.spec.cjs") // reports on stderr
}
