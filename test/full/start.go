package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/backoff"
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
	kind := server.KindNamed(ctx, o.server, "", dir)
	return &peer{Ensemble: must.Get(kind.StartEnsemble(ctx, opts))}
}

func (p *peer) stop() error { return errors.Join(p.Stop(), removeGroups()) }

func (p *peer) config() client.Config { return client.Config{Servers: p.Addrs()} }

// connect returns a client that ends with the process.
func (p *peer) connect(ctx context.Context) (z znodes) {
	must.Do(try(ctx, startLimit, func(ctx context.Context) (err error) {
		z.Client, err = client.Connect(ctx, p.config())
		return err
	}))
	return z
}

// crowd opens idle sessions with watches, and opens them again if they expire. connected says how
// many have a connection; release ends them.
func (p *peer) crowd(ctx context.Context, sessions, watches int) (connected func() int, release func()) {
	ctx, cancel := context.WithCancel(ctx)
	var members []*idle
	var running sync.WaitGroup
	for i := range sessions {
		m := &idle{first: i * (watches / sessions), watches: watches / sessions}
		must.Do(try(ctx, startLimit, func(ctx context.Context) error { return m.open(ctx, p.config()) }))
		members = append(members, m)
		running.Go(func() { m.run(ctx, p.config()) }) // ends with ctx; awaited by release
	}
	connected = func() (n int) {
		for _, m := range members {
			if c := m.current.Load(); c != nil && c.State() == client.Connected {
				n++
			}
		}
		return n
	}
	return connected, func() {
		cancel()
		running.Wait()
	}
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

// idle is a session that only has watches, of which first is the number of the first one.
type idle struct {
	first, watches int
	current        atomic.Pointer[client.Client]
}

func (i *idle) open(ctx context.Context, cfg client.Config) error {
	c, err := client.Connect(ctx, cfg)
	for w := 0; err == nil && w < i.watches; w++ {
		_, _, err = c.Exists(ctx, fmt.Sprintf("/watched/%d", i.first+w), true)
	}
	if err != nil && c != nil {
		c.Detach()
	} else if err == nil {
		i.current.Store(c)
	}
	return err
}

// run opens another session whenever one has expired, until ctx ends.
func (i *idle) run(ctx context.Context, cfg client.Config) {
	for {
		select {
		case <-ctx.Done():
			i.current.Load().Detach()
			return
		case <-i.current.Load().Done():
			backoff.Retry(ctx, func() bool { return i.open(ctx, cfg) == nil })
		}
	}
}
