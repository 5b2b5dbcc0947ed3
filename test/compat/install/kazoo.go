package install

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Kazoo creates a Python environment with kazoo from test/compat/kazoo/requirements.txt and returns
// its interpreter.
func Kazoo(ctx context.Context, root string) (python string, err error) {
	dir, err := cacheDir(root, "")
	if err != nil {
		return "", err
	}
	requirements := filepath.Join(root, "test", "compat", "kazoo", "requirements.txt")
	venv := filepath.Join(dir, "venv")
	python = filepath.Join(venv, "bin", "python")
	// The stamp is written last: an environment without it is incomplete.
	stamp := filepath.Join(venv, "installed")
	if ok, err := newer(stamp, requirements); err != nil || ok {
		return python, err
	}
	if _, err := output(ctx, "", "python3", "-m", "venv", "--clear", venv); err != nil {
		if derr := debian(ctx, "python3", "python3-venv"); derr != nil {
			return "", derr
		}
		if _, err := output(ctx, "", "python3", "-m", "venv", "--clear", venv); err != nil {
			return "", err
		}
	}
	if _, err := output(ctx, "", python, "-m", "pip", "install", "-q", "-r", requirements); err != nil {
		return "", err
	}
	if err := os.WriteFile(stamp, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644); err != nil {
		return "", fmt.Errorf("install: %w", err)
	}
	return python, nil
}
