package install

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// debianShellC is the C client's example shell as Debian packages it.
const debianShellC = "/usr/lib/zookeeper/bin/cli_mt"

// CShell installs the C client's example shell, cli_mt, and returns its path and version.
func CShell(ctx context.Context) (path, version string, err error) {
	if err := debian(ctx, "zookeeper-bin"); err != nil {
		return "", "", err
	}
	version, err = debianVersion(ctx, "libzookeeper-mt2")
	return debianShellC, version, err
}

// CClient compiles test/compat/cclient/client.c against Debian's libzookeeper_mt and returns the
// program's path.
func CClient(ctx context.Context, root string) (program string, err error) {
	if err := debian(ctx, "gcc", "libc6-dev", "libzookeeper-mt-dev"); err != nil {
		return "", err
	}
	dir, err := cacheDir(root, "c")
	if err != nil {
		return "", err
	}
	source := filepath.Join(root, "test", "compat", "cclient", "client.c")
	program = filepath.Join(dir, "client")
	if ok, err := newer(program, source); err != nil || ok {
		return program, err
	}
	tmp := fmt.Sprintf("%s.%d", program, os.Getpid())
	_, err = output(ctx, dir, "gcc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-DTHREADED", "-o", tmp, source, "-lzookeeper_mt", "-lpthread")
	if err != nil {
		return "", err
	}
	if err := os.Rename(tmp, program); err != nil {
		return "", fmt.Errorf("install: %w", err)
	}
	return program, nil
}
