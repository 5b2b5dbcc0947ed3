package consensus

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/consensus/internal/checkpoint"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/internal/vfs"
)

// newestPages returns the numbers of the pages that differ between two versions of a checkpoint
// file, without the meta pages.
func newestPages(before, after []byte) (pages []int) {
	size := os.Getpagesize()
	for at := 2 * size; at < len(after); at += size {
		if at >= len(before) || !bytes.Equal(before[at:at+size], after[at:at+size]) {
			pages = append(pages, at/size)
		}
	}
	return pages
}

// fallbackDir returns a data directory whose log has entries after its newest checkpoint, the items
// in it, and the pages that the newest checkpoint wrote.
func fallbackDir(t *testing.T) (cfg Config, items []string, written []int) {
	cfg = Config{Dir: t.TempDir(), CheckpointRequests: 1 << 30, SegmentBytes: 4 << 10}
	put := func(node *running, n int) {
		for range n {
			items = append(items, fmt.Sprint(len(items), strings.Repeat("x", 300)))
			node.put(t, items[len(items)-1])
		}
	}
	// checkpointAfter writes a checkpoint and waits until the log was compacted.
	checkpointAfter := func(requests int, compacted func() bool) {
		cfg.CheckpointRequests = requests
		node := open(t, cfg)
		put(node, requests)
		for patience := watchdog.Context(t, 20*time.Second); !compacted(); time.Sleep(time.Millisecond) {
			if patience.Err() != nil {
				t.Fatal("the log was not compacted")
			}
		}
		node.close(t)
		cfg.CheckpointRequests = 1 << 30
	}
	firstSegment := filepath.Join(cfg.Dir, "wal", fmt.Sprintf("%016x.wal", 1))
	checkpointAfter(40, func() bool { return true })
	before := readFile(t, cfg.checkpointPath())
	checkpointAfter(30, func() bool { _, err := os.Stat(firstSegment); return err != nil })
	written = newestPages(before, readFile(t, cfg.checkpointPath()))
	node := open(t, cfg)
	put(node, 10)
	node.close(t)
	return cfg, items, written
}

// C4: a start that finds the newest checkpoint damaged begins with the previous checkpoint and the
// log, loses nothing, and writes later checkpoints that are good.
func TestC4_PreviousCheckpoint(t *testing.T) {
	t.Parallel()
	cfg, items, written := fallbackDir(t)
	if len(written) == 0 {
		t.Fatal("the newest checkpoint wrote no page")
	}
	good := readFile(t, cfg.checkpointPath())
	for _, page := range written {
		cfg := cfg
		cfg.Dir = copyDir(t, cfg.Dir)
		bad := slices.Clone(good)
		fill(bad[page*os.Getpagesize():][:os.Getpagesize()], 0xa5)
		writeFile(t, cfg.checkpointPath(), bad)
		var read list
		if _, err := ReadDir(cfg.Dir, "", &read); err != nil || !slices.Equal(read.all(), items) {
			t.Fatalf("page %d: ReadDir: %d items, %v; want %d items", page, len(read.all()), err, len(items))
		}
		if !bytes.Equal(readFile(t, cfg.checkpointPath()), bad) {
			t.Fatal("ReadDir changed the checkpoint file")
		}
		for start := range 3 {
			cfg.CheckpointRequests = 1 << start // the third start writes no checkpoint
			n, err := tryOpen(t, cfg)
			if err != nil {
				t.Fatalf("page %d, start %d: %v", page, start, err)
			}
			n.wait(t)
			if got := n.Status().Reverted; got != (start == 0) {
				t.Fatalf("page %d, start %d: reverted is %v", page, start, got)
			}
			if start > 0 {
				n.put(t, "more")
			}
			n.close(t)
			if got, want := n.list.all(), len(items)+start; len(got) != want || !slices.Equal(got[:len(items)], items) {
				t.Fatalf("page %d, start %d: %d items, want %d", page, start, len(got), want)
			}
		}
	}
}

// A damaged checkpoint whose previous checkpoint the log does not continue, or does not continue
// far enough, is an error that says so, and changes nothing.
func TestC4_PreviousCheckpointWithoutLog(t *testing.T) {
	whole, _, written := fallbackDir(t)
	whole.LogDir = whole.Dir
	segments, err := filepath.Glob(filepath.Join(whole.walDir(), "*.wal"))
	if err != nil || len(segments) < 3 {
		t.Fatalf("the log has the segments %v: too few; %v", segments, err)
	}
	bad := readFile(t, whole.checkpointPath())
	fill(bad[written[0]*os.Getpagesize():][:os.Getpagesize()], 0xa5)
	for name, lost := range map[string][]string{
		"beginning": segments[:len(segments)-1], // as if compacted up to the newest checkpoint
		"end":       segments[len(segments)/2:], // as if the disk had lost synced files
	} {
		cfg := Config{Dir: copyDir(t, whole.Dir)}
		cfg.LogDir = cfg.Dir
		for _, s := range lost {
			if err := os.Remove(filepath.Join(cfg.walDir(), filepath.Base(s))); err != nil {
				t.Fatal(err)
			}
		}
		writeFile(t, cfg.checkpointPath(), bad)
		_, err = tryState(t, cfg)
		mustBeCorrupt(t, cfg.checkpointPath(), err)
		if !strings.Contains(err.Error(), "the log does not continue it") {
			t.Errorf("%s: the error does not name the log: %v", name, err)
		}
		if !bytes.Equal(readFile(t, cfg.checkpointPath()), bad) {
			t.Errorf("%s: the start changed the checkpoint file", name)
		}
	}
}

// Revert is atomic: whatever part of its write reaches the disk, a start can read the previous
// transaction.
func TestC4_RevertTorn(t *testing.T) {
	cfg, _, written := fallbackDir(t)
	bad := readFile(t, cfg.checkpointPath())
	fill(bad[written[0]*os.Getpagesize():][:os.Getpagesize()], 0xa5)
	path := t.TempDir() + "/checkpoint.db"
	writeFile(t, path, bad)
	if err := checkpoint.Revert(vfs.OS{}, path); err != nil {
		t.Fatal(err)
	}
	reverted := readFile(t, path)
	rapid.Check(t, func(t *rapid.T) {
		torn := slices.Clone(bad)
		for at := 0; at < 2*os.Getpagesize(); at++ {
			if torn[at] != reverted[at] && rapid.Bool().Draw(t, "written") {
				torn[at] = reverted[at]
			}
		}
		if err := os.WriteFile(path, torn, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := checkpoint.Open(vfs.OS{}, path, checkpoint.Newest)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}()
		var l list
		_, err = restoreFrom(r.Range, &l)
		if previous, previousErr := checkpoint.Open(vfs.OS{}, path, checkpoint.Previous); err != nil && previousErr != nil {
			t.Fatalf("neither transaction is readable: %v; %v", err, previousErr)
		} else if previousErr == nil {
			if err := previous.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// The fallback covers the pages that the newest checkpoint wrote. All others belong to both
// checkpoints, or to none: damage there does no harm, or prevents the start with an error that says
// what to do.
func TestC4_SharedPages(t *testing.T) {
	cfg, items, written := fallbackDir(t)
	cfg.CheckpointRequests = 1 << 30
	good, size := readFile(t, cfg.checkpointPath()), os.Getpagesize()
	refused := 0
	for page := 2; page < len(good)/size; page++ {
		cfg := cfg
		cfg.Dir = copyDir(t, cfg.Dir)
		bad := slices.Clone(good)
		fill(bad[page*size:][:size], 0xa5)
		writeFile(t, cfg.checkpointPath(), bad)
		got, err := tryState(t, cfg)
		switch {
		case err == nil && !slices.Equal(got, items):
			t.Fatalf("page %d: %d items, want %d, and no error", page, len(got), len(items))
		case err == nil:
			continue
		case slices.Contains(written, page):
			t.Errorf("page %d, which only the newest checkpoint has: %v", page, err)
		}
		mustBeCorrupt(t, cfg.checkpointPath(), err)
		if !strings.Contains(err.Error(), "start this server with an empty one; otherwise make a new one with gozkd restore") {
			t.Errorf("page %d: the error does not say what to do: %v", page, err)
		}
		for _, which := range []checkpoint.Transaction{checkpoint.Newest, checkpoint.Previous} {
			r, err := checkpoint.Open(vfs.OS{}, cfg.checkpointPath(), which)
			if err == nil {
				err = errors.Join(r.Range(func(_, _ []byte) error { return nil }), r.CheckFreelist(), r.Close())
			}
			if err == nil {
				t.Errorf("page %d was refused, and one of the checkpoints does not have it", page)
			}
		}
		refused++
	}
	t.Logf("of %d pages the newest checkpoint wrote %d; %d belong to both checkpoints", len(good)/size-2, len(written), refused)
	if refused == 0 {
		t.Error("no page belongs to both checkpoints")
	}
}
