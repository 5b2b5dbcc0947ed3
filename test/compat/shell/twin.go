package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/zkclitwin"
	"github.com/gozkd/gozkd/test/compat/cases"
	"github.com/gozkd/gozkd/test/compat/install"
)

// Twin runs the newer ZooKeeper's shell and then gozkd cli through the same script on the server at
// addr and compares their output. A case is a part of the script; it fails with the lines whose
// outputs differ.
func Twin(ctx context.Context, root, gozkd, addr string) (cases.Report, error) {
	theirs, err := runScript(ctx, mavenShell(ctx, root, addr), addr)
	if err != nil {
		return cases.Report{Log: theirs}, err
	}
	ours, err := runScript(ctx, []string{gozkd, "cli", "-server", addr}, addr)
	if err != nil {
		return cases.Report{Log: ours}, err
	}
	report := cases.Report{Version: versionIn(theirs), Log: ours}
	for _, r := range zkclitwin.Compare(theirs, ours) {
		report.Results = append(report.Results, cases.Result(r))
	}
	return report, nil
}

// Record runs the newer ZooKeeper's shell through the script on the server at addr and returns the
// new value of zkclitwin.Recorded.
func Record(ctx context.Context, root, addr string) (string, error) {
	output, err := runScript(ctx, mavenShell(ctx, root, addr), addr)
	return strings.ReplaceAll(zkclitwin.Normalize(output), addr, "ADDRESS"), err
}

// runScript feeds the script to a shell and returns its output, standard error included, and its
// exit status.
func runScript(ctx context.Context, command []string, addr string) (string, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin = strings.NewReader(zkclitwin.Script(addr))
	cmd.Env = append(os.Environ(), "TZ=UTC", "LC_ALL=C.UTF-8")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	// Both exit with the status of the last command before quit, the mark, which fails.
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		return out.String(), fmt.Errorf("shell: %s: %w", command[0], err)
	}
	return fmt.Sprintf("%sexit status %d\n", out.String(), cmd.ProcessState.ExitCode()), nil
}

// CLIPath is where BuildCLI puts the gozkd that Twin runs.
func CLIPath(root string) string { return filepath.Join(root, ".cache", "compat", "cli", "gozkd") }

// BuildCLI builds that gozkd.
func BuildCLI(ctx context.Context, root string) {
	install.Output(ctx, root, "go", "build", "-o", CLIPath(root), "./cmd/gozkd")
}
