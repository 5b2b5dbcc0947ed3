package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// Debian's ZooKeeper.
const (
	debianZooKeeperJar = "/usr/share/java/zookeeper.jar"
	debianZooKeeperCLI = "/usr/share/zookeeper/bin/zkCli.sh"
)

// DebianZooKeeper installs Debian's ZooKeeper and returns the class path of its server.
func DebianZooKeeper(ctx context.Context) (classPath string, err error) {
	if err := debian(ctx, "zookeeper"); err != nil {
		return "", err
	}
	return debianZooKeeperJar, nil
}

// DebianShell installs Debian's ZooKeeper and returns the path of its zkCli.sh.
func DebianShell(ctx context.Context) (path string, err error) {
	if err := debian(ctx, "zookeeper"); err != nil {
		return "", err
	}
	return debianZooKeeperCLI, nil
}

// MavenZooKeeper resolves test/compat/java/pom.xml and returns the class path of the newer
// ZooKeeper and of Curator.
func MavenZooKeeper(ctx context.Context, root string) (classPath string, err error) {
	dir, err := cacheDir(root, "java")
	if err != nil {
		return "", err
	}
	pom := filepath.Join(root, "test", "compat", "java", "pom.xml")
	file := filepath.Join(dir, "classpath")
	if cp, ok := cachedClassPath(file, pom); ok {
		return cp, nil
	}
	// A Maven from elsewhere is fine.
	if _, err := exec.LookPath("mvn"); err != nil {
		if err := debian(ctx, "maven"); err != nil {
			return "", err
		}
	}
	tmp := fmt.Sprintf("%s.%d", file, os.Getpid())
	_, err = output(ctx, dir, "mvn", "-q", "-B", "-f", pom, "dependency:build-classpath",
		"-Dmaven.repo.local="+filepath.Join(root, ".cache", "compat", "m2"), "-Dmdep.outputFile="+tmp)
	if err != nil {
		return "", err
	}
	if err := os.Rename(tmp, file); err != nil {
		return "", fmt.Errorf("install: %w", err)
	}
	cp, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("install: %w", err)
	}
	return string(cp), nil
}

// cachedClassPath returns the class path in file if it is newer than the pom and all its jars
// exist.
func cachedClassPath(file, pom string) (string, bool) {
	if ok, err := newer(file, pom); err != nil || !ok {
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
func JavaClient(ctx context.Context, root string) (classPath string, err error) {
	libs, err := MavenZooKeeper(ctx, root)
	if err != nil {
		return "", err
	}
	dir, err := cacheDir(root, "java")
	if err != nil {
		return "", err
	}
	var sources []string
	err = filepath.WalkDir(filepath.Join(root, "test", "compat", "java", "src"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".java") {
			sources = append(sources, path)
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("install: %w", err)
	}
	if len(sources) == 0 {
		return "", errors.New("install: no Java sources in test/compat/java/src")
	}
	classes := filepath.Join(dir, "classes")
	cp := classes + string(filepath.ListSeparator) + libs
	if ok, err := newer(filepath.Join(classes, "Compat.class"), sources...); err != nil || ok {
		return cp, err
	}
	args := append([]string{"-nowarn", "-encoding", "UTF-8", "-proc:none", "-cp", libs, "-d", classes}, sources...)
	if _, err := output(ctx, dir, "javac", args...); err != nil {
		return "", fmt.Errorf("%w\n(javac is in Debian's default-jdk-headless)", err)
	}
	return cp, nil
}

// MavenVersion returns the version of an artifact in the pom.
func MavenVersion(root, artifact string) (string, error) {
	pom, err := os.ReadFile(filepath.Join(root, "test", "compat", "java", "pom.xml"))
	if err != nil {
		return "", fmt.Errorf("install: %w", err)
	}
	m := regexp.MustCompile(`<artifactId>` + regexp.QuoteMeta(artifact) + `</artifactId>\s*<version>([^<]+)<`).FindSubmatch(pom)
	if m == nil {
		return "", fmt.Errorf("install: pom.xml names no version of %s", artifact)
	}
	return string(m[1]), nil
}
