package install

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// Debs downloads Debian packages, unpacks them below the cache without installing them, which needs
// no root, and returns the directory that takes the place of /. Programs there need
// LD_LIBRARY_PATH, see DebLibraries.
func Debs(ctx context.Context, root, name string, packages ...string) (dir string) {
	cache := cacheDir(root, name)
	defer alone(ctx, root, "apt")()
	dir = filepath.Join(cache, "root")
	// The stamp is written last: a directory without a stamp, or with another list, is incomplete.
	stamp, list := filepath.Join(cache, "unpacked"), strings.Join(packages, " ")
	if b, err := os.ReadFile(stamp); err == nil && string(b) == list {
		return dir
	}
	debs := filepath.Join(cache, "debs-"+strconv.Itoa(os.Getpid()))
	must.Do(os.RemoveAll(dir))
	must.Do(os.MkdirAll(debs, 0o755))
	defer func() { must.Do(os.RemoveAll(debs)) }()
	download := append([]string{"download", "-qq"}, packages...)
	if _, err := output(ctx, debs, "apt-get", download...); err != nil {
		must.Get(output(ctx, "", "apt-get", "-qq", "update"))
		must.Get(output(ctx, debs, "apt-get", download...))
	}
	for _, deb := range must.Get(filepath.Glob(filepath.Join(debs, "*.deb"))) {
		must.Get(output(ctx, "", "dpkg", "-x", deb, dir))
	}
	must.Do(os.WriteFile(stamp, []byte(list), 0o644))
	return dir
}

// DebLibraries returns the value of LD_LIBRARY_PATH for programs in a directory of Debs.
func DebLibraries(dir string) string {
	return strings.Join(must.Get(filepath.Glob(filepath.Join(dir, "usr/lib/*-linux-gnu*"))), string(filepath.ListSeparator))
}

// PureSASL is the package that kazoo needs for SASL.
const PureSASL = "pure-sasl==0.6.2"

// KazooWith is Kazoo with further packages of Python in the environment.
func KazooWith(ctx context.Context, root string, packages ...string) (python string) {
	python = Kazoo(ctx, root)
	defer alone(ctx, root, "venv")()
	stamp := filepath.Join(filepath.Dir(filepath.Dir(python)), "installed-"+strings.Join(packages, "-"))
	if newer(stamp) {
		return python
	}
	must.Get(output(ctx, "", python, append([]string{"-m", "pip", "install", "-q"}, packages...)...))
	must.Do(os.WriteFile(stamp, nil, 0o644))
	return python
}
