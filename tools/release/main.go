// Command release makes the artifacts of a release of the commit HEAD:
//
//	release -version 0.1.0 -out dist DIR
//
// DIR is the root of the repository. The tests of this package take them as their users do. Modules
// of others come from the module cache, or from the proxy of go env GOPROXY. The test kits need
// Java, Python and Node.js.
package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

func main() { must.Program("release", run) }

func run(ctx context.Context, fs *flag.FlagSet, args []string) {
	version := fs.String("version", "", "the version to make, without v")
	out := fs.String("out", "dist", "the directory for what is made, which is emptied first")
	only := fs.String("only", "", "the platforms to make, separated by commas, without test kits; default: all")
	must.Do(fs.Parse(args))
	if *only != "" {
		platforms = strings.Split(*only, ",")
	}
	if fs.NArg() != 1 {
		must.Failf("usage: release [flags] DIR")
	}
	u := &user{ctx: ctx, dir: must.Get(os.MkdirTemp("", "gozkd-release-"))}
	defer must.Finally(func() error { return os.RemoveAll(u.dir) })
	u.release(must.Get(filepath.Abs(fs.Arg(0))), *version, must.Get(filepath.Abs(*out)), *only == "")
}

// user is somebody with a directory, to whom only the proxy is known.
type user struct {
	ctx context.Context
	dir string
	env []string
}

func write(name string, data []byte) {
	must.Do(os.MkdirAll(filepath.Dir(name), 0o755))
	must.Do(os.WriteFile(name, data, 0o644))
}

// output runs a program and returns what it prints, without the last newline.
func (u *user) output(dir, name string, args ...string) string {
	cmd := exec.CommandContext(u.ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), u.env...)
	var says bytes.Buffer
	cmd.Stderr = &says
	out, err := cmd.Output()
	if err != nil {
		must.Failf("%s: %w\n%s%s", cmd, err, out, says.Bytes())
	}
	return strings.TrimSpace(string(out))
}
