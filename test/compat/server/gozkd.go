package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// BuildGozkd builds cmd/gozkd of the repository at root into dir, as make build does, and returns
// the path of the binary. flags, such as -race, which needs cgo, are further flags of go build.
func BuildGozkd(ctx context.Context, root, dir string, flags ...string) (string, error) {
	return build(ctx, root, dir, "gozkd", flags...)
}

func build(ctx context.Context, root, dir, name string, flags ...string) (string, error) {
	binary := filepath.Join(dir, name)
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"build", "-trimpath", "-o", binary}, flags, []string{"./cmd/" + name})...)
	cmd.Dir = root
	if !slices.Contains(flags, "-race") {
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // cgo would add the pages of the C library to each measurement
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("server: build %s: %w\n%s", name, err, out)
	}
	return binary, nil
}

// StartGozkd starts binary as a standalone server and returns when it answers. ctx bounds the start
// only: the process runs until Stop or Kill.
func StartGozkd(ctx context.Context, binary string, opts Options) (_ *Process, err error) {
	opts, work, err := opts.prepare()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(work))
		}
	}()
	opts.Keys["clientPort"] = strconv.Itoa(opts.Port)
	opts.Keys["clientPortAddress"] = "127.0.0.1"
	portFile := filepath.Join(work, "port.json")
	args := []string{"serve", "--port-file", portFile}
	if opts.Memory {
		args = append(args, "--memory")
	} else {
		opts.Keys["dataDir"] = opts.DataDir
	}
	secureAddr, err := opts.secure()
	if err != nil {
		return nil, err
	}
	config, err := writeConfig(work, opts.Keys)
	if err != nil {
		return nil, err
	}
	p, err := start(opts.command(binary, append(args, config)...), filepath.Join(work, "server.log"))
	if err != nil {
		return nil, err
	}
	p.secureAddr = secureAddr
	return p.awaitGozkd(ctx, work, portFile)
}

// StartTestkit builds cmd/gozkd-testkit of the repository at root, starts an ensemble of three in
// memory, and returns when it answers. Addr is the connect string; the port file has the other
// addresses.
func StartTestkit(ctx context.Context, root string) (_ *Process, err error) {
	work, err := os.MkdirTemp("", "gozkd-compat-")
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	binary, err := build(ctx, root, work, "gozkd-testkit")
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(work))
	}
	portFile := filepath.Join(work, "port.json")
	cmd := exec.Command(binary, "--ensemble", "3", "--port-file", portFile)
	p, err := start(cmd, filepath.Join(work, "server.log"))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(work))
	}
	return p.awaitGozkd(ctx, work, portFile)
}

// awaitGozkd waits until a started gozkd answers. If that fails, the process is killed and its
// directory removed.
func (p *Process) awaitGozkd(ctx context.Context, work, portFile string) (_ *Process, err error) {
	p.name, p.tempDir, p.ports = "gozkd", work, portFile
	if p.addr, err = p.awaitPort(ctx, portFile); err == nil {
		err = p.awaitAnswer(ctx, "gozkd")
	}
	if err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	return p, nil
}

// awaitPort waits until the port file is there and returns the client address in it.
func (p *Process) awaitPort(ctx context.Context, file string) (string, error) {
	const interval = 2 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		b, err := os.ReadFile(file)
		if err == nil {
			var ports struct {
				Client string `json:"client"`
			}
			if json.Unmarshal(b, &ports) == nil && ports.Client != "" {
				return ports.Client, nil
			}
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("server: gozkd wrote no usable %s: %w\n%s", file, ctx.Err(), p.Log())
		case <-p.done:
			return "", fmt.Errorf("server: gozkd ended before it wrote its port:\n%s", p.Log())
		case <-tick.C:
		}
	}
}
