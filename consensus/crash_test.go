package consensus

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/internal/vfs"
)

// onMem configures a node whose log is on a disk in memory. It writes only the first checkpoint, so
// the log alone carries the state.
func onMem(t *testing.T, fs vfs.FS) Config {
	return Config{Dir: t.TempDir(), LogDir: "log", FS: fs, SegmentBytes: 4096, CheckpointRequests: 1 << 30}
}

// After a power loss before any operation of the disk, every answered request is there, in order
// and once.
func TestC1C3_PowerLossAtEveryOperation(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	mem := vfstest.NewMem()
	cfg := onMem(t, mem)
	open(t, cfg).close(t) // the first checkpoint is on the real disk, which does not crash here

	type moment struct {
		fs       *vfstest.Mem
		op       vfstest.Op
		answered int
	}
	var mu sync.Mutex
	var moments []moment
	var running *load
	cfg.FS = vfstest.NewFaulty(mem, func(op vfstest.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if running == nil || len(moments) >= 400 {
			return nil
		}
		answered := running.count() // before the disk is copied: all of these are durable
		for _, choose := range []func(int) int{rng.IntN, func(int) int { return 0 }, func(n int) int { return n - 1 }} {
			moments = append(moments, moment{mem.Crash(choose), op, answered})
		}
		return nil
	})
	n := open(t, cfg)
	mu.Lock()
	running = n.load("r", 5)
	mu.Unlock()
	n.reach(t, running, 150)
	n.close(t)
	if len(moments) < 100 {
		t.Fatalf("only %d crashes", len(moments))
	}
	if testing.Short() {
		moments = moments[:100]
	}
	for _, m := range moments {
		cfg.FS = m.fs
		n := open(t, cfg)
		items := n.list.all()
		if err := checkLoads(items, []string{"r"}, []int{m.answered}); err != nil {
			t.Fatalf("power loss before %v: %v", m.op, err)
		}
		n.put(t, "after")
		if got := n.list.all(); len(got) != len(items)+1 || got[len(items)] != "after" {
			t.Fatalf("power loss before %v: %v and then %v", m.op, items, got)
		}
		n.close(t)
	}
	t.Logf("%d crashes", len(moments))
}

// Each operation of the disk fails once: Run returns that error, and every answered request is on
// disk.
func TestC5_DiskErrors(t *testing.T) {
	t.Parallel()
	fault := fmt.Errorf("no space: %w", syscall.ENOSPC)
	for _, kind := range []vfstest.OpKind{vfstest.OpWrite, vfstest.OpSync, vfstest.OpPreallocate, vfstest.OpCreate, vfstest.OpRename, vfstest.OpSyncDir} {
		t.Run(string(kind), func(t *testing.T) {
			failures := 0
			for after := range 12 {
				mem := vfstest.NewMem()
				cfg := onMem(t, mem)
				open(t, cfg).close(t)
				var armed, failed atomic.Bool
				var left atomic.Int64
				left.Store(int64(after))
				cfg.FS = vfstest.NewFaulty(mem, func(op vfstest.Op) error {
					if failed.Load() || armed.Load() && op.Kind == kind && left.Add(-1) < 0 {
						failed.Store(true)
						if op.Kind == vfstest.OpWrite {
							return &vfstest.ShortWrite{N: 100, Err: fault}
						}
						return fault
					}
					return nil
				})
				n := open(t, cfg)
				armed.Store(true)
				l := n.load("r", 3)
				select {
				case err := <-n.done:
					n.done <- err // for stop
				case <-l.until(200): // there may be fewer operations of this kind
				}
				err := n.stop()
				if failed.Load() != errors.Is(err, syscall.ENOSPC) || failed.Load() == errors.Is(err, ErrClosed) {
					t.Fatalf("failed: %v, Run: %v", failed.Load(), err)
				}
				answered := l.count()
				n.Propose([]byte("late"), func() { t.Error("answered after the end") })
				if l.count() != answered {
					t.Error("answered after Run returned")
				}
				if failed.Load() {
					failures++
				}
				cfg.FS = mem.Crash(func(int) int { return 0 })
				again := open(t, cfg)
				if err := checkLoads(again.list.all(), []string{"r"}, []int{answered}); err != nil {
					t.Fatalf("error at %s %d: %v", kind, after, err)
				}
				again.close(t)
			}
			if failures == 0 {
				t.Error("no operation failed")
			}
		})
	}
}

// If the disk fails while the node is being stopped, Run returns that error: the outcome of the
// requests under way is in doubt.
func TestC5_DiskErrorAtTheEnd(t *testing.T) {
	var armed atomic.Bool
	reached, release := make(chan struct{}), make(chan struct{})
	cfg := onMem(t, vfstest.NewFaulty(vfstest.NewMem(), func(op vfstest.Op) error {
		if op.Kind != vfstest.OpSync || !armed.CompareAndSwap(true, false) {
			return nil
		}
		close(reached)
		<-release
		return syscall.EIO
	}))
	cfg.StateMachine = &list{}
	n, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }() // stopped by cancel and awaited below
	<-n.Ready()
	armed.Store(true)
	n.Propose([]byte("x"), nil)
	<-reached
	cancel()
	close(release)
	if err := <-ended; !errors.Is(err, syscall.EIO) {
		t.Fatal("Run:", err)
	}
}

// If the disk is full when the node opens, Open returns that error and leaves nothing open.
func TestC5_DiskErrorsInOpen(t *testing.T) {
	for after := range 40 {
		mem := vfstest.NewMem()
		cfg := onMem(t, mem)
		left := after
		cfg.FS = vfstest.NewFaulty(mem, func(op vfstest.Op) error {
			if left--; left < 0 {
				return syscall.ENOSPC
			}
			return nil
		})
		cfg.StateMachine = &list{}
		n, err := Open(cfg)
		if err == nil {
			if err := n.Close(); err != nil {
				t.Fatal(err)
			}
			if after < 5 {
				t.Fatalf("Open does %d operations and ignores their errors", after)
			}
			return
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		cfg.FS = mem
		open(t, cfg).close(t)
	}
	t.Fatal("Open never succeeds")
}

// A checkpoint that can't be written ends Run; its content is in the log.
func TestC5_CheckpointFails(t *testing.T) {
	cfg := Config{Dir: t.TempDir(), CheckpointRequests: 10}
	n := open(t, cfg)
	n.put(t, "before")
	path := filepath.Join(cfg.Dir, "checkpoint.db")
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	l := n.load("r", 3)
	err := <-n.done
	n.done <- err
	if err == nil || errors.Is(err, ErrClosed) || !strings.Contains(err.Error(), path) {
		t.Fatal("Run:", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	n = open(t, cfg)
	if err := checkLoads(n.list.all()[1:], []string{"r"}, []int{l.count()}); err != nil {
		t.Fatal(err)
	}
}

const childEnv = "GOZKD_CONSENSUS_CHILD" // directory and number of the life, separated by ::

// runChild is the process that TestC2C3C4_KilledProcess kills. It prints the number of each
// answered request.
func runChild(arg string) {
	dir, life, _ := strings.Cut(arg, "::")
	l := &list{}
	n, err := Open(childConfig(dir, l))
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	load := &load{name: "life" + life}
	var mu sync.Mutex
	printed := 0
	var next func()
	next = func() {
		mu.Lock()
		defer mu.Unlock()
		load.proposed++
		n.Propose(fmt.Appendf(nil, "%s/%d", load.name, load.proposed), func() {
			printed++ // on the loop's goroutine
			_, _ = os.Stdout.WriteString(strconv.Itoa(printed) + "\n")
			next()
		})
	}
	for range 20 {
		next()
	}
	fmt.Println("error:", n.Run(context.Background()))
	os.Exit(1)
}

func childConfig(dir string, m StateMachine) Config {
	return Config{Dir: dir, StateMachine: m, SegmentBytes: 8192, CheckpointRequests: 7}
}

// A process that writes a checkpoint every few requests is killed again and again, at random
// moments: also in the middle of a checkpoint, and between a checkpoint and the compaction of the
// log.
func TestC2C3C4_KilledProcess(t *testing.T) {
	dir, lives := t.TempDir(), exhaustive.Or(8, 25)
	if testing.Short() {
		lives = 4
	}
	rng := rand.New(rand.NewPCG(3, 4)) // even so, the moments differ in each run
	var names []string
	var answered []int
	for life := range lives {
		ctx := watchdog.Context(t, time.Minute)
		cmd := exec.CommandContext(ctx, os.Args[0])
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s::%d", childEnv, dir, life))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		killAt, last := 1+rng.IntN(600), 0
		killed := false
		for lines := bufio.NewScanner(out); lines.Scan(); {
			n, err := strconv.Atoi(lines.Text())
			if err != nil && !killed {
				t.Fatalf("life %d: %s", life, lines.Text())
			}
			// The kill may cut the last line, which then is a smaller number.
			if last = max(last, n); last >= killAt && !killed {
				killed = true
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait() // the error says that it was killed
		if !killed {
			t.Fatalf("life %d: %d answered in a minute, want %d", life, last, killAt)
		}
		names, answered = append(names, fmt.Sprintf("life%d", life)), append(answered, last)
		n := open(t, childConfig(dir, nil))
		if err := checkLoads(n.list.all(), names, answered); err != nil {
			t.Fatalf("life %d: %v", life, err)
		}
		n.close(t)
	}
}
