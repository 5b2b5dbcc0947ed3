package server

import (
	"context"
	_ "embed" // logback.xml
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/install"
)

// Versions of ZooKeeper that are no releases.
const (
	Debian = "3.8" // Debian's package, 3.8.0
	Maven  = "3.9" // the version in test/compat/java/pom.xml
)

// zooKeeperMain runs standalone servers and members of ensembles.
const zooKeeperMain = "org.apache.zookeeper.server.quorum.QuorumPeerMain"

func zooKeeperClassPath(ctx context.Context, version string) string {
	switch version {
	case Debian:
		return install.DebianZooKeeper(ctx)
	case Maven:
		return install.MavenZooKeeper(ctx, install.Root(ctx))
	}
	return install.ZooKeeperRelease(ctx, install.Root(ctx), version)
}

// zooKeeperCommand writes a logging configuration into dir and returns the command line without the
// path of zoo.cfg. Nil JVMFlags mean a quick start and a small heap.
func zooKeeperCommand(ctx context.Context, version, dir string, opts Options) []string {
	line := append([]string{"java"}, opts.JVMFlags...)
	if opts.JVMFlags == nil {
		line = append(line, "-Xms64m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
	}
	for k, v := range opts.Keys {
		// ZooKeeper reads these by their bare names, which zoo.cfg cannot set: it prefixes unknown
		// keys with "zookeeper.".
		if strings.HasPrefix(k, "jute.") || strings.HasPrefix(k, "znode.") || strings.HasPrefix(k, "java.") {
			line = append(line, "-D"+k+"="+v)
			delete(opts.Keys, k)
		}
	}
	return append(line, "-Dlogback.configurationFile="+WriteLogging(dir, opts.AuditLog), "-cp", zooKeeperClassPath(ctx, version), zooKeeperMain)
}

//go:embed logback.xml
var logback string

// WriteLogging writes a logback configuration for warnings and errors, and returns its path.
// auditLog is the file of the audit log, or empty.
func WriteLogging(dir, auditLog string) string {
	var config strings.Builder
	must.Do(template.Must(template.New("").Parse(logback)).Execute(&config, auditLog))
	path := filepath.Join(dir, "logback.xml")
	must.Do(os.WriteFile(path, []byte(config.String()), 0o644))
	return path
}
