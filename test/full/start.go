package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/compat/server"
)

// peer is a running ensemble.
type peer struct {
	name    string
	addrs   []string   // without etcd
	disks   disks      // with -disks
	mu      sync.Mutex // guards the members' processes while supervise runs
	members []*member
	connect func(ctx context.Context) store
	// crowd opens idle sessions with watches, and opens them again if they expire. connected says
	// how many have a connection; release ends them.
	crowd func(ctx context.Context, sessions, watches int) (connected func() int, release func())
	// repair does what the product's documentation tells a person to do, and says what that was.
	// nil: there is nothing to do.
	repair func(ctx context.Context) string
	stop   func() error
}

// member is one of its processes.
type member struct {
	*server.Process
	start func() (*server.Process, error)
}

func (m *member) again() { m.Process = must.Get(m.start()) }

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
	if strings.HasPrefix(o.server, "etcd") {
		return startEtcd(ctx, o, dir)
	}
	kind := server.KindNamed(ctx, o.server, "", dir)
	opts := server.EnsembleOptions{Members: o.members, Keys: server.Defaults()}
	p := new(peer)
	if o.disks >= 0 {
		p.disks.use(&opts, dir)
	} else {
		opts.Wrapper = grouped(o.memory)
		// As a container's start does it: heap of 3/4 of the memory.
		opts.JVMFlags = []string{fmt.Sprintf("-Xmx%dm", o.memory*3/4)}
	}
	e := must.Get(kind.StartEnsemble(ctx, opts))
	p.name, p.addrs = e.Name(), e.Addrs()
	p.stop = func() error {
		p.disks.unmount()
		return errors.Join(e.Stop(), removeGroups())
	}
	for _, m := range e.Members {
		// The ensemble stops what its member has, so both have the latest process.
		p.members = append(p.members, &member{m.Process, func() (*server.Process, error) {
			err := m.Start()
			return m.Process, err
		}})
	}
	cfg := client.Config{Servers: e.Addrs()}
	p.connect = func(ctx context.Context) store {
		var z znodes
		must.Do(try(ctx, startLimit, func(ctx context.Context) (err error) {
			z.Client, err = client.Connect(ctx, cfg) // ends with the process
			return err
		}))
		return z
	}
	p.crowd = func(ctx context.Context, sessions, watches int) (func() int, func()) {
		ctx, cancel := context.WithCancel(ctx)
		var members []*idle
		var running sync.WaitGroup
		for i := range sessions {
			m := &idle{first: i * (watches / sessions), watches: watches / sessions}
			must.Do(try(ctx, startLimit, func(ctx context.Context) error { return m.open(ctx, cfg) }))
			members = append(members, m)
			running.Go(func() { m.run(ctx, cfg) }) // ends with ctx; awaited by release
		}
		connected := func() (n int) {
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
	return p
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
			for _, m := range p.members {
				if !m.Running() {
					n++
					m.again()
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
	for _, m := range p.members {
		must.Do(m.Signal(os.Kill))
		<-m.Done()
	}
	for _, m := range p.members {
		m.again()
	}
}

// resident returns the MiB of the largest member.
func (p *peer) resident() (mib int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.members {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.Pid()))
		if err != nil {
			continue // it has just ended
		}
		_, rest, _ := strings.Cut(string(status), "\nVmRSS:")
		kib, err := strconv.Atoi(cmp.Or(append(strings.Fields(rest), "0")...))
		if err == nil {
			mib = max(mib, kib>>10)
		}
	}
	return mib
}

func (p *peer) log() string {
	var b strings.Builder
	for _, m := range p.members {
		b.WriteString(m.Log())
	}
	return b.String()
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

// startEtcd builds and starts etcd.
func startEtcd(ctx context.Context, o options, dir string) *peer {
	binary := install.Etcd(ctx, install.Root(ctx))
	ports := must.Get(server.FreePorts(2 * o.members))
	var cluster, urls []string
	for i := range o.members {
		cluster = append(cluster, fmt.Sprintf("m%d=http://127.0.0.1:%d", i, ports[2*i]))
		urls = append(urls, fmt.Sprintf("http://127.0.0.1:%d", ports[2*i+1]))
	}
	p := &peer{name: "etcd " + install.EtcdVersion}
	for i := range o.members {
		peerURL := strings.TrimPrefix(cluster[i], fmt.Sprintf("m%d=", i))
		args := []string{
			binary, "--name", fmt.Sprintf("m%d", i), "--data-dir", filepath.Join(dir, strconv.Itoa(i)),
			"--listen-peer-urls", peerURL, "--initial-advertise-peer-urls", peerURL,
			"--listen-client-urls", urls[i], "--advertise-client-urls", urls[i],
			"--initial-cluster", strings.Join(cluster, ","), "--log-level", "error",
		}
		if o.server == "etcd-quota" {
			args = append(args, "--quota-backend-bytes", strconv.Itoa(o.memory<<20/2))
		}
		args = append(grouped(o.memory), args...)
		m := &member{start: func() (*server.Process, error) {
			return server.Start("etcd", exec.Command(args[0], args[1:]...), filepath.Join(dir, fmt.Sprintf("%d.log", i)))
		}}
		m.again()
		p.members = append(p.members, m)
	}
	p.stop = func() error {
		var err error
		for _, m := range p.members {
			err = errors.Join(err, m.Kill())
		}
		return errors.Join(err, removeGroups())
	}
	p.connect = func(context.Context) store { return &etcd{urls: urls} }
	p.crowd = func(context.Context, int, int) (func() int, func()) { return func() int { return 0 }, func() {} }
	p.repair = func(ctx context.Context) string { return (&etcd{urls: urls}).repair(ctx) }
	must.Do(try(ctx, startLimit, func(ctx context.Context) error { return p.connect(ctx).create(ctx, "/started", nil) }))
	return p
}
