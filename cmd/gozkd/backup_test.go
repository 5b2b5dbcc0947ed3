package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/tcpport"
	"github.com/gozkd/gozkd/internal/testkit/program"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

// trio is three members in processes of their own.
type trio struct {
	t     *testing.T
	dirs  [3]string
	lines []string // server lines, as flags
	ports [3]struct{ client, admin string }
	procs [3]*exec.Cmd
}

func newTrio(t *testing.T) *trio {
	tr := &trio{t: t}
	free := reservePorts(t, 9)
	for i := range tr.dirs {
		tr.dirs[i] = t.TempDir()
		tr.lines = append(tr.lines, "-o", fmt.Sprintf("server.%d=127.0.0.1:%s", i+1, free[i]))
		tr.ports[i].client, tr.ports[i].admin = free[3+i], free[6+i]
	}
	t.Cleanup(func() {
		for i := range tr.procs {
			tr.kill(i)
		}
	})
	return tr
}

// reservePorts returns ports for child processes. They are reserved until the test ends, where the
// system can do that, on all addresses: a connection from another address that has the port would
// keep a server from listening on all.
func reservePorts(t *testing.T, n int) (ports []string) {
	t.Helper()
	for range n {
		p, err := tcpport.Reserve("0.0.0.0:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Release)
		defer p.Yield() // when all n are reserved
		_, number, err := net.SplitHostPort(p.Address())
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, number)
	}
	return ports
}

// flags are those of a member. A member that stands still for more than a second, as on a busy
// machine, is no reason for the others to send their clients away: hence syncLimit.
func (tr *trio) flags(i int) []string {
	return append([]string{
		"--data-dir", tr.dirs[i], "--id", fmt.Sprint(i + 1), "--client-port", tr.ports[i].client, "--client-address", "127.0.0.1",
		"-o", "admin.serverPort=" + tr.ports[i].admin, "-o", "tickTime=200", "-o", "maxSessionTimeout=60000", "-o", "initLimit=100", "-o", "syncLimit=100", "-o", "snapCount=250",
		"-o", "zookeeper.DigestAuthenticationProvider.superDigest=super:D/InIHSb7yEEbrWz8b9l71RjZJU=",
	}, tr.lines...)
}

func (tr *trio) start(members ...int) {
	tr.t.Helper()
	for _, i := range members {
		cmd := program.Command(append([]string{"serve"}, tr.flags(i)...)...)
		log, err := os.Create(filepath.Join(tr.t.TempDir(), fmt.Sprintf("member%d.log", i+1)))
		if err != nil {
			tr.t.Fatal(err)
		}
		cmd.Stderr = log
		if err := errors.Join(cmd.Start(), log.Close()); err != nil {
			tr.t.Fatal(err)
		}
		tr.procs[i] = cmd
		tr.t.Cleanup(func() {
			if text, err := os.ReadFile(log.Name()); err == nil && tr.t.Failed() {
				tr.t.Logf("member %d:\n%s", i+1, text)
			}
		})
	}
}

// kill ends a member as a power loss of its machine would, and awaits it.
func (tr *trio) kill(i int) {
	if tr.procs[i] != nil {
		_ = tr.procs[i].Process.Kill() // it may have ended
		_ = tr.procs[i].Wait()         // killed, as it should be
		tr.procs[i] = nil
	}
}

func (tr *trio) addresses(members ...int) string {
	var all []string
	for _, i := range members {
		all = append(all, "127.0.0.1:"+tr.ports[i].client)
	}
	return strings.Join(all, ",")
}

// must runs a command of the program and returns what it prints.
func must(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs strings.Builder
	if status := run("gozkd", args, outside(&out, &errs)); status != 0 {
		t.Fatalf("%v: exit status %d\n%s%s", args, status, &out, &errs)
	}
	return out.String()
}

// await tries until it works.
func await(t *testing.T, what string, try func() error) {
	t.Helper()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for late := watchdog.Context(t, 40*time.Second); ; <-poll.C {
		err := try()
		if err == nil {
			return
		}
		if late.Err() != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// created takes a znode that exists for one that was created: the reply to an earlier attempt may
// be lost.
func created(_ string, err error) error {
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

// tree is all data below a path.
func tree(t *testing.T, c *zk.Conn, path string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	var walk func(string)
	walk = func(path string) {
		data, stat, err := c.Get(path)
		if err != nil {
			t.Fatal(path, err)
		}
		all[path] = fmt.Sprintf("%s %x %x %d", data, stat.Czxid, stat.Mzxid, stat.Version)
		children, _, err := c.Children(path)
		if err != nil {
			t.Fatal(path, err)
		}
		for _, child := range children {
			walk(path + "/" + child)
		}
	}
	walk(path)
	return all
}

// writers create znodes until stop, and return those that were acknowledged before each moment at
// which they were asked.
type writers struct {
	mu    sync.Mutex
	acked []string
	stop  context.CancelFunc
	wg    sync.WaitGroup
}

func (w *writers) so() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.acked)
}

func write(t *testing.T, addresses string, n int) *writers {
	w := &writers{}
	ctx, cancel := context.WithCancel(context.Background())
	w.stop = func() { cancel(); w.wg.Wait() }
	t.Cleanup(w.stop)
	for i := range n {
		c := connect(t, addresses)
		w.wg.Go(func() { // stopped and awaited by stop
			for k := 0; ctx.Err() == nil; k++ {
				path := fmt.Sprintf("/load/%d-%d", i, k)
				if _, err := c.Create(path, []byte(path), 0, zk.WorldACL(zk.PermAll)); err == nil {
					w.mu.Lock()
					w.acked = append(w.acked, path)
					w.mu.Unlock()
				}
			}
		})
	}
	return w
}

// hold returns a client of all members that has created /load and the ephemeral /lock, and how
// often its session expired.
func (tr *trio) hold(timeout time.Duration) (holder *zk.Conn, expired *atomic.Int32) {
	tr.t.Helper()
	expired = new(atomic.Int32)
	holder, _, err := zk.Connect(strings.Split(tr.addresses(0, 1, 2), ","), timeout, zk.WithLogger(silent{}), zk.WithEventCallback(func(e zk.Event) {
		if e.State == zk.StateExpired {
			expired.Add(1)
		}
	}))
	if err != nil {
		tr.t.Fatal(err)
	}
	tr.t.Cleanup(holder.Close)
	await(tr.t, "a first write", func() error {
		return created(holder.Create("/load", nil, 0, zk.WorldACL(zk.PermAll)))
	})
	if _, err := holder.Create("/lock", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		tr.t.Fatal(err)
	}
	return holder, expired
}

// A backup of an ensemble under load has all that was acknowledged before it. When two of three are
// gone for good, the third one's data is the beginning of a new ensemble with all of it, which the
// others join with empty directories; clients learn that their sessions are over, and go on. The
// backup is the beginning of yet another one.
func TestBackupAndQuorumGone(t *testing.T) {
	t.Parallel() // it waits for processes
	tr := newTrio(t)
	tr.start(0, 1, 2)
	holder, expired := tr.hold(10 * time.Second)
	session := holder.SessionID()
	load := write(t, tr.addresses(0, 1, 2), 4)
	await(t, "load", func() error {
		if n := len(load.so()); n < 400 { // more than one checkpoint
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	secret, file := filepath.Join(t.TempDir(), "secret"), filepath.Join(t.TempDir(), "backup.db")
	if err := os.WriteFile(secret, []byte("digest super:test"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := load.so()
	must(t, "backup", "--from", "http://127.0.0.1:"+tr.ports[1].admin, "--auth-file", secret, file)
	await(t, "more load", func() error {
		if n := len(load.so()); n < len(before)+100 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	load.stop()
	acked := load.so()

	survivor := connect(t, tr.addresses(0))
	await(t, "all that was acknowledged", func() error { _, err := survivor.Sync("/"); return err })
	was := tree(t, survivor, "/load")
	_, lock, err := survivor.Get("/lock")
	if err != nil {
		t.Fatal(err)
	}
	for i := range tr.procs {
		tr.kill(i)
	}
	inspected := must(t, "inspect", tr.dirs[0], tr.dirs[1], tr.dirs[2])
	if strings.Count(inspected, "log         whole") != 3 || !strings.Contains(inspected, "\nMost recent: ") {
		t.Error(inspected)
	}
	old := tr.dirs
	tr.dirs = [3]string{filepath.Join(t.TempDir(), "new"), t.TempDir(), t.TempDir()}
	if out := must(t, append([]string{"restore", "--from", old[0]}, tr.flags(0)...)...); !strings.Contains(out, "WARNING: "+old[0]+" holds the state of ONE of 3 voters") {
		t.Error(out)
	}
	tr.start(0)
	await(t, "the restored one serves", func() error { _, _, err := survivor.Get("/load"); return err })
	tr.start(1, 2)
	await(t, "the session is over", func() error {
		if n := expired.Load(); n != 1 {
			return fmt.Errorf("it was told so %d times", n)
		}
		return nil
	})
	await(t, "the client goes on", func() error {
		return created(holder.Create("/lock", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)))
	})
	if _, again, err := holder.Get("/lock"); err != nil || again.Czxid <= lock.Czxid || again.EphemeralOwner == session || holder.SessionID() == session {
		t.Errorf("%+v %v, before %+v", again, err, lock)
	}
	for i := range 3 {
		c := connect(t, tr.addresses(i))
		await(t, "all members are one ensemble", func() error {
			config, _, err := c.Get("/zookeeper/config")
			if err == nil && strings.Count(string(config), "server.") != 3 {
				err = fmt.Errorf("config %q", config)
			}
			return err
		})
		await(t, "a sync", func() error { _, err := c.Sync("/"); return err })
		is := tree(t, c, "/load")
		if !maps.Equal(is, was) {
			t.Errorf("member %d has %d znodes, %d were there", i+1, len(is), len(was))
		}
		for _, path := range acked {
			if _, there := is[path]; !there {
				t.Errorf("member %d: %s was acknowledged", i+1, path)
			}
		}
	}
	// The new one does without the survivor.
	tr.kill(0)
	c := connect(t, tr.addresses(1, 2))
	await(t, "two of three", func() error { return created(c.Create("/after", nil, 0, zk.WorldACL(zk.PermAll))) })
	// And a member of the old ensemble that comes back does not get in.
	tr.dirs[2] = old[2]
	tr.kill(2)
	tr.start(0, 2)
	apart := connect(t, tr.addresses(0, 1))
	await(t, "without the old one", func() error {
		return created(apart.Create("/apart", nil, 0, zk.WorldACL(zk.PermAll)))
	})
	for i := range tr.procs {
		tr.kill(i)
	}
	if was, is := stateOf(inspected), stateOf(must(t, "inspect", old[2])); was != is || was == "" {
		t.Errorf("the old member has %s, it had %s", is, was)
	}

	alone := filepath.Join(t.TempDir(), "alone")
	must(t, "restore", "--from", file, "--data-dir", alone)
	p := launch(t, "serve", "--data-dir", alone, "--client-port", "0", "-o", "admin.enableServer=false")
	is := tree(t, connect(t, p.ports.Client), "/load")
	for _, path := range before {
		if is[path] != was[path] || is[path] == "" {
			t.Errorf("%s in the backup: %q, was %q", path, is[path], was[path])
		}
	}
	if len(is) <= len(before) || len(is) > len(was) {
		t.Errorf("%d znodes in the backup, %d were acknowledged before it, %d at the end", len(is), len(before), len(was))
	}
	if status := p.Stop(syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// stateOf is what gozkd inspect says last of a state.
func stateOf(inspected string) string {
	_, state, _ := strings.Cut(inspected[max(0, strings.LastIndex(inspected, "directory ")):], "\nstate ")
	line, _, _ := strings.Cut(state, "\n")
	return line
}

// silent is a logger of a client.
type silent struct{}

func (silent) Printf(string, ...any) {}
