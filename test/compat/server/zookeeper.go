package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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

// startAttempts bounds the attempts to start when another process takes the port.
const startAttempts = 3

// StartZooKeeper installs Apache ZooKeeper if necessary, starts a standalone server, and returns
// when it answers. version is Debian, Maven or a release. ctx bounds the start only: the process
// runs until Stop or Kill.
func StartZooKeeper(ctx context.Context, version string, opts Options) (*Process, error) {
	classPath, err := zooKeeperClassPath(ctx, version)
	if err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		p, err := startZooKeeper(ctx, classPath, opts)
		// A process that ends may have found its port taken; releases without a logger do not say
		// so.
		if err == nil || opts.Port != 0 || attempt == startAttempts || !strings.Contains(err.Error(), endedEarly) {
			return p, err
		}
	}
}

func zooKeeperClassPath(ctx context.Context, version string) (classPath string, err error) {
	err = must.Try(func() {
		switch version {
		case Debian:
			classPath = install.DebianZooKeeper(ctx)
		case Maven:
			classPath = install.MavenZooKeeper(ctx, install.Root(ctx))
		default:
			if strings.Count(version, ".") != 2 {
				must.Failf("server: no ZooKeeper %q: know %s, %s, and releases such as 3.4.14", version, Debian, Maven)
			}
			classPath = install.ZooKeeperRelease(ctx, install.Root(ctx), version)
		}
	})
	return classPath, err
}

func startZooKeeper(ctx context.Context, classPath string, opts Options) (_ *Process, err error) {
	opts, work, err := opts.prepare()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(work))
		}
	}()
	if opts.Port == 0 {
		ports, err := FreePorts(1) // ZooKeeper takes clientPort=0 for "none"
		if err != nil {
			return nil, err
		}
		opts.Port = ports[0]
	}
	opts.Keys["dataDir"] = opts.DataDir
	opts.Keys["clientPort"] = strconv.Itoa(opts.Port)
	opts.Keys["clientPortAddress"] = "127.0.0.1"
	secureAddr, err := opts.secure()
	if err != nil {
		return nil, err
	}
	args, err := zooKeeperArgs(classPath, work, opts)
	if err != nil {
		return nil, err
	}
	p, err := start(opts.command("java", args...), filepath.Join(work, "server.log"))
	if err != nil {
		return nil, err
	}
	p.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(opts.Port))
	p.tempDir, p.secureAddr = work, secureAddr
	if err := p.awaitAnswer(ctx, "ZooKeeper"); err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	return p, nil
}

// zooKeeperArgs writes zoo.cfg and a logging configuration into dir and returns the arguments of
// java. Nil JVMFlags mean a quick start and a small heap.
func zooKeeperArgs(classPath, dir string, opts Options) ([]string, error) {
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
	config, err := writeConfig(dir, keys)
	if err != nil {
		return nil, err
	}
	logging, err := writeLogging(dir, opts.AuditLog)
	if err != nil {
		return nil, err
	}
	return append(args, "-Dlogback.configurationFile="+logging, "-cp", classPath, zooKeeperMain, config), nil
}

// quickJVM returns flags for a quick start and a small heap.
func quickJVM() []string {
	return []string{"-Xms64m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}
}

// writeLogging writes a logback configuration for warnings and errors, and returns its path.
// ZooKeeperServer warns of each client that does not ask for read-only mode, so it logs errors
// only. auditLog is the file of the audit log, or empty.
func writeLogging(dir, auditLog string) (string, error) {
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
	if err := os.WriteFile(path, []byte(config), 0o644); err != nil {
		return "", fmt.Errorf("server: %w", err)
	}
	return path, nil
}
