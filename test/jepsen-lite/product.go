//go:build linux

package jepsenlite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

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
func Find(ctx context.Context, name, gozkd, dir string) (Product, error) {
	root, err := install.Root(ctx)
	if err != nil {
		return Product{}, err
	}
	switch name {
	case Gozkd:
		if gozkd == "" {
			gozkd, err = server.BuildGozkd(ctx, root, dir)
		} else {
			gozkd, err = filepath.Abs(gozkd)
		}
		return Product{Name: Gozkd, Command: []string{gozkd, "serve"}}, err
	case ZooKeeper:
		classPath, err := install.MavenZooKeeper(ctx, root)
		if err != nil {
			return Product{}, err
		}
		logging := filepath.Join(dir, "logback.xml")
		if err := os.WriteFile(logging, []byte(logback), 0o644); err != nil {
			return Product{}, fmt.Errorf("jepsenlite: %w", err)
		}
		return Product{Name: ZooKeeper, Command: []string{"java", "-Xms64m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
			"-Dlogback.configurationFile=" + logging, "-cp", classPath, "org.apache.zookeeper.server.quorum.QuorumPeerMain"}}, nil
	}
	return Product{}, fmt.Errorf("jepsenlite: no product %q: know %s and %s", name, Gozkd, ZooKeeper)
}

// logback prints the important part of ZooKeeper's log to standard output.
const logback = `<configuration>
  <appender name="OUT" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{ISO8601} %-5p [%t:%C{1}@%L] - %m%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="OUT"/></root>
</configuration>
`
