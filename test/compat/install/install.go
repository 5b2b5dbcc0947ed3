package install

import (
	"bytes"
	"context"
	_ "embed" // zookeeper-release.xml
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// Root returns the absolute path of the repository: the directory of the go.work above the working
// directory.
func Root(ctx context.Context) string {
	work := strings.TrimSpace(must.Get(output(ctx, "", "go", "env", "GOWORK")))
	if filepath.Base(work) != "go.work" {
		must.Failf("install: run this inside the repository, without GOWORK: no go.work found here")
	}
	return filepath.Dir(work)
}

func cacheDir(root, name string) string {
	dir := filepath.Join(root, ".cache", "compat", name)
	must.Do(os.MkdirAll(dir, 0o755))
	return dir
}

// output runs a command in dir (empty: here) and returns its standard output. An error includes the
// output.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("install: %s: %w\n%s%s", strings.Join(cmd.Args, " "), err, out.String(), errOut.String())
	}
	return out.String(), nil
}

// Output runs a program in dir and returns its standard output. If the program fails, the work ends
// with all that it printed.
func Output(ctx context.Context, dir, name string, args ...string) string {
	return must.Get(output(ctx, dir, name, args...))
}

// newer reports whether file exists and is at least as new as every source.
func newer(file string, sources ...string) bool {
	have, err := os.Stat(file)
	if errors.Is(err, os.ErrNotExist) {
		return false
	}
	must.Do(err)
	for _, s := range sources {
		src := must.Get(os.Stat(s))
		if src.ModTime().After(have.ModTime()) {
			return false
		}
	}
	return true
}

// debianShellC is the C client's example shell as Debian packages it.
const debianShellC = "/usr/lib/zookeeper/bin/cli_mt"

// CShell installs the C client's example shell, cli_mt, and returns its path and version.
func CShell(ctx context.Context) (path, version string) {
	debian(ctx, "zookeeper-bin")
	return debianShellC, must.Get(output(ctx, "", "dpkg-query", "-W", "-f", "${Version}", "libzookeeper-mt2"))
}

// CClient compiles test/compat/cclient/client.c against Debian's libzookeeper_mt and returns the
// program's path.
func CClient(ctx context.Context, root string) (program string) {
	debian(ctx, "gcc", "libc6-dev", "libzookeeper-mt-dev")
	return compileC(ctx, root, "c", "", "-lzookeeper_mt")
}

// compileC compiles test/compat/cclient/client.c in dir, empty: the cache, with more arguments of
// gcc, and returns the program's path. name is a directory in the cache, and that of the lock.
func compileC(ctx context.Context, root, name, dir string, args ...string) (program string) {
	defer alone(ctx, root, name)()
	program = filepath.Join(cacheDir(root, name), "client")
	source := filepath.Join(root, "test", "compat", "cclient", "client.c")
	if newer(program, source) {
		return program
	}
	tmp := fmt.Sprintf("%s.%d", program, os.Getpid())
	must.Get(output(ctx, dir, "gcc", slices.Concat([]string{"-std=gnu11", "-O1", "-Wall", "-Wextra", "-DTHREADED", "-o", tmp, source}, args, []string{"-lpthread"})...))
	must.Do(os.Rename(tmp, program))
	return program
}

// debian installs the packages. apt's lists are refreshed only if an install fails.
func debian(ctx context.Context, packages ...string) {
	if _, err := exec.LookPath("dpkg-query"); err != nil {
		must.Failf("install: this machine has no dpkg; needed here are what Debian calls %s", strings.Join(packages, ", "))
	}
	var missing []string
	for _, p := range packages {
		state, err := output(ctx, "", "dpkg-query", "-W", "-f", "${Status}", p)
		if err != nil || state != "install ok installed" {
			missing = append(missing, p)
		}
	}
	if len(missing) == 0 {
		return
	}
	if os.Getuid() != 0 {
		must.Failf("install: missing Debian packages; install them with: sudo apt-get install --no-install-recommends %s",
			strings.Join(missing, " "))
	}
	defer alone(ctx, Root(ctx), "apt")()
	get := func(args ...string) error {
		_, err := output(ctx, "", "env", append([]string{"DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"}, args...)...)
		return err
	}
	installMissing := append([]string{"install", "--no-install-recommends"}, missing...)
	if get(installMissing...) != nil {
		must.Do(get("update"))
		must.Do(get(installMissing...))
	}
}

// Kazoo creates a Python environment with kazoo from test/compat/kazoo/requirements.txt and returns
// its interpreter.
func Kazoo(ctx context.Context, root string) (python string) {
	return Python(ctx, root, "venv", filepath.Join(root, "test", "compat", "kazoo", "requirements.txt"))
}

// Python creates a Python environment of this name with the packages of a requirements file, and
// returns its interpreter.
func Python(ctx context.Context, root, name, requirements string) (python string) {
	venv := filepath.Join(cacheDir(root, ""), name)
	python = filepath.Join(venv, "bin", "python")
	defer alone(ctx, root, name)()
	// The stamp is written last: an environment without a stamp is incomplete.
	stamp := filepath.Join(venv, "installed")
	if newer(stamp, requirements) {
		return python
	}
	if _, err := output(ctx, "", "python3", "-m", "venv", "--clear", venv); err != nil {
		debian(ctx, "python3", "python3-venv")
		must.Get(output(ctx, "", "python3", "-m", "venv", "--clear", venv))
	}
	must.Get(output(ctx, "", python, "-m", "pip", "install", "-q", "-r", requirements))
	must.Do(os.WriteFile(stamp, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644))
	return python
}

// Debian's ZooKeeper.
const (
	debianZooKeeperJar = "/usr/share/java/zookeeper.jar"
	debianZooKeeperCLI = "/usr/share/zookeeper/bin/zkCli.sh"
)

// DebianZooKeeper installs Debian's ZooKeeper and returns the class path of its server.
func DebianZooKeeper(ctx context.Context) (classPath string) {
	debian(ctx, "zookeeper")
	return debianZooKeeperJar
}

// DebianShell installs Debian's ZooKeeper and returns the path of its zkCli.sh.
func DebianShell(ctx context.Context) (path string) {
	debian(ctx, "zookeeper")
	return debianZooKeeperCLI
}

// MavenZooKeeper resolves test/compat/java/pom.xml and returns the class path of the newer
// ZooKeeper and of Curator.
func MavenZooKeeper(ctx context.Context, root string) (classPath string) {
	return Maven(ctx, root, "java", filepath.Join(root, "test", "compat", "java", "pom.xml"))
}

// Java returns a java command for short programs with this heap, without the main class.
func Java(root, heap, classPath string) []string {
	return []string{"java", "-Xmx" + heap, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dlogback.configurationFile=" + filepath.Join(root, "test", "compat", "java", "logback.xml"), "-cp", classPath}
}

// Maven returns the class path of a pom's dependencies. name is a directory in the cache.
func Maven(ctx context.Context, root, name, pom string) (classPath string) {
	defer alone(ctx, root, "m2")()
	return maven(ctx, root, cacheDir(root, name), pom, "")
}

// maven is Maven for a directory. text, unless empty, becomes the content of the pom.
func maven(ctx context.Context, root, dir, pom, text string) (classPath string) {
	file := filepath.Join(dir, "classpath")
	if cp, ok := cachedClassPath(file, pom); ok {
		return cp
	}
	if text != "" {
		must.Do(os.WriteFile(pom, []byte(text), 0o644))
	}
	tmp := fmt.Sprintf("%s.%d", file, os.Getpid())
	mvn(ctx, root, dir, "-q", "-f", pom, "dependency:build-classpath", "-Dmdep.outputFile="+tmp)
	must.Do(os.Rename(tmp, file))
	return string(must.Get(os.ReadFile(file)))
}

// Node makes sure that node and npm are there.
func Node(ctx context.Context) {
	if _, err := exec.LookPath("npm"); err != nil {
		debian(ctx, "nodejs", "npm")
	}
}

// Offline is Output of a program that reaches nothing but this machine, where the system can make
// that so.
func Offline(ctx context.Context, dir, name string, args ...string) string {
	inside := []string{"--map-root-user", "--net", "sh", "-c", `ip link set lo up && exec "$0" "$@"`}
	if _, err := output(ctx, "", "unshare", append(inside, "true")...); err != nil {
		fmt.Println("not cut off from the network, because", err)
		return Output(ctx, dir, name, args...)
	}
	return Output(ctx, dir, "unshare", append(append(inside, name), args...)...)
}

// Mvn runs Maven in dir with the repository of the cache, and returns what it printed. With the
// argument -o it runs Offline.
func Mvn(ctx context.Context, root, dir string, args ...string) string {
	defer alone(ctx, root, "m2")()
	return mvn(ctx, root, dir, args...)
}

func mvn(ctx context.Context, root, dir string, args ...string) string {
	// A Maven from elsewhere is fine.
	if _, err := exec.LookPath("mvn"); err != nil {
		debian(ctx, "maven")
	}
	run := Output
	if slices.Contains(args, "-o") {
		run = Offline
	}
	args = append([]string{"-B", "-ntp", "-Dmaven.repo.local=" + filepath.Join(root, ".cache", "compat", "m2")}, args...)
	return run(ctx, dir, "mvn", args...)
}

// releasePom is the pom of a release of ZooKeeper, which is called RELEASE in it.
//
//go:embed zookeeper-release.xml
var releasePom string

// ZooKeeperRelease resolves a release of ZooKeeper, such as 3.4.14, with the libraries that its
// distribution adds, and returns the class path of the server.
func ZooKeeperRelease(ctx context.Context, root, release string) (classPath string) {
	defer alone(ctx, root, "m2")()
	dir := cacheDir(root, filepath.Join("releases", release))
	return maven(ctx, root, dir, filepath.Join(dir, "pom.xml"), strings.ReplaceAll(releasePom, "RELEASE", release))
}

// cachedClassPath returns the class path in file if the file is newer than the pom and all jars of
// the class path exist.
func cachedClassPath(file, pom string) (string, bool) {
	if !newer(file, pom) {
		return "", false
	}
	cp, err := os.ReadFile(file)
	if err != nil {
		return "", false
	}
	for _, jar := range filepath.SplitList(string(cp)) {
		if _, err := os.Stat(jar); err != nil {
			return "", false
		}
	}
	return string(cp), true
}

// JavaClient compiles test/compat/java/src and returns the class path of its main class, Compat.
func JavaClient(ctx context.Context, root string) (classPath string) {
	libs := MavenZooKeeper(ctx, root)
	classes := Javac(ctx, root, "java", libs, filepath.Join(root, "test", "compat", "java", "src"))
	return classes + string(filepath.ListSeparator) + libs
}

// Javac compiles the Java sources below dirs, with libs on the class path, and returns the
// directory of the classes. name is a directory in the cache.
func Javac(ctx context.Context, root, name, libs string, dirs ...string) (classes string) {
	var sources []string
	for _, dir := range dirs {
		must.Do(filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".java") {
				sources = append(sources, path)
			}
			return err
		}))
	}
	if len(sources) == 0 {
		must.Failf("install: no Java sources in %s", strings.Join(dirs, " and "))
	}
	dir := cacheDir(root, name)
	classes = filepath.Join(dir, "classes")
	defer alone(ctx, root, name+"-classes")()
	stamp := filepath.Join(dir, "compiled") // written last
	if newer(stamp, sources...) {
		return classes
	}
	args := append([]string{"-nowarn", "-encoding", "UTF-8", "-proc:none", "-cp", libs, "-d", classes}, sources...)
	if _, err := output(ctx, dir, "javac", args...); err != nil {
		must.Failf("%w\n(javac is in Debian's default-jdk-headless)", err)
	}
	must.Do(os.WriteFile(stamp, nil, 0o644))
	return classes
}

// RustTests builds the tests of a published crate and returns the program. extra is a crate of ours
// that its tests need.
func RustTests(ctx context.Context, root, crate, version, extra string) (program string) {
	defer alone(ctx, root, "rust")()
	if _, err := exec.LookPath("cargo"); err != nil {
		debian(ctx, "cargo")
	}
	dir := cacheDir(root, "rust")
	program = filepath.Join(dir, crate+"-tests")
	if newer(program, filepath.Join(extra, "src", "lib.rs")) {
		return program
	}
	// A crate that depends on the published crate makes cargo fetch the source.
	must.Do(os.MkdirAll(filepath.Join(dir, "fetch", "src"), 0o755))
	must.Do(os.WriteFile(filepath.Join(dir, "fetch", "src", "lib.rs"), nil, 0o644))
	manifest := fmt.Sprintf("[package]\nname = \"fetch\"\nversion = \"0.0.0\"\nedition = \"2021\"\n[workspace]\n[dependencies]\n%s = \"=%s\"\n", crate, version)
	must.Do(os.WriteFile(filepath.Join(dir, "fetch", "Cargo.toml"), []byte(manifest), 0o644))
	var metadata struct {
		Packages []struct {
			Name string
			Path string `json:"manifest_path"`
		}
	}
	must.Do(json.Unmarshal([]byte(must.Get(output(ctx, filepath.Join(dir, "fetch"), "cargo", "metadata", "-q", "--format-version=1"))), &metadata))
	source := filepath.Join(dir, "source")
	must.Do(os.RemoveAll(source))
	for _, p := range metadata.Packages {
		if p.Name == crate {
			must.Do(os.CopyFS(source, os.DirFS(filepath.Dir(p.Path))))
		}
	}
	file := filepath.Join(source, "Cargo.toml")
	manifest = string(must.Get(os.ReadFile(file))) + fmt.Sprintf("\n[workspace]\n[dev-dependencies.%s]\npath = %q\n", filepath.Base(extra), extra)
	must.Do(os.WriteFile(file, []byte(manifest), 0o644))
	lines := must.Get(output(ctx, source, "env", "CARGO_PROFILE_DEV_LTO=off", "CARGO_PROFILE_DEV_DEBUG=0",
		"cargo", "test", "-q", "--no-run", "--test", "*", "--message-format=json", "--target-dir", filepath.Join(dir, "target")))
	for line := range strings.Lines(lines) {
		var built struct {
			Executable string
			Target     struct{ Kind []string }
		}
		if json.Unmarshal([]byte(line), &built) == nil && built.Executable != "" && slices.Contains(built.Target.Kind, "test") {
			must.Do(os.WriteFile(program, must.Get(os.ReadFile(built.Executable)), 0o755))
		}
	}
	if !newer(program, filepath.Join(extra, "src", "lib.rs")) {
		must.Failf("install: cargo built no test of %s", crate)
	}
	return program
}

// MavenVersion returns the version of an artifact in test/compat/java/pom.xml.
func MavenVersion(root, artifact string) string {
	return PomVersion(filepath.Join(root, "test", "compat", "java", "pom.xml"), artifact)
}

// PomVersion returns the version of an artifact in a pom.
func PomVersion(pom, artifact string) string {
	m := regexp.MustCompile(`<artifactId>` + regexp.QuoteMeta(artifact) + `</artifactId>\s*<version>([^<]+)<`).FindSubmatch(must.Get(os.ReadFile(pom)))
	if m == nil {
		must.Failf("install: %s names no version of %s", pom, artifact)
	}
	return string(m[1])
}
