package install

import (
	"context"
	"os"
	"path/filepath"
	"strconv"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// Kazoo creates a Python environment with kazoo from test/compat/kazoo/requirements.txt and returns
// its interpreter.
func Kazoo(ctx context.Context, root string) (python string) {
	dir := cacheDir(root, "")
	requirements := filepath.Join(root, "test", "compat", "kazoo", "requirements.txt")
	venv := filepath.Join(dir, "venv")
	python = filepath.Join(venv, "bin", "python")
	// The stamp is written last: an environment without it is incomplete.
	stamp := filepath.Join(venv, "installed")
	if newer(stamp, requirements) {
		return python
	}
	if _, err := output(ctx, "", "python3", "-m", "venv", "--clear", venv); err != nil {
		debian(ctx, "python3", "python3-venv")
		must.Get(output(ctx, "", "python3", "-m", "venv", "--clear", venv))
	}
	must.Get(output(ctx, "", python, "-m", "pip", "install", "-q", "-r", requirements))
	must.Do(os.WriteFile(stamp, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644))
	return python
}
