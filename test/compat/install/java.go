package install

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

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
	dir := cacheDir(root, "java")
	pom := filepath.Join(root, "test", "compat", "java", "pom.xml")
	file := filepath.Join(dir, "classpath")
	if cp, ok := cachedClassPath(file, pom); ok {
		return cp
	}
	// A Maven from elsewhere is fine.
	if _, err := exec.LookPath("mvn"); err != nil {
		debian(ctx, "maven")
	}
	tmp := fmt.Sprintf("%s.%d", file, os.Getpid())
	must.Get(output(ctx, dir, "mvn", "-q", "-B", "-f", pom, "dependency:build-classpath",
		"-Dmaven.repo.local="+filepath.Join(root, ".cache", "compat", "m2"), "-Dmdep.outputFile="+tmp))
	must.Do(os.Rename(tmp, file))
	return string(must.Get(os.ReadFile(file)))
}

// cachedClassPath returns the class path in file if it is newer than the pom and all its jars
// exist.
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
	dir := cacheDir(root, "java")
	var sources []string
	must.Do(filepath.WalkDir(filepath.Join(root, "test", "compat", "java", "src"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".java") {
			sources = append(sources, path)
		}
		return err
	}))
	if len(sources) == 0 {
		must.Failf("install: no Java sources in test/compat/java/src")
	}
	classes := filepath.Join(dir, "classes")
	cp := classes + string(filepath.ListSeparator) + libs
	if newer(filepath.Join(classes, "Compat.class"), sources...) {
		return cp
	}
	args := append([]string{"-nowarn", "-encoding", "UTF-8", "-proc:none", "-cp", libs, "-d", classes}, sources...)
	if _, err := output(ctx, dir, "javac", args...); err != nil {
		must.Failf("%w\n(javac is in Debian's default-jdk-headless)", err)
	}
	return cp
}

// MavenVersion returns the version of an artifact in the pom.
func MavenVersion(root, artifact string) string {
	pom := must.Get(os.ReadFile(filepath.Join(root, "test", "compat", "java", "pom.xml")))
	m := regexp.MustCompile(`<artifactId>` + regexp.QuoteMeta(artifact) + `</artifactId>\s*<version>([^<]+)<`).FindSubmatch(pom)
	if m == nil {
		must.Failf("install: pom.xml names no version of %s", artifact)
	}
	return string(m[1])
}
