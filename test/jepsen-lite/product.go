//go:build linux

package jepsenlite

import (
	"context"
	"os"
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
		logging := filepath.Join(dir, "logback.xml")
		must.Do(os.WriteFile(logging, []byte(logback), 0o644))
		return Product{Name: ZooKeeper, Command: []string{"java", "-Xms64m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
			"-Dlogback.configurationFile=" + logging, "-cp", install.MavenZooKeeper(ctx, root), "org.apache.zookeeper.server.quorum.QuorumPeerMain"}}
	}
	must.Failf("no product %q: know %s and %s", name, Gozkd, ZooKeeper)
	return Product{}
}

// logback prints the important part of ZooKeeper's log to standard output.
const logback = `<configuration>
  <appender name="OUT" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{ISO8601} %-5p [%t:%C{1}@%L] - %m%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="OUT"/></root>
</configuration>
`
