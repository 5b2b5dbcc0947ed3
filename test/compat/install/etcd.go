package install

import (
	"context"
	"os"
	"path/filepath"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// EtcdVersion is that of Etcd.
const EtcdVersion = "3.6.16"

// Etcd builds etcd's server from the Go module proxy and returns the path of the binary. The
// server's module cannot be installed by its name, because it replaces others.
func Etcd(ctx context.Context, root string) (binary string) {
	defer alone(ctx, root, "etcd")()
	dir := cacheDir(root, "etcd-"+EtcdVersion)
	binary = filepath.Join(dir, "etcd")
	if _, err := os.Stat(binary); err == nil {
		return binary
	}
	mod := "module etcd\n\ngo 1.26\n\nrequire go.etcd.io/etcd/server/v3 v" + EtcdVersion + "\n"
	main := "package main\n\nimport (\n\t\"os\"\n\n\t\"go.etcd.io/etcd/server/v3/etcdmain\"\n)\n\nfunc main() { etcdmain.Main(os.Args) }\n"
	must.Do(os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o644))
	must.Do(os.WriteFile(filepath.Join(dir, "main.go"), []byte(main), 0o644))
	Output(ctx, dir, "env", "GOWORK=off", "CGO_ENABLED=0", "go", "build", "-mod=mod", "-trimpath", "-o", binary, ".")
	return binary
}
