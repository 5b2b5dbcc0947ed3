package install

import (
	"context"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// PostgreSQL installs Debian's PostgreSQL unless one is there, and returns the directory of its
// programs.
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
// place of / and the version. It does not install it: the package would start a server.
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
