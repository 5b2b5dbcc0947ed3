package wal_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/wal"
)

// step is one call of a workload: a Compact if compact is not zero, otherwise an Append.
type step struct {
	batches []wal.Batch
	compact uint64
	reopen  bool // close and open before
}

// drawSteps draws a workload of at most that many steps, valid for an empty log.
func drawSteps(t *rapid.T, most int) []step {
	m := newModel()
	steps := make([]step, rapid.IntRange(1, most).Draw(t, "steps"))
	for i := range steps {
		s := &steps[i]
		s.reopen = rapid.IntRange(0, 9).Draw(t, "reopen") == 0
		if m.last > 0 && rapid.IntRange(0, 7).Draw(t, "kind") == 0 {
			s.compact = rapid.Uint64Range(1, m.last+3).Draw(t, "compact")
			m.compact(s.compact)
			continue
		}
		for range rapid.IntRange(1, 4).Draw(t, "batches") {
			b := drawBatch(t, m, fmt.Sprintf("%d;", i))
			s.batches = append(s.batches, b)
			m.append(b)
		}
	}
	return steps
}

func drawBatch(t *rapid.T, m *model, tag string) wal.Batch {
	var b wal.Batch
	if rapid.Bool().Draw(t, "state") {
		b.State = []byte(tag + strings.Repeat("s", rapid.IntRange(0, 600).Draw(t, "state bytes")))
	}
	first, last := m.first, m.last
	if rapid.IntRange(0, 20).Draw(t, "reset") == 0 {
		b.Reset = rapid.Uint64Range(1, m.last+5).Draw(t, "reset to")
		first, last = b.Reset+1, b.Reset
	}
	if n := rapid.IntRange(0, 4).Draw(t, "entries"); n > 0 {
		from := last + 1
		if from > first && rapid.IntRange(0, 4).Draw(t, "overwrite") == 0 {
			from = rapid.Uint64Range(first, last+1).Draw(t, "from")
		}
		b.Entries = entries(from, n, tag+strings.Repeat("e", rapid.IntRange(0, 1500).Draw(t, "entry bytes")))
	}
	return b
}

// run applies steps to a log on fs. acked is the acknowledged content, next the content after the
// running step. Both are up to date whenever the hook of a faulty fs runs. It stops at the first
// error.
type run struct {
	cfg   wal.Config
	acked *model
	next  *model
}

func newRun(cfg wal.Config) *run { return &run{cfg: cfg, acked: newModel(), next: newModel()} }

func (r *run) steps(steps []step) error {
	l, rec, err := wal.Open(dir, r.cfg)
	if err != nil {
		return err
	}
	if err := r.acked.check(l, rec); err != nil {
		return fmt.Errorf("at the start: %w", err)
	}
	for _, s := range steps {
		if s.reopen {
			if err := l.Close(); err != nil {
				return err
			}
			if l, rec, err = wal.Open(dir, r.cfg); err != nil {
				return err
			}
			if err := r.acked.check(l, rec); err != nil {
				return fmt.Errorf("after reopening: %w", err)
			}
			if rec.TornBytes != 0 {
				return fmt.Errorf("after reopening: %d torn bytes", rec.TornBytes)
			}
			r.acked.first, r.next.first = l.FirstIndex(), l.FirstIndex()
		}
		if s.compact != 0 {
			r.next.compact(s.compact)
			err = l.Compact(s.compact)
		} else {
			r.next.append(s.batches...)
			err = l.Append(s.batches...)
		}
		if err != nil {
			if again := l.Append(wal.Batch{State: []byte("must not be written")}); !errors.Is(again, err) {
				return fmt.Errorf("an append after %w was answered with %w", err, again)
			}
			return err
		}
		r.acked = r.next.clone()
	}
	return l.Close()
}

// recovered opens the log on fs, and requires that it holds the acknowledged content, with or
// without the running step.
func (r *run) recovered(fs vfs.FS) (*wal.Log, *model, error) {
	cfg := r.cfg
	cfg.FS = fs
	l, rec, err := readThenOpen(cfg)
	if err != nil {
		return nil, nil, err
	}
	errAcked := r.acked.check(l, rec)
	if errAcked == nil {
		return l, r.acked.clone(), nil
	}
	errNext := r.next.check(l, rec)
	if errNext == nil {
		return l, r.next.clone(), nil
	}
	return nil, nil, fmt.Errorf("neither what was acknowledged (%w) nor what was under way (%w)", errAcked, errNext)
}

// survives recovers the log from fs, uses it, and requires that both the recovered and the new
// content survive the next power loss.
func (r *run) survives(fs *vfstest.Mem, choose func(int) int) error {
	l, m, err := r.recovered(fs)
	if err != nil {
		return err
	}
	// The recovered content is durable even if nothing more is written.
	again := &run{cfg: r.cfg, acked: m, next: m}
	if _, _, err := again.recovered(fs.Crash(choose)); err != nil {
		return fmt.Errorf("after a crash right after recovery: %w", err)
	}
	m.first = l.FirstIndex()
	more := wal.Batch{State: []byte("after"), Entries: entries(m.last+1, 2, "after")}
	if err := l.Append(more); err != nil {
		return err
	}
	m.append(more)
	if _, _, err := again.recovered(fs.Crash(choose)); err != nil {
		return fmt.Errorf("after recovery, an append and a crash: %w", err)
	}
	return l.Close()
}

func TestCrash_AfterEveryOperation(t *testing.T) {
	exhaustive.Checks(t, 6, 100)
	rapid.Check(t, func(t *rapid.T) {
		steps := drawSteps(t, 25)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		mem := vfstest.NewMem()
		var r *run
		ops := 0
		hook := func(op vfstest.Op) error {
			if op.Kind == vfstest.OpRead || op.Kind == vfstest.OpOpen {
				return nil // no change, so this crash was tried already
			}
			ops++
			for name, choose := range map[string]func(int) int{
				"all unsynced lost": func(int) int { return 0 },
				"all kept":          func(n int) int { return n - 1 },
				"torn":              rng.IntN,
			} {
				if err := r.survives(mem.Crash(choose), rng.IntN); err != nil {
					t.Fatalf("crash before operation %d, %s %s, %s: %v", ops, op.Kind, op.Path, name, err)
				}
			}
			return nil
		}
		r = newRun(wal.Config{FS: vfstest.NewFaulty(mem, hook), SegmentBytes: wal.MinSegmentBytes, Rand: saltSource(1)})
		if err := r.steps(steps); err != nil {
			t.Fatal(err)
		}
	})
}

// stopped runs steps until a drawn operation on the file system, from which on the process has no
// effect.
func stopped(t *rapid.T, mem *vfstest.Mem, steps []step) *run {
	ops, stop := 0, rapid.IntRange(1, 200).Draw(t, "stop at operation")
	r := newRun(wal.Config{SegmentBytes: wal.MinSegmentBytes, Rand: saltSource(1)})
	r.cfg.FS = vfstest.NewFaulty(mem, func(vfstest.Op) error {
		if ops++; ops >= stop {
			return syscall.EIO
		}
		return nil
	})
	if err := r.steps(steps); err != nil && !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	return r
}

// After a crash, recovery crashes as well, at every operation, and so does the next one. The
// content never changes again.
func TestCrash_DuringRecovery(t *testing.T) {
	exhaustive.Checks(t, 15, 100)
	rapid.Check(t, func(t *rapid.T) {
		steps := drawSteps(t, 40)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		mem := vfstest.NewMem()
		r := stopped(t, mem, steps)
		crashed := mem.Crash(rng.IntN)
		hook := func(op vfstest.Op) error {
			if err := r.survives(crashed.Crash(rng.IntN), rng.IntN); err != nil {
				t.Fatalf("crash before %s %s of the recovery: %v", op.Kind, op.Path, err)
			}
			return nil
		}
		l, _, err := r.recovered(vfstest.NewFaulty(crashed, hook))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// The process dies without a power loss. The next process sees unsynced writes, and must make them
// durable before anything depends on them.
func TestKill_ThenPowerLoss(t *testing.T) {
	exhaustive.Checks(t, 50, 100)
	rapid.Check(t, func(t *rapid.T) {
		steps := drawSteps(t, 40)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		mem := vfstest.NewMem()
		r := stopped(t, mem, steps)
		mem.Kill()
		if err := r.survives(mem, rng.IntN); err != nil {
			t.Fatal(err)
		}
	})
}

// Every operation fails once. The error is returned, nothing more is acknowledged, and the next
// process recovers everything. As on Linux, a failed sync leaves pages that can be read, are clean,
// and are not on disk.
func TestFault_EveryOperationFailsOnce(t *testing.T) {
	errDisk := errors.New("disk error")
	exhaustive.Checks(t, 6, 100)
	rapid.Check(t, func(t *rapid.T) {
		steps := drawSteps(t, 15)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		for fail := 1; ; fail++ {
			mem := vfstest.NewMem()
			ops := 0
			var failed vfstest.Op
			r := newRun(wal.Config{SegmentBytes: wal.MinSegmentBytes, Rand: saltSource(1)})
			r.cfg.FS = vfstest.NewFaulty(mem, func(op vfstest.Op) error {
				if ops++; ops != fail {
					return nil
				}
				failed = op
				switch op.Kind {
				case vfstest.OpWrite:
					return &vfstest.ShortWrite{N: rng.IntN(2000), Err: errDisk}
				case vfstest.OpSync:
					mem.LoseUnsynced(op.Path)
				}
				return errDisk
			})
			err := r.steps(steps)
			if ops < fail {
				if err != nil {
					t.Fatal(err)
				}
				return // the run had fewer operations: each has failed once
			}
			if !errors.Is(err, errDisk) {
				t.Fatalf("operation %d, %s %s, failed and the result is %v", fail, failed.Kind, failed.Path, err)
			}
			mem.Kill()
			if err := r.survives(mem, rng.IntN); err != nil {
				t.Fatalf("after operation %d, %s %s, failed: %v", fail, failed.Kind, failed.Path, err)
			}
		}
	})
}
