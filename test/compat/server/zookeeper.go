package server

import (
	"context"
	"os"
	"path/filepath"
	"strings"

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

// WriteLogging writes a logback configuration for warnings and errors, and returns its path.
// ZooKeeperServer warns of each client that does not ask for read-only mode, so it logs errors
// only. auditLog is the file of the audit log, or empty.
func WriteLogging(dir, auditLog string) string {
	config := `<configuration>
  <appender name="OUT" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{ISO8601} %-5p [%t:%C{1}@%L] - %m%n</pattern></encoder>
  </appender>
  <logger name="org.apache.zookeeper.server.ZooKeeperServer" level="ERROR"/>
  <root level="WARN"><appender-ref ref="OUT"/></root>
`
	if auditLog != "" {
		config += `  <appender name="AUDIT" class="ch.qos.logback.core.FileAppender">
    <file>` + auditLog + `</file><encoder><charset>UTF-8</charset><pattern>%d{ISO8601} %p %c{2}: %m%n</pattern></encoder>
  </appender>
  <logger name="org.apache.zookeeper.audit.Slf4jAuditLogger" additivity="false" level="INFO"><appender-ref ref="AUDIT"/></logger>
`
	}
	config += "</configuration>\n"
	path := filepath.Join(dir, "logback.xml")
	must.Do(os.WriteFile(path, []byte(config), 0o644))
	return path
}
