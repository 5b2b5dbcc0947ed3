package install

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// SecureCClient compiles test/compat/cclient/client.c against the C client with OpenSSL and Cyrus
// SASL, and returns the program's path. The C client is built from Debian's source package, because
// the binary package has neither.
func SecureCClient(ctx context.Context, root string) (program string) {
	debian(ctx, "gcc", "libc6-dev", "make", "cmake", "libssl-dev", "libsasl2-dev", "libsasl2-modules")
	library := filepath.Join(cacheDir(root, "c-secure"), "library")
	buildCClient(ctx, root, library)
	return compileC(ctx, root, "c-secure", library, "-DUSE_STATIC_LIB", "-DHAVE_OPENSSL_H", "-DHAVE_CYRUS_SASL_H",
		"-Iinclude", "-Igenerated", "b/libzookeeper.a", "b/libhashtable.a", "-lssl", "-lcrypto", "-lsasl2", "-lm")
}

// buildCClient builds the C client in library, unless it is there.
func buildCClient(ctx context.Context, root, library string) {
	defer alone(ctx, root, "c-library")()
	if newer(filepath.Join(library, "b", "libzookeeper.a")) {
		return
	}
	tmp := fmt.Sprintf("%s.%d", library, os.Getpid())
	must.Do(os.RemoveAll(tmp))
	must.Do(os.MkdirAll(tmp, 0o755))
	defer func() { must.Do(os.RemoveAll(tmp)) }()
	tree := debianSource(ctx, tmp, "zookeeper")
	c := filepath.Join(tree, "zookeeper-client", "zookeeper-client-c")
	generated := filepath.Join(c, "generated")
	must.Do(os.MkdirAll(generated, 0o755))
	must.Get(output(ctx, generated, "java", "-cp", MavenZooKeeper(ctx, root), "org.apache.jute.compiler.generated.Rcc", "-l", "c",
		filepath.Join(tree, "zookeeper-jute", "src", "main", "resources", "zookeeper.jute")))
	must.Do(os.Symlink(filepath.Join(c, "include"), filepath.Join(c, "include", "zookeeper"))) // as Debian installs the headers
	must.Get(output(ctx, c, "cmake", "-DWANT_CPPUNIT=OFF", "-S", ".", "-B", "b"))
	must.Get(output(ctx, c, "cmake", "--build", "b", "--target", "zookeeper"))
	must.Do(os.RemoveAll(library))
	must.Do(os.Rename(c, library))
}

// debianSource downloads the files of a Debian source package into dir, and returns the directory
// of the upstream sources. The lists of packages are its own, because most machines have no lists
// of source packages.
func debianSource(ctx context.Context, dir, name string) (tree string) {
	policy := must.Get(output(ctx, "", "apt-cache", "policy", name))
	from := regexp.MustCompile(`(?m)^ +\d+ (https?://\S+) (\S+)/(\S+) \S+ Packages$`).FindStringSubmatch(policy)
	if from == nil {
		must.Failf("install: apt-cache policy %s names no archive; run apt-get update\n%s", name, policy)
	}
	list, lists, tree := filepath.Join(dir, "sources.list"), filepath.Join(dir, "lists"), filepath.Join(dir, "tree")
	must.Do(os.WriteFile(list, fmt.Appendf(nil, "deb-src %s %s %s\n", from[1], from[2], from[3]), 0o644))
	must.Do(os.MkdirAll(filepath.Join(lists, "partial"), 0o755))
	must.Do(os.MkdirAll(tree, 0o755))
	options := []string{"-qq", "-o", "Dir::Etc::SourceList=" + list, "-o", "Dir::Etc::SourceParts=-", "-o", "Dir::State::Lists=" + lists,
		"-o", "Dir::Cache=" + dir, "-o", "APT::Sandbox::User="}
	for _, command := range [][]string{{"update"}, {"source", "--download-only", name}} {
		must.Get(output(ctx, dir, "apt-get", slices.Concat(options, command)...))
	}
	archives := must.Get(filepath.Glob(filepath.Join(dir, name+"_*.orig.tar.*")))
	archives = slices.DeleteFunc(archives, func(path string) bool { return strings.HasSuffix(path, ".asc") })
	if len(archives) != 1 {
		must.Failf("install: apt-get source %s brought %d archives, want one", name, len(archives))
	}
	must.Get(output(ctx, dir, "tar", "-xf", archives[0], "-C", tree, "--strip-components=1"))
	return tree
}
