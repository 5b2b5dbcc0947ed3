package server

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/gozkd/gozkd/test/compat/install"
)

// build builds cmd/NAME of the repository at root into dir, as make build does, and returns its
// path. flags, such as -race, which needs cgo, are further flags of go build.
func build(ctx context.Context, root, dir, name string, flags ...string) string {
	binary := filepath.Join(dir, name)
	args := slices.Concat([]string{"go", "build", "-trimpath", "-o", binary}, flags, []string{"./cmd/" + name})
	if !slices.Contains(flags, "-race") {
		args = slices.Insert(args, 0, "CGO_ENABLED=0") // cgo would add the pages of the C library to each measurement
	}
	install.Output(ctx, root, "env", args...)
	return binary
}

// StartTestkit builds cmd/gozkd-testkit of the repository at root, starts an ensemble of three in
// memory, and returns when it answers. Addr is the connect string; the port file has the other
// addresses.
func StartTestkit(ctx context.Context, root string) (*Process, error) {
	var portFile string
	return launch(func(work string) *exec.Cmd {
		portFile = filepath.Join(work, "port.json")
		binary := build(ctx, root, work, "gozkd-testkit")
		return exec.Command(binary, "--ensemble", "3", "--port-file", portFile)
	}, func(p *Process) {
		p.name, p.ports = "gozkd", portFile
		p.await(ctx, "it writes "+portFile, func() error {
			var ports struct {
				Client string `json:"client"`
			}
			b, err := os.ReadFile(portFile)
			if err == nil {
				err = json.Unmarshal(b, &ports)
			}
			p.addr = ports.Client
			return err
		})
		p.awaitAnswer(ctx, "gozkd")
	})
}
