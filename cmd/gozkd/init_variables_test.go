package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
)

// Commands beside serve see variables that have a key in their name.
func TestInit_KeyInVariable(t *testing.T) {
	dir := t.TempDir()
	env := map[string]string{"ZOO_CONF_DIR": dir, "ZOO_CFG_dataDir": filepath.Join(dir, "of-variable")}
	status := run("gozkd", []string{"init", "--id", "1"}, cli.Env{
		Out: io.Discard, Err: os.Stderr, Getenv: func(name string) string { return env[name] },
		Environ: func() []string { return []string{"ZOO_CONF_DIR=…", "ZOO_CFG_dataDir=…"} },
	})
	if _, err := os.Stat(filepath.Join(env["ZOO_CFG_dataDir"], initializeFile)); status != cli.OK || err != nil {
		t.Errorf("exit status %d, %v", status, err)
	}
}
