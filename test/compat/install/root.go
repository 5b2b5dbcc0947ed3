package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// Root returns the absolute path of the repository: the directory of the go.mod above the working
// directory.
func Root(ctx context.Context) string {
	mod := strings.TrimSpace(must.Get(output(ctx, "", "go", "env", "GOMOD")))
	if filepath.Base(mod) != "go.mod" {
		must.Failf("install: run this inside the repository: no go.mod found here")
	}
	return filepath.Dir(mod)
}

// cacheDir returns .cache/compat/name under root and creates it.
func cacheDir(root, name string) string {
	dir := filepath.Join(root, ".cache", "compat", name)
	must.Do(os.MkdirAll(dir, 0o755))
	return dir
}

// output runs a command in dir (empty: here) and returns its standard output. An error includes the
// output.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("install: %s: %w\n%s%s", strings.Join(cmd.Args, " "), err, out.String(), errOut.String())
	}
	return out.String(), nil
}

// newer reports whether file exists and is at least as new as every source.
func newer(file string, sources ...string) bool {
	have, err := os.Stat(file)
	if errors.Is(err, os.ErrNotExist) {
		return false
	}
	must.Do(err)
	for _, s := range sources {
		src := must.Get(os.Stat(s))
		if src.ModTime().After(have.ModTime()) {
			return false
		}
	}
	return true
}
