package server

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/install"
)

// Versions for StartZooKeeper.
const (
	Debian = "3.8" // Debian's package, 3.8.0
	Maven  = "3.9" // the version in test/compat/java/pom.xml
)

// zooKeeperMain runs standalone servers and members of ensembles.
const zooKeeperMain = "org.apache.zookeeper.server.quorum.QuorumPeerMain"

// StartZooKeeper installs Apache ZooKeeper if necessary, starts a standalone server, and returns
// when it answers. version is Debian, Maven or a release. ctx bounds the start only: the process
// runs until Stop or Kill.
func StartZooKeeper(ctx context.Context, version string, opts Options) (*Process, error) {
	classPath, err := try(func() string { return zooKeeperClassPath(ctx, version) })
	if err != nil {
		return nil, err
	}
	return startAlone(ctx, "ZooKeeper", opts, func(work string, o Options) []string {
		return append([]string{"java"}, zooKeeperArgs(classPath, work, o)...)
	})
}

func zooKeeperClassPath(ctx context.Context, version string) string {
	switch version {
	case Debian:
		return install.DebianZooKeeper(ctx)
	case Maven:
		return install.MavenZooKeeper(ctx, install.Root(ctx))
	}
	if strings.Count(version, ".") != 2 {
		must.Failf("server: no ZooKeeper %q: know %s, %s, and releases such as 3.4.14", version, Debian, Maven)
	}
	return install.ZooKeeperRelease(ctx, install.Root(ctx), version)
}

// zooKeeperArgs writes zoo.cfg and a logging configuration into dir and returns the arguments of
// java. Nil JVMFlags mean a quick start and a small heap.
func zooKeeperArgs(classPath, dir string, opts Options) []string {
	args := slices.Clone(opts.JVMFlags)
	if args == nil {
		args = quickJVM()
	}
	keys := maps.Clone(opts.Keys)
	for k, v := range keys {
		// ZooKeeper reads these by their bare names, which zoo.cfg cannot set: it prefixes unknown
		// keys with "zookeeper.".
		if strings.HasPrefix(k, "jute.") || strings.HasPrefix(k, "znode.") || strings.HasPrefix(k, "java.") {
			args = append(args, "-D"+k+"="+v)
			delete(keys, k)
		}
	}
	return append(args, "-Dlogback.configurationFile="+WriteLogging(dir, opts.AuditLog), "-cp", classPath,
		zooKeeperMain, writeConfig(dir, keys))
}

// quickJVM returns flags for a quick start and a small heap.
func quickJVM() []string {
	return []string{"-Xms64m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}
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
