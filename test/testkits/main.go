// Command testkits builds the test kits for other languages and tests each as its user would: what
// was built is installed into an empty project, away from the repository.
package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/install"
)

func main() { must.Program("testkits", run) }

func run(ctx context.Context, _ []string) {
	root := install.Root(ctx)
	dir := must.Get(os.MkdirTemp("", "gozkd-testkits-"))
	defer must.Finally(func() error { return os.RemoveAll(dir) })
	must.Doing("Python", func() { python(ctx, root, dir) })
}

// python builds a wheel, and runs its tests with it in two workers.
func python(ctx context.Context, root, dir string) {
	kit := filepath.Join(root, "testkit", "python")
	interpreter := install.Python(ctx, root, "testkit", filepath.Join(kit, "tests", "requirements.txt"))
	install.Output(ctx, "", interpreter, filepath.Join(kit, "build.py"), "0.0.dev0", dir)
	wheels := must.Get(filepath.Glob(filepath.Join(dir, "*.whl")))
	// From nowhere but the file.
	pip := []string{"-m", "pip", "install", "-q", "--no-index", "--no-deps", "--force-reinstall"}
	install.Output(ctx, "", interpreter, append(pip, wheels...)...)
	project := filepath.Join(dir, "project")
	must.Do(os.CopyFS(project, os.DirFS(filepath.Join(kit, "tests"))))
	install.Output(ctx, project, interpreter, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider")
}
