package consensus

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/consensus/internal/core"
	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/internal/vfs"
)

// refound makes a new directory of a stopped member's state.
func refound(t *testing.T, from, to string, id uint64) SavedState {
	t.Helper()
	l := &list{}
	h, err := ReadDir(from, "", l)
	if err != nil {
		t.Fatal(err)
	}
	got, err := h.FoundEnsemble(Foundation{ID: id, Dir: to, Cluster: 4711, NewTerms: 1000}, l.CaptureAll())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// ReadDir of a stopped member's directory returns the state that the member has after a restart,
// wherever its checkpoint is, and changes nothing. A new ensemble begins with that state, with a
// later term and the next index.
func TestFound_FromAStoppedMember(t *testing.T) {
	for _, every := range []int{3, 50, 1_000_000} {
		t.Run(fmt.Sprintf("checkpoint every %d", every), func(t *testing.T) {
			cfg := Config{Dir: t.TempDir(), LogDir: t.TempDir(), SegmentBytes: 4096, CheckpointRequests: every}
			for round := range 4 {
				n := open(t, cfg)
				l := n.load(fmt.Sprintf("round%d", round), 8)
				n.reach(t, l, 20+33*round)
				n.close(t)
			}
			before := vfstest.Fingerprint(t, cfg.Dir) + vfstest.Fingerprint(t, cfg.LogDir)
			read := &list{}
			h, err := ReadDir(cfg.Dir, cfg.LogDir, read)
			if err != nil {
				t.Fatal(err)
			}
			if after := vfstest.Fingerprint(t, cfg.Dir) + vfstest.Fingerprint(t, cfg.LogDir); after != before {
				t.Error("reading changed something")
			}
			dir := t.TempDir()
			if _, err := h.FoundEnsemble(Foundation{ID: 7, Dir: dir, Cluster: 1, NewTerms: 100}, read.CaptureAll()); err != nil {
				t.Fatal(err)
			}
			founded := open(t, Config{ID: 7, Dir: dir})
			original := open(t, cfg)
			if got, want := founded.list.all(), original.list.all(); !slices.Equal(got, want) || !slices.Equal(read.all(), want) {
				t.Errorf("%d items were read, %d founded, %d are there", len(read.all()), len(got), len(want))
			}
			if s := founded.Status(); s.Term <= h.Term+100 || s.Applied <= h.Index+1 || !slices.Equal(s.Voters, []uint64{7}) {
				t.Errorf("%+v after term %d and index %d", s, h.Term, h.Index)
			}
			if s := original.Status(); s.Term != h.Term+1 || s.Applied != h.Index+1 {
				t.Errorf("%+v of the original after term %d and index %d", s, h.Term, h.Index)
			}
			founded.put(t, "after")
			founded.close(t)
			original.close(t)
			again := open(t, Config{ID: 7, Dir: dir})
			if got := again.list.all(); len(got) == 0 || got[len(got)-1] != "after" {
				t.Error("a later write is lost")
			}
			again.close(t)
		})
	}
}

func TestReadDir_Refuses(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadDir(dir, "", &list{}); !errors.Is(err, ErrNoState) {
		t.Errorf("an empty directory: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("it left %v %v", entries, err)
	}
	if _, err := ReadDir(filepath.Join(dir, "none"), "", &list{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
	if _, err := ReadCheckpoint(filepath.Join(dir, "none"), &list{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	cfg := Config{Dir: dir, SegmentBytes: 4096, CheckpointRequests: 1 << 30}
	n := open(t, cfg)
	n.put(t, "a", "b")
	if _, err := ReadDir(dir, "", &list{}); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("in use: %v", err)
	}
	n.close(t)
	if err := os.Rename(filepath.Join(dir, "wal"), filepath.Join(dir, "gone")); err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(dir, "elsewhere")
	for logDir, want := range map[string]string{
		"": "the log in " + filepath.Join(dir, "wal") + " is missing", elsewhere: "the directory of the log, " + elsewhere + ", does not: correct its name",
	} {
		if _, err := ReadDir(dir, logDir, &list{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("without the log in %q: %v", logDir, err)
		}
	}
	l := &list{}
	if h, err := ReadCheckpoint(filepath.Join(dir, "checkpoint.db"), l); err != nil || h.Index != 1 || len(l.all()) != 0 {
		t.Errorf("the checkpoint alone: %+v %v %v", h, l.all(), err)
	}
}

func TestFound_Refuses(t *testing.T) {
	from := t.TempDir()
	n := open(t, Config{Dir: from})
	n.put(t, "a")
	n.close(t)
	l := &list{}
	h, err := ReadDir(from, "", l)
	if err != nil {
		t.Fatal(err)
	}
	before := vfstest.Fingerprint(t, from)
	if _, err := h.FoundEnsemble(Foundation{ID: 1, Dir: from, Cluster: 1, NewTerms: 1}, l.CaptureAll()); err == nil {
		t.Error("a directory with data was taken")
	}
	if err := os.Remove(filepath.Join(from, "checkpoint.db")); err != nil {
		t.Fatal(err)
	}
	if _, err := h.FoundEnsemble(Foundation{ID: 1, Dir: from, Cluster: 1, NewTerms: 1}, l.CaptureAll()); err == nil || !strings.Contains(err.Error(), "there is a log in") {
		t.Errorf("a directory with a log: %v", err)
	}
	if vfstest.Fingerprint(t, from) == before {
		t.Error("the fingerprint does not change with the files")
	}
	for _, f := range []Foundation{{Cluster: 1, NewTerms: 1}, {ID: 256, Cluster: 1, NewTerms: 1}, {ID: 1, NewTerms: 1}, {ID: 1, Cluster: h.Cluster, NewTerms: 1}, {ID: 1, Cluster: 1}, {ID: 1, Cluster: 1, NewTerms: 1 << 63}} {
		f.Dir = filepath.Join(t.TempDir(), "new")
		if _, err := h.FoundEnsemble(f, l.CaptureAll()); err == nil {
			t.Errorf("%+v was taken", f)
		}
		if _, err := os.Stat(f.Dir); err == nil {
			t.Errorf("%+v left a directory", f)
		}
	}
}

// After a power loss before any operation of the log's disk, or before the rename of the
// checkpoint, the directory is as new, or refused, or complete.
func TestFound_PowerLossAtEveryOperation(t *testing.T) {
	t.Parallel()
	from := t.TempDir()
	n := open(t, Config{Dir: from})
	n.put(t, "a", "b", "c")
	n.close(t)
	l := &list{}
	h, err := ReadDir(from, "", l)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	lost := errors.New("power loss")
	fresh, refused, whole := 0, 0, 0
	look := func(what, dir string, disk *vfstest.Mem) {
		t.Helper()
		cfg := Config{ID: 2, Dir: dir, LogDir: "log", FS: disk, StateMachine: &list{}}
		node, err := Open(cfg)
		if err != nil {
			if _, statErr := os.Stat(filepath.Join(dir, "checkpoint.db")); !errors.Is(statErr, fs.ErrNotExist) || !strings.Contains(err.Error(), "the checkpoint") {
				t.Fatalf("%s: %v, checkpoint: %v", what, err, statErr)
			}
			refused++
			return
		}
		if isFresh := node.core.Fresh(); isFresh {
			fresh++
		} else {
			whole++
			if got := node.cfg.StateMachine.(*list).all(); !slices.Equal(got, []string{"a", "b", "c"}) {
				t.Fatalf("%s: %v", what, got)
			}
		}
		if err := node.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for at, done := 0, false; !done; at++ {
		for _, choose := range []func(int) int{rng.IntN, func(int) int { return 0 }, func(n int) int { return n - 1 }} {
			disk, dir, ops := vfstest.NewMem(), t.TempDir(), 0
			what := fmt.Sprintf("operation %d", at)
			failing := vfstest.NewFaulty(disk, func(op vfstest.Op) error {
				if ops++; ops > at {
					what = fmt.Sprintf("operation %d, %v", at, op)
					return lost
				}
				return nil
			})
			_, err := h.FoundEnsemble(Foundation{ID: 2, Dir: dir, LogDir: "log", Cluster: 9, NewTerms: 10, FS: failing}, l.CaptureAll())
			if done = err == nil; !done && !errors.Is(err, lost) {
				t.Fatal(err)
			}
			disk.Kill()
			look(what, dir, disk.Crash(choose))
			if done { // everything except the rename
				if err := os.Rename(filepath.Join(dir, "checkpoint.db"), filepath.Join(dir, "checkpoint.db.new")); err != nil {
					t.Fatal(err)
				}
				was := refused
				if look("before the rename", dir, disk.Crash(choose)); refused == was {
					t.Error("a directory without its checkpoint was taken")
				}
			}
		}
	}
	if fresh < 10 || refused < 3 || whole != 3 {
		t.Errorf("%d as new, %d refused, %d whole", fresh, refused, whole)
	}
}

// A survivor founds a new ensemble. A member without state is let in, and ignores a member of the
// old ensemble that still runs and has more entries. That member is refused until it is emptied as
// well.
func TestFound_TheOldEnsembleStaysApart(t *testing.T) {
	e := newEnsemble(t, 3, true)
	survivor, second, old := e.nodes[0], e.nodes[1], e.nodes[2]
	e.put(e.leader(), 200, 100)
	e.converge()
	survivor.stop()
	e.put(second, 50, 100) // which the survivor lacks
	second.stop()
	old.stop()
	kept := slices.Clone(survivor.list.all())

	dir := t.TempDir()
	refound(t, survivor.dir, dir, 1)
	survivor.dir, second.dir = dir, t.TempDir()
	old.start()
	second.start() // talks with the old member first, and can't tell
	e.eventually("the emptied member talks with the old one", func() bool { return slices.Contains(second.n.Connected(), old.id) })
	survivor.start()
	e.eventually("the emptied member is let in", func() bool {
		s := survivor.n.Status()
		return s.Leading && slices.Equal(s.Voters, []uint64{1, 2}) && !second.n.Status().Fresh && len(second.list.all()) == len(kept)
	})
	e.put(second, 100, 100)
	e.eventually("the old one is cut off", func() bool {
		return !slices.Contains(second.n.Connected(), old.id) && !slices.Contains(survivor.n.Connected(), old.id)
	})
	// The old member goes on to connect, and to ask for votes, for some election timeouts.
	asked := time.NewTimer(40 * core.ElectionTicks * 10 * time.Millisecond / 10)
	<-asked.C
	if s := old.n.Status(); s.Leader != 0 || len(old.list.all()) > len(kept)+50 {
		t.Errorf("the old one: %+v, %d items", s, len(old.list.all()))
	}
	if got := survivor.list.all(); !slices.Equal(got[:len(kept)], kept) || !slices.Equal(got, second.list.all()) {
		t.Errorf("%d items, and %d", len(got), len(second.list.all()))
	}
	old.stop()
	old.dir = t.TempDir()
	old.start()
	e.whole()
	e.put(old, 10, 100)
	e.eventually("all have the same", func() bool {
		all := survivor.list.all()
		return len(all) == len(kept)+110 && slices.Equal(all, second.list.all()) && slices.Equal(all, old.list.all())
	})
}

// A truncated file, or a file with a wrong byte in the state, is refused.
func TestReadCheckpoint_FindsDamage(t *testing.T) {
	dir := t.TempDir()
	n := open(t, Config{Dir: dir})
	for i := range 300 {
		n.put(t, fmt.Sprintf("%d%s", i, strings.Repeat("x", 100)))
	}
	n.close(t)
	l := &list{}
	h, err := ReadDir(dir, "", l)
	if err != nil {
		t.Fatal(err)
	}
	good := filepath.Join(t.TempDir(), "good.db")
	if err := h.WriteCheckpoint(good, l.CaptureAll(), nil); err != nil {
		t.Fatal(err)
	}
	if err := h.WriteCheckpoint(good, l.CaptureAll(), nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a file: %v", err)
	}
	copied := &list{}
	if got, err := ReadCheckpoint(good, copied); err != nil || got.Index != h.Index || got.Cluster != h.Cluster || h.Cluster == 0 || !slices.Equal(copied.all(), l.all()) {
		t.Errorf("%+v %v, want %+v", got, err, h)
	}
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 1, 100, len(data) / 2} {
		path := filepath.Join(t.TempDir(), "cut.db")
		if err := os.WriteFile(path, data[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadCheckpoint(path, &list{}); !errors.Is(err, ErrCorruptCheckpoint) {
			t.Errorf("cut at %d: %v", size, err)
		}
	}
	path := filepath.Join(t.TempDir(), "wrong.db")
	wrong := slices.Clone(data)
	at := strings.Index(string(wrong), "xxxx")
	wrong[at] = 'y'
	if err := os.WriteFile(path, wrong, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadCheckpoint(path, &list{}); !errors.Is(err, ErrCorruptCheckpoint) {
		t.Errorf("a wrong byte: %v", err)
	}
}

// A file of many megabytes is written in parts, and room is called before each of them. Its error
// ends the writing.
func TestWriteCheckpoint_AsksForRoom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := open(t, Config{Dir: dir})
	for range 6 {
		n.put(t, strings.Repeat("x", 1<<20))
	}
	n.close(t)
	l := &list{}
	h, err := ReadDir(dir, "", l)
	if err != nil {
		t.Fatal(err)
	}
	full := errors.New("no room")
	for left, done := 0, false; !done; left += exhaustive.Or(2, 1) {
		path, asked := filepath.Join(t.TempDir(), "f.db"), 0
		err := h.WriteCheckpoint(path, l.CaptureAll(), func() error {
			if asked++; asked > left {
				return full
			}
			return nil
		})
		if done = err == nil; !done {
			if _, readErr := ReadCheckpoint(path, &list{}); !errors.Is(err, full) || !errors.Is(readErr, ErrCorruptCheckpoint) {
				t.Errorf("after %d parts: %v, and it is read: %v", left, err, readErr)
			}
		} else if _, err := ReadCheckpoint(path, &list{}); err != nil || left < 3 {
			t.Errorf("written in %d parts: %v", left, err)
		}
		if left > 20 {
			t.Fatal(err)
		}
	}
}
