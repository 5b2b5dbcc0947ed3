package shell

import (
	"context"
	_ "embed" // zkcli.txt
	"regexp"
	"slices"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/cases"
	"github.com/gozkd/gozkd/test/compat/install"
)

// DebianZkCli runs Debian's zkCli.sh through its script on the server at addr.
func DebianZkCli(ctx context.Context, addr string) (cases.Report, error) {
	return runZkCli(ctx, []string{install.DebianShell(ctx), "-server", addr}, false)
}

// MavenZkCli runs the newer ZooKeeper's shell, with more flags for java, through its script on the
// server at addr.
func MavenZkCli(ctx context.Context, root, addr string, flags ...string) (cases.Report, error) {
	command := mavenShell(ctx, root, addr)
	return runZkCli(ctx, slices.Insert(command, 1, flags...), true)
}

// mavenShell returns the command that the newer zkCli.sh runs; the artifact in Maven has no shell
// script.
func mavenShell(ctx context.Context, root, addr string) []string {
	return append(install.Java(root, "128m", install.MavenZooKeeper(ctx, root)), "org.apache.zookeeper.ZooKeeperMain", "-server", addr)
}

//go:embed zkcli.txt
var zkCliText string

func runZkCli(ctx context.Context, command []string, newer bool) (cases.Report, error) {
	s := must.Get(readScript("zkcli", zkCliText, newer))
	results, log, err := s.run(ctx, command)
	report := cases.Report{Results: results, Log: log, Version: "unknown"}
	if m := regexp.MustCompile(`ZooKeeper CLI version: (\d+\.\d+\.\d+)`).FindStringSubmatch(log); m != nil {
		report.Version = m[1]
	}
	return report, err
}
