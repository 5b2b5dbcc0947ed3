package server

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/gozkd/gozkd/test/compat/install"
)

// BuildGozkd builds cmd/gozkd of the repository at root into dir, as make build does, and returns
// the path of the binary. flags, such as -race, which needs cgo, are further flags of go build.
func BuildGozkd(ctx context.Context, root, dir string, flags ...string) (string, error) {
	return try(func() string { return build(ctx, root, dir, "gozkd", flags...) })
}

func build(ctx context.Context, root, dir, name string, flags ...string) string {
	binary := filepath.Join(dir, name)
	args := slices.Concat([]string{"go", "build", "-trimpath", "-o", binary}, flags, []string{"./cmd/" + name})
	if !slices.Contains(flags, "-race") {
		args = slices.Insert(args, 0, "CGO_ENABLED=0") // cgo would add the pages of the C library to each measurement
	}
	install.Output(ctx, root, "env", args...)
	return binary
}

// StartGozkd starts binary as a standalone server and returns when it answers. ctx bounds the start
// only: the process runs until Stop or Kill.
func StartGozkd(ctx context.Context, binary string, opts Options) (*Process, error) {
	return startAlone(ctx, "gozkd", opts, func(work string, o Options) []string {
		args := []string{binary, "serve"}
		if o.Memory {
			delete(o.Keys, "dataDir")
			args = append(args, "--memory")
		}
		return append(args, writeConfig(work, o.Keys))
	})
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
		p.await(ctx, 2*time.Millisecond, "wrote no usable "+portFile, func() bool {
			var ports struct {
				Client string `json:"client"`
			}
			b, err := os.ReadFile(portFile)
			if err == nil && json.Unmarshal(b, &ports) == nil {
				p.addr = ports.Client
			}
			return p.addr != ""
		})
		p.awaitAnswer(ctx, "gozkd")
	})
}
