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
)

// Root returns the absolute path of the repository: the directory of the go.mod above the working
// directory.
func Root(ctx context.Context) (string, error) {
	out, err := output(ctx, "", "go", "env", "GOMOD")
	if err != nil {
		return "", err
	}
	mod := strings.TrimSpace(out)
	if filepath.Base(mod) != "go.mod" {
		return "", errors.New("install: run this inside the repository: no go.mod found here")
	}
	return filepath.Dir(mod), nil
}

// cacheDir returns .cache/compat/name under root and creates it.
func cacheDir(root, name string) (string, error) {
	dir := filepath.Join(root, ".cache", "compat", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("install: %w", err)
	}
	return dir, nil
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
func newer(file string, sources ...string) (bool, error) {
	have, err := os.Stat(file)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("install: %w", err)
	}
	for _, s := range sources {
		src, err := os.Stat(s)
		if err != nil {
			return false, fmt.Errorf("install: %w", err)
		}
		if src.ModTime().After(have.ModTime()) {
			return false, nil
		}
	}
	return true, nil
}
