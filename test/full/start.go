package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/server"
)

// peer is a running ensemble.
type peer struct {
	*server.Ensemble
	mu sync.Mutex // guards the members' processes while supervise runs
}

// grouped is a command that enters a new memory cgroup and becomes the command after it.
func grouped(mib int) []string {
	enter := `g=/sys/fs/cgroup/memory/gozkd-full-$$; mkdir $g && echo %[1]dM >$g/memory.limit_in_bytes`
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		enter = `g=/sys/fs/cgroup/gozkd-full-$$; mkdir $g && echo %[1]dM >$g/memory.max`
	}
	return []string{"sh", "-c", fmt.Sprintf(enter, mib) + ` && echo $$ >$g/cgroup.procs && exec "$@"`, "sh"}
}

// removeGroups removes the cgroups of processes that have ended.
func removeGroups() error {
	groups, err := filepath.Glob("/sys/fs/cgroup/*/gozkd-full-*")
	more, err2 := filepath.Glob("/sys/fs/cgroup/gozkd-full-*")
	for _, g := range append(groups, more...) {
		// One with processes, of another experiment, stays.
		_ = os.Remove(g)
	}
	return errors.Join(err, err2)
}

func start(ctx context.Context, o options, dir string) *peer {
	opts := server.EnsembleOptions{Members: o.members, Keys: server.Defaults(), Wrapper: grouped(o.memory)}
	// As a container's start does it: heap of 3/4 of the memory.
	opts.JVMFlags = []string{fmt.Sprintf("-Xmx%dm", o.memory*3/4)}
	if o.disks > 0 {
		opts.Prepare = func(data string) error { return mount(data, o) }
	}
	kind := server.KindNamed(ctx, o.server, "", dir)
	return &peer{Ensemble: must.Get(kind.StartEnsemble(ctx, opts))}
}

// mount puts a member's data directory on a small disk if the member is to have one.
func mount(data string, o options) error {
	id := filepath.Base(filepath.Dir(data))
	if n, err := strconv.Atoi(id); err != nil || n > o.disks {
		return err
	}
	err := exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%dM", o.disk), "tmpfs", data).Run()
	return errors.Join(err, os.WriteFile(filepath.Join(data, "myid"), []byte(id), 0o644))
}

func (p *peer) stop() error {
	for _, m := range p.Members {
		// Only some are mounted; a disk goes when the last process that uses it ends.
		_ = exec.Command("umount", "--lazy", m.DataDir()).Run()
	}
	return errors.Join(p.Stop(), removeGroups())
}

// connect returns a client that ends with the process.
func (p *peer) connect(ctx context.Context) (z znodes) {
	must.Do(try(ctx, startLimit, func(ctx context.Context) (err error) {
		z.Client, err = client.Connect(ctx, client.Config{Servers: p.Addrs()})
		return err
	}))
	return z
}

// supervise starts members that end again after a second, until the returned function is called,
// which returns how many have ended.
func (p *peer) supervise() (deaths func() int64) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	var n int64
	// Ends with stop; awaited by the returned function.
	go func() {
		defer close(stopped)
		for tick := time.Tick(time.Second); ; {
			select {
			case <-stop:
				return
			case <-tick:
			}
			p.mu.Lock()
			for _, m := range p.Members {
				if !m.Running() {
					n++
					m.Start()
				}
			}
			p.mu.Unlock()
		}
	}()
	return sync.OnceValue(func() int64 {
		close(stop)
		<-stopped
		return n
	})
}

// restart kills all members and starts them again.
func (p *peer) restart() {
	for _, m := range p.Members {
		must.Do(m.Kill())
	}
	for _, m := range p.Members {
		m.Start()
	}
}

// resident returns the MiB of the largest member.
func (p *peer) resident() (mib int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.Members {
		mib = max(mib, int(m.Memory("VmRSS")>>20))
	}
	return mib
}

// znodes is a session with gozkd or ZooKeeper.
type znodes struct{ *client.Client }

func (z znodes) create(ctx context.Context, key string, data []byte) error {
	_, _, err := z.Create(ctx, key, data, client.CreateOptions{})
	return err
}

func (z znodes) get(ctx context.Context, key string) error {
	_, _, err := z.Get(ctx, key, false)
	return err
}

func (z znodes) delete(ctx context.Context, key string) error { return z.Delete(ctx, key, -1) }
