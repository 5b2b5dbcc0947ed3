package main

import (
	"bytes"
	"context"
	_ "embed" // go-zookeeper/all_serve_test.go.txt
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/cases"
	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/compat/server"
)

// installGoZooKeeper prepares the integration tests of go-zookeeper, from its module's source at
// the version in go.mod. They start servers alone and in ensembles of three with zkServer.sh, at
// ports that two runs at once could both draw, so all are one part.
func installGoZooKeeper(ctx context.Context, root string) installed {
	var module struct{ Dir, Version string }
	must.Do(json.Unmarshal([]byte(install.Output(ctx, root, "go", "mod", "download", "-json", "github.com/go-zookeeper/zk")), &module))
	source := filepath.Join(root, ".cache", "compat", "suites-go-zookeeper")
	must.Do(os.RemoveAll(source))
	must.Do(os.CopyFS(source, os.DirFS(module.Dir)))
	// The tests wait for their servers with FLWSrvr, which expects a build date in a format that
	// ZooKeeper abandoned after 3.6, so no newer server is ever ready.
	const theirs, ours = "_, ok := FLWSrvr(serverAddrs, time.Second)", "ok := allServe(serverAddrs)"
	helper := filepath.Join(source, "server_help_test.go")
	text := string(must.Get(os.ReadFile(helper)))
	if n := strings.Count(text, theirs); n != 1 {
		must.Failf("go-zookeeper's server_help_test.go asks %d times whether servers are ready; expected once, with %q", n, theirs)
	}
	must.Do(os.WriteFile(helper, []byte(strings.Replace(text, theirs, ours, 1)), 0o644))
	must.Do(os.WriteFile(filepath.Join(source, "all_serve_test.go"), allServe, 0o644))
	const all = "integration"
	return installed{
		version: strings.TrimPrefix(module.Version, "v"),
		parts:   []string{all},
		quick:   []string{all},
		command: func(ctx context.Context, t target, _, _ string) *exec.Cmd {
			// Today's vet rejects some of their formatted messages, which are not under test.
			cmd := exec.CommandContext(ctx, "go", "-C", source, "test", "-vet=off", "-count=1", "-json", "-run", "^TestIntegration_", ".")
			cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "ZOOKEEPER_BIN_PATH="+t.bin, "ZK_VERSION="+server.Maven)
			return cmd
		},
		read: readGoTests,
	}
}

//go:embed go-zookeeper/all_serve_test.go.txt
var allServe []byte

// readGoTests reads the output of go test -json.
func readGoTests(output []byte) results {
	all := make(results)
	report, err := cases.ParseTests(bytes.NewReader(output), saidBy)
	if err != nil {
		all["go test"] = outcome{why: err.Error()}
	}
	for _, r := range report.Results {
		_, name, _ := strings.Cut(r.Name, ".") // all are of one package
		o := outcome{passed: r.Err == nil}
		if r.Err != nil {
			o.why, o.skipped = strings.CutPrefix(r.Err.Error(), "skip: ")
		}
		all[name] = o
	}
	return all
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
