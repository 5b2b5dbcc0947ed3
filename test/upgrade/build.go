package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// versions are the programs between which the ensemble moves.
type versions struct{ from, this, next string }

// build builds all versions into dir.
func build(ctx context.Context, root, dir, from string) (versions, error) {
	v := versions{from: filepath.Join(dir, "from"), this: filepath.Join(dir, "this"), next: filepath.Join(dir, "next")}
	source := filepath.Join(dir, "source")
	if err := os.Mkdir(source, 0o755); err != nil {
		return v, err
	}
	archive := filepath.Join(dir, "source.tar")
	if err := command(ctx, root, "git", "archive", "-o", archive, from); err != nil {
		return v, err
	}
	if err := command(ctx, source, "tar", "-xf", archive); err != nil {
		return v, err
	}
	overlay, err := oneLevelMore(root, dir)
	if err != nil {
		return v, err
	}
	for _, b := range []struct{ in, out, overlay string }{{source, v.from, ""}, {root, v.this, ""}, {root, v.next, overlay}} {
		if err := command(ctx, b.in, "go", "build", "-overlay", b.overlay, "-o", b.out, "./cmd/gozkd"); err != nil {
			return v, err
		}
	}
	return v, nil
}

var supported = regexp.MustCompile(`(var SupportedLevels = LevelRange\{Min: \w+, Max: )(\w+)\}`)

// oneLevelMore writes an overlay for go build with which the program supports another feature level,
// and returns its path.
func oneLevelMore(root, dir string) (overlay string, err error) {
	path := filepath.Join(root, "consensus", "internal", "core", "level.go")
	code, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if !supported.Match(code) {
		return "", fmt.Errorf("%s: no line matches %v", path, supported)
	}
	replacement := filepath.Join(dir, "level.go")
	if err := os.WriteFile(replacement, supported.ReplaceAll(code, []byte("${1}${2} + 1}")), 0o644); err != nil {
		return "", err
	}
	b, err := json.Marshal(map[string]map[string]string{"Replace": {path: replacement}})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, b, 0o644)
}

func command(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}
