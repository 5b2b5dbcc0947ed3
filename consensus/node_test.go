package consensus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/internal/vfs"
)

func TestNode_InMemory(t *testing.T) {
	n := open(t, Config{})
	n.put(t, "a", "b", "c")
	if got := n.list.all(); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Fatal(got)
	}
	if s := n.Status(); !s.Leading || s.Leader != 1 || s.Term == 0 || s.Applied == 0 || n.log.writer.log != nil {
		t.Errorf("%+v, log on disk: %v", s, n.log.writer.log != nil)
	}
	n.close(t)
}

// No request waits for a tick: a request that comes during the proposal delay is seen when the
// entry under way ends.
func TestNode_GatheredRequestsAreSeen(t *testing.T) {
	for _, clients := range []int{1, 8} {
		n := open(t, Config{Dir: t.TempDir(), NoSync: true, Tick: time.Hour})
		var wg sync.WaitGroup
		for g := range clients {
			wg.Go(func() {
				for i := range exhaustive.Or(500, 2000) {
					n.put(t, fmt.Sprintf("%d/%d", g, i))
				}
			})
		}
		wg.Wait()
		n.close(t)
	}
}

func TestNode_ReadSeesWhatWasAnswered(t *testing.T) {
	n := open(t, Config{Dir: t.TempDir()})
	for i := range 50 {
		n.put(t, fmt.Sprint(i))
		got := make(chan int, 1)
		n.Read(func() { got <- len(n.list.all()) })
		if g := <-got; g != i+1 {
			t.Fatalf("a read sees %d items, want %d", g, i+1)
		}
	}
	n.close(t)
}

// After restarts in the middle of a load, with many checkpoints, the state is the same as without
// them.
func TestC3_RestartsUnderLoad(t *testing.T) {
	t.Parallel()
	for _, every := range []int{3, 50, 1_000_000, inMemory} {
		t.Run(fmt.Sprintf("checkpoint every %d", every), func(t *testing.T) {
			var checkpoints atomic.Int64
			cfg := Config{Dir: t.TempDir(), SegmentBytes: 4096, CheckpointRequests: every, OnCheckpoint: func(time.Duration, int) { checkpoints.Add(1) }}
			if every == inMemory {
				cfg.Dir, cfg.Memory = "", new(Memory)
			}
			var names []string
			var answered []int
			for round := range 12 {
				n := open(t, cfg)
				if err := checkLoads(n.list.all(), names, answered); err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
				l := n.load(fmt.Sprintf("round%d", round), 8)
				n.reach(t, l, 20+13*round)
				n.close(t)
				names, answered = append(names, l.name), append(answered, l.count())
				if err := checkLoads(n.list.all(), names, answered); err != nil {
					t.Fatalf("round %d: at the end: %v", round, err)
				}
			}
			if every <= 1000 && checkpoints.Load() < 5 {
				t.Errorf("%d checkpoints", checkpoints.Load())
			}
		})
	}
}

// inMemory takes the place of a number of requests: there are no checkpoints, and the nodes share a
// Memory.
const inMemory = 1_000_001

func TestMemory_Misuse(t *testing.T) {
	cfg := Config{Memory: new(Memory)}
	n := open(t, cfg)
	n.put(t, "a")
	if _, err := tryOpen(t, cfg); !errors.Is(err, errMemoryInUse) {
		t.Errorf("a second node with it: %v", err)
	}
	n.close(t)
	if _, err := Open(Config{Memory: cfg.Memory, ID: 2, StateMachine: &list{}}); err == nil || !strings.Contains(err.Error(), "member 1") {
		t.Errorf("as another member: %v", err)
	}
	if _, err := Open(Config{Memory: new(Memory), Dir: t.TempDir(), StateMachine: &list{}}); err == nil {
		t.Error("Dir and Memory were taken together")
	}
	unused, err := Open(Config{Memory: cfg.Memory, StateMachine: &list{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := unused.Close(); err != nil {
		t.Fatal(err)
	}
	n = open(t, cfg)
	if got := n.list.all(); !slices.Equal(got, []string{"a"}) {
		t.Error(got)
	}
	n.close(t)
}

// Checkpoints bound the size of the log. At most 5 times as many requests are sent between two
// checkpoints as are configured, since how far requests get while one is written depends on the
// disk. A checkpoint is due after 4 times as many, whatever the clock says.
func TestNode_CheckpointsDropTheLog(t *testing.T) {
	const every = 10
	written := make(chan int, 100)
	cfg := Config{
		Dir: t.TempDir(), SegmentBytes: 4096, CheckpointRequests: every,
		OnCheckpoint: func(_ time.Duration, changes int) { written <- changes },
	}
	n := open(t, cfg)
	most, since := int64(0), 0
	for i := range 400 {
		n.put(t, fmt.Sprint(i, strings.Repeat("x", 500)))
		sum := int64(0)
		files, err := os.ReadDir(cfg.walDir())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if info, err := f.Info(); err == nil { // otherwise it was dropped, or recycled, meanwhile
				sum += info.Size()
			}
		}
		most = max(most, sum)
		if since++; since < 5*every && len(written) == 0 {
			continue
		}
		select {
		case <-written:
			since = 0
		case <-watchdog.After(t, 20*time.Second):
			t.Fatalf("no checkpoint after %d requests", i+1)
		}
	}
	n.close(t)
	if most < 4096 || most > 100<<10 {
		t.Errorf("200 KB of requests with checkpoints each 5 KB made %d bytes of log", most)
	}
	cfg.CheckpointRequests, cfg.CheckpointBytes = 0, 1000
	var checkpoints atomic.Int64
	cfg.OnCheckpoint = func(_ time.Duration, changes int) { checkpoints.Add(1) }
	n = open(t, cfg)
	for i := range 10 {
		n.put(t, fmt.Sprint(i, strings.Repeat("y", 1000)))
	}
	n.close(t)
	if checkpoints.Load() == 0 {
		t.Error("CheckpointBytes makes no checkpoint")
	}
}

func TestC6_TimeNeverGoesBack(t *testing.T) {
	var clock atomic.Int64
	clock.Store(5_000_000)
	cfg := Config{Dir: t.TempDir(), CheckpointRequests: 2, Now: func() time.Time { return time.UnixMilli(clock.Load()) }}
	last := int64(0)
	for round := range 3 {
		n := open(t, cfg)
		for i := range 10 {
			clock.Add([]int64{1000, -70_000, 3, 500}[i%4])
			n.put(t, fmt.Sprint(round, i))
		}
		n.close(t)
		for _, ms := range n.list.times {
			if ms < last {
				t.Fatalf("time %d after %d", ms, last)
			}
			last = ms
		}
		clock.Add(-3_600_000)
	}
	if last < 5_000_000 {
		t.Fatalf("the last time is %d", last)
	}
}

func TestOpen_SecondIsRefused(t *testing.T) {
	cfg := Config{Dir: t.TempDir()}
	n := open(t, cfg)
	if _, err := tryOpen(t, cfg); !errors.Is(err, vfs.ErrLocked) || !strings.Contains(err.Error(), cfg.Dir) {
		t.Fatal("second Open:", err)
	}
	n.put(t, "a")
	n.close(t)
	n = open(t, cfg)
	if got := n.list.all(); !slices.Equal(got, []string{"a"}) {
		t.Fatal(got)
	}
}

// The content of LOCK is for people: it may be anything.
func TestOpen_DamagedLockFile(t *testing.T) {
	cfg := Config{Dir: t.TempDir()}
	for _, name := range []string{"LOCK", "wal/LOCK"} {
		path := filepath.Join(cfg.Dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("\x00\xff garbage that is longer than a process id"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	open(t, cfg).close(t)
}

func TestOpen_OtherMemberIsRefused(t *testing.T) {
	cfg := Config{Dir: t.TempDir(), ID: 3}
	open(t, cfg).close(t)
	cfg.ID = 4
	if _, err := tryOpen(t, cfg); err == nil || !strings.Contains(err.Error(), "belongs to member 3") {
		t.Fatal(err)
	}
	cfg.ID = 3
	open(t, cfg).close(t)
}

func TestOpen_BadConfig(t *testing.T) {
	_, err := Open(Config{ID: 256, Tick: -1, CheckpointRequests: -1})
	for _, want := range []string{"ID is 256", "StateMachine", "Tick", "CheckpointRequests"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}

// Log and checkpoint belong together: if one of them is missing, data is lost, and the member must
// not start as a new member.
func TestOpen_HalfOfTheDirectoryIsMissing(t *testing.T) {
	for _, lost := range []string{"wal", "checkpoint.db"} {
		t.Run(lost, func(t *testing.T) {
			cfg := Config{Dir: t.TempDir(), CheckpointRequests: 2, SegmentBytes: 4096}
			n := open(t, cfg)
			n.put(t, "a", "b", "c")
			n.close(t)
			away := filepath.Join(t.TempDir(), "lost")
			if err := os.Rename(filepath.Join(cfg.Dir, lost), away); err != nil {
				t.Fatal(err)
			}
			if _, err := tryOpen(t, cfg); err == nil || !strings.Contains(err.Error(), "is missing") || !strings.Contains(err.Error(), cfg.Dir) {
				t.Fatal(err)
			}
			// What was moved elsewhere can be moved here: nothing is in its place.
			if err := os.Rename(away, filepath.Join(cfg.Dir, lost)); err != nil {
				t.Fatal(err)
			}
			n = open(t, cfg)
			if got := n.list.all(); !slices.Equal(got, []string{"a", "b", "c"}) {
				t.Fatal(got)
			}
		})
	}
}

func TestNode_CloseWithoutRun(t *testing.T) {
	cfg := Config{Dir: t.TempDir(), StateMachine: &list{}}
	n, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.Run(t.Context()); err == nil || errors.Is(err, ErrClosed) {
		t.Error("Run after Close:", err)
	}
	open(t, cfg).close(t)
}

func TestNode_CancelledAtOnce(t *testing.T) {
	cfg := Config{Dir: t.TempDir(), StateMachine: &list{}}
	for range 5 {
		n, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := n.Run(ctx); !errors.Is(err, ErrClosed) {
			t.Fatal(err)
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNode_CallsAfterStopDoNotBlock(t *testing.T) {
	n := open(t, Config{})
	n.close(t)
	for range 1000 {
		n.Propose([]byte("x"), func() { t.Error("answered after the stop") })
		n.Read(func() { t.Error("read after the stop") })
	}
	if err := n.Run(t.Context()); err == nil {
		t.Error("second Run succeeds")
	}
}

func TestNode_ProposeFromManyGoroutines(t *testing.T) {
	n := open(t, Config{Dir: t.TempDir(), CheckpointRequests: 100})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() { // awaited below
			for i := range 100 {
				n.Propose(fmt.Appendf(nil, "%d/%03d", g, i), nil)
			}
		})
	}
	wg.Wait()
	n.put(t, "last")
	n.close(t)
	items := n.list.all()
	if len(items) != 801 || items[800] != "last" {
		t.Fatalf("%d items", len(items))
	}
	for g := range 8 { // each goroutine's in its order
		var mine []string
		for _, item := range items {
			if strings.HasPrefix(item, fmt.Sprintf("%d/", g)) {
				mine = append(mine, item)
			}
		}
		if len(mine) != 100 || !slices.IsSorted(mine) {
			t.Fatalf("goroutine %d: %v", g, mine)
		}
	}
}
