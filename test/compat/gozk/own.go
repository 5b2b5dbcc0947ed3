package gozk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gozkd/gozkd/test/compat/cases"
	"github.com/gozkd/gozkd/test/compat/server"
)

// RunOwn runs the client's own integration tests, from its module's source at the version in
// go.mod, against servers that they start: alone and in ensembles of three. bin is a directory with
// the zkServer.sh that starts them, root is this repository, and speaks is the ZooKeeper release
// that the tests shall assume. Only the named tests run; all, without names.
func RunOwn(ctx context.Context, root, bin, speaks string, only []string) (_ cases.Report, err error) {
	dir, err := os.MkdirTemp("", "gozkd-compat-gozk-")
	if err != nil {
		return cases.Report{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := copySource(ctx, root, dir); err != nil {
		return cases.Report{}, err
	}
	pattern := "^TestIntegration_"
	if len(only) > 0 {
		pattern = "^(" + strings.Join(only, "|") + ")$"
	}
	// Today's vet rejects some of their formatted messages, which are not under test.
	cmd := exec.CommandContext(ctx, "go", "test", "-vet=off", "-count=1", "-json", "-run", pattern, ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "ZOOKEEPER_BIN_PATH="+bin, "ZK_VERSION="+speaks)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	runErr := server.RunGroup(cmd)
	report, err := parseEvents(&out)
	report.Log = errOut.String() + report.Log
	if runErr != nil && (err != nil || report.OK() || len(report.Results) == 0) {
		err = errors.Join(fmt.Errorf("gozk: go test: %w", runErr), err)
	}
	return report, err
}

// copySource copies the module to dir and changes a line of it. The tests wait for their servers
// with FLWSrvr, which expects a build date in a format that ZooKeeper abandoned after 3.6, so no
// newer server is ever ready.
func copySource(ctx context.Context, root, dir string) error {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("gozk: go mod download %s: %w\n%s", module, err, out)
	}
	var source struct{ Dir string }
	if err := json.Unmarshal(out, &source); err != nil {
		return fmt.Errorf("gozk: go mod download: %w", err)
	}
	if err := os.CopyFS(dir, os.DirFS(source.Dir)); err != nil {
		return fmt.Errorf("gozk: %w", err)
	}
	const theirs, ours = "_, ok := FLWSrvr(serverAddrs, time.Second)", "ok := allServe(serverAddrs)"
	helper := filepath.Join(dir, "server_help_test.go")
	text, err := os.ReadFile(helper)
	if err != nil {
		return fmt.Errorf("gozk: %w", err)
	}
	if n := strings.Count(string(text), theirs); n != 1 {
		return fmt.Errorf("gozk: the client's server_help_test.go asks %d times whether servers are ready; expected once, with %q", n, theirs)
	}
	return errors.Join(
		// The module cache is read-only, and so are the copies.
		os.Chmod(helper, 0o644),
		os.WriteFile(helper, []byte(strings.Replace(string(text), theirs, ours, 1)), 0o644),
		os.WriteFile(filepath.Join(dir, "all_serve_test.go"), []byte(allServe), 0o644))
}

const allServe = `package zk

import (
	"strings"
	"time"
)

// allServe reports whether each server's srvr shows a mode.
func allServe(addrs []string) bool {
	for _, addr := range addrs {
		answer, err := fourLetterWord(addr, "srvr", time.Second)
		if err != nil || !strings.Contains(string(answer), "\nMode: ") {
			return false
		}
	}
	return true
}
`

// parseEvents parses the output of go test -json.
func parseEvents(r io.Reader) (cases.Report, error) {
	report, err := cases.ParseTests(r, saidBy)
	report.Version = Version()
	for i := range report.Results {
		_, report.Results[i].Name, _ = strings.Cut(report.Results[i].Name, ".") // all are of one package
	}
	return report, err
}

// saidBy returns the lines that a test itself printed, without its servers', a panic's first: no
// test runs after a panic.
func saidBy(log string) string {
	var said []string
	for line := range strings.Lines(log) {
		line = strings.TrimSpace(line)
		file, _, _ := strings.Cut(line, ":")
		if strings.HasSuffix(file, "_test.go") && !strings.Contains(file, "/") && !strings.Contains(line, "[ZKERR]") ||
			strings.HasPrefix(line, "panic: ") {
			said = append(said, line)
		}
	}
	return strings.Join(said, "; ")
}
