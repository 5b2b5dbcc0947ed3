package install

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

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
	dir := cacheDir(root, "c")
	source := filepath.Join(root, "test", "compat", "cclient", "client.c")
	program = filepath.Join(dir, "client")
	if newer(program, source) {
		return program
	}
	tmp := fmt.Sprintf("%s.%d", program, os.Getpid())
	must.Get(output(ctx, dir, "gcc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-DTHREADED", "-o", tmp, source, "-lzookeeper_mt", "-lpthread"))
	must.Do(os.Rename(tmp, program))
	return program
}
