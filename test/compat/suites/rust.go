package main

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gozkd/gozkd/test/compat/install"
)

const rustVersion = "0.11.2"

// installRust prepares the tests of the crate zookeeper-client, as it was published. They run
// servers in containers; our crate testcontainers starts processes instead.
func installRust(ctx context.Context, root string) installed {
	program := install.RustTests(ctx, root, "zookeeper-client", rustVersion, filepath.Join(root, "test", "compat", "suites", "rust", "testcontainers"))
	return installed{
		version: rustVersion,
		parts:   []string{"zookeeper"},
		command: func(ctx context.Context, t target, _, dir string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, program, "--test-threads=4")
			cmd.Env = append(os.Environ(), "SUITES_BIN="+t.bin, "TMPDIR="+dir)
			return cmd
		},
		read: readLibtest,
	}
}

// readLibtest reads the lines "test NAME ... ok" of Rust's test harness.
func readLibtest(output []byte) results {
	all := make(results)
	lines := bufio.NewScanner(bytes.NewReader(output))
	lines.Buffer(nil, len(output)+1) // a server's line may be long
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), "test ")
		name, result, found := strings.Cut(rest, " ... ")
		if !ok || !found {
			continue
		}
		switch {
		case strings.HasPrefix(result, "ok"):
			all[name] = outcome{passed: true}
		case strings.HasPrefix(result, "ignored"):
			all[name] = outcome{skipped: true}
		case strings.HasPrefix(result, "FAILED"):
			all[name] = outcome{why: "failed; -logs keeps the output"}
		}
	}
	return all
}
