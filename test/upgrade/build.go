package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/install"
)

// versions are the programs between which the ensemble moves.
type versions struct {
	from, this, next string
	nextLevel        int // the highest that next supports
}

// build builds all versions into dir.
func build(ctx context.Context, root, dir, from string) versions {
	v := versions{from: filepath.Join(dir, "from"), this: filepath.Join(dir, "this"), next: filepath.Join(dir, "next")}
	source, archive := filepath.Join(dir, "source"), filepath.Join(dir, "source.tar")
	must.Do(os.Mkdir(source, 0o755))
	install.Output(ctx, root, "git", "archive", "-o", archive, from)
	install.Output(ctx, source, "tar", "-xf", archive)
	overlay, level := oneLevelMore(root, dir)
	v.nextLevel = level
	for _, b := range []struct{ in, out, overlay string }{{source, v.from, ""}, {root, v.this, ""}, {root, v.next, overlay}} {
		install.Output(ctx, b.in, "go", "build", "-overlay", b.overlay, "-o", b.out, "./cmd/gozkd")
	}
	return v
}

var supported = regexp.MustCompile(`(var SupportedLevels = LevelRange\{Min: \w+, Max: Level)(\d+)\}`)

// oneLevelMore writes an overlay for go build with which the program supports another feature
// level, and returns its path and that level.
func oneLevelMore(root, dir string) (overlay string, level int) {
	path := filepath.Join(root, "consensus", "internal", "core", "level.go")
	code := must.Get(os.ReadFile(path))
	match := supported.FindSubmatch(code)
	if match == nil {
		must.Failf("%s: no line matches %v", path, supported)
	}
	replacement := filepath.Join(dir, "level.go")
	must.Do(os.WriteFile(replacement, supported.ReplaceAll(code, []byte("${1}${2} + 1}")), 0o644))
	overlay = filepath.Join(dir, "overlay.json")
	must.Do(os.WriteFile(overlay, must.Get(json.Marshal(map[string]map[string]string{"Replace": {path: replacement}})), 0o644))
	return overlay, must.Get(strconv.Atoi(string(match[2]))) + 1
}
