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

// PostgreSQL installs Debian's PostgreSQL unless a PostgreSQL is installed, and returns the
// directory of its programs.
func PostgreSQL(ctx context.Context) (bin string) {
	const pattern = "/usr/lib/postgresql/*/bin"
	if found := must.Get(filepath.Glob(pattern)); len(found) > 0 {
		return slices.Max(found)
	}
	debian(ctx, "postgresql")
	found := must.Get(filepath.Glob(pattern))
	if len(found) == 0 {
		must.Failf("install: Debian's package postgresql left no %s", pattern)
	}
	return slices.Max(found)
}

// ClickHouse unpacks Debian's ClickHouse below the cache and returns the directory that takes the
// place of / and the version. The package is not installed, since that would start a server.
func ClickHouse(ctx context.Context, root string) (dir, version string) {
	dir = Debs(ctx, root, "clickhouse", "clickhouse-server", "clickhouse-common", "libboost-filesystem1.74.0",
		"libboost-program-options1.74.0", "libcapnp-0.9.2", "libcctz2", "libcpuinfo0", "libdouble-conversion3", "libfarmhash0",
		"libicu72", "libjemalloc2", "libltdl7", "liblz4-1", "libmariadb3", "libmetrohash1", "libodbc2", "libpcre3",
		"libpococrypto80", "libpocodata80", "libpocodataodbc80", "libpocofoundation80", "libpocojson80", "libpocomongodb80",
		"libpoconet80", "libpoconetssl80", "libpocoutil80", "libpocoxml80", "librdkafka1", "libre2-9", "libssl3", "libzstd1")
	libraries := must.Get(filepath.Glob(filepath.Join(dir, "usr/lib/*/libclickhouse.so.*.*.*")))
	if len(libraries) != 1 {
		must.Failf("install: Debian's ClickHouse has the libraries %q, not one", libraries)
	}
	return dir, regexp.MustCompile(`[0-9.]+$`).FindString(libraries[0])[1:]
}

// GoProgram builds a program or, of a file of tests, the test binary. The file's name ends in
// .go.txt, so that the file is no part of this module. The build is in a module of its own below
// the cache, which requires module, such as "example.com/m v1.2.3".
func GoProgram(ctx context.Context, root, module, source string) (program string) {
	file := strings.TrimSuffix(filepath.Base(source), ".txt")
	name := "program-" + strings.TrimSuffix(file, ".go")
	defer alone(ctx, root, name)()
	dir := cacheDir(root, name)
	program = filepath.Join(dir, "program")
	stamp := filepath.Join(dir, "module") // written last
	if built, err := os.ReadFile(stamp); err == nil && string(built) == module && newer(stamp, source) {
		return program
	}
	must.Do(os.WriteFile(filepath.Join(dir, file), must.Get(os.ReadFile(source)), 0o644))
	mod := fmt.Appendf(nil, "module program\n\ngo 1.26\n\nrequire %s\n", module)
	must.Do(os.WriteFile(filepath.Join(dir, "go.mod"), mod, 0o644))
	build := []string{"GOWORK=off", "go", "build"}
	if strings.HasSuffix(file, "_test.go") {
		build = []string{"GOWORK=off", "go", "test", "-c"}
	}
	must.Get(output(ctx, dir, "env", append(build, "-trimpath", "-mod=mod", "-o", program)...))
	must.Do(os.WriteFile(stamp, []byte(module), 0o644))
	return program
}
