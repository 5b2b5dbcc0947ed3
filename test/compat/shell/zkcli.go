package shell

import (
	"context"
	_ "embed" // the scripts
	"regexp"
	"slices"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/cases"
	"github.com/gozkd/gozkd/test/compat/install"
)

var (
	//go:embed climt.txt
	cliMTText string
	//go:embed zkcli.txt
	zkCliText string
)

// CliMT runs the C client's example shell through its script on the server at addr.
func CliMT(ctx context.Context, addr string) (cases.Report, error) {
	path, version := install.CShell(ctx)
	results, log := must.Get(readScript("climt", cliMTText, false)).run(ctx, []string{path, "-h", addr})
	return cases.Report{Version: version, Results: results, Log: log}, nil
}

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

func runZkCli(ctx context.Context, command []string, newer bool) (cases.Report, error) {
	results, log := must.Get(readScript("zkcli", zkCliText, newer)).run(ctx, command)
	return cases.Report{Results: results, Log: log, Version: versionIn(log)}, nil
}

// versionIn returns the version that a shell's output names.
func versionIn(log string) string {
	m := regexp.MustCompile(`ZooKeeper CLI version: (\d+\.\d+\.\d+)`).FindStringSubmatch(log)
	if m == nil {
		return "unknown"
	}
	return m[1]
}
