//go:build linux

package jepsenlite

import (
	"context"
	"path/filepath"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/compat/server"
)

// Names of products for Find.
const (
	Gozkd     = "gozkd"
	ZooKeeper = "zookeeper"
)

// Find builds or installs a product and writes its files to dir. gozkd is the binary to test; if
// empty, it is built from the tree.
func Find(ctx context.Context, name, gozkd, dir string) Product {
	root := install.Root(ctx)
	switch name {
	case Gozkd:
		if gozkd == "" {
			gozkd = must.Get(server.BuildGozkd(ctx, root, dir))
		}
		return Product{Name: Gozkd, Command: []string{must.Get(filepath.Abs(gozkd)), "serve"}}
	case ZooKeeper:
		return Product{Name: ZooKeeper, Command: []string{"java", "-Xms64m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
			"-Dlogback.configurationFile=" + server.WriteLogging(dir, ""), "-cp", install.MavenZooKeeper(ctx, root), "org.apache.zookeeper.server.quorum.QuorumPeerMain"}}
	}
	must.Failf("no product %q: know %s and %s", name, Gozkd, ZooKeeper)
	return Product{}
}
