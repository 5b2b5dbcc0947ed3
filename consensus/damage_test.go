package consensus

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/gozkd/gozkd/consensus/internal/core"
	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/wal"
)

// smallCheckpoint makes a data directory whose checkpoint has a few pages of each kind, and returns
// the items.
func smallCheckpoint(t *testing.T) (Config, []string) {
	cfg := Config{Dir: t.TempDir(), CheckpointRequests: 1 << 30}
	n := open(t, cfg)
	var items []string
	for i := range 40 {
		items = append(items, fmt.Sprint(i, strings.Repeat("x", 300)))
	}
	n.put(t, items...)
	n.close(t)
	// Three more checkpoints of one item each: pages become free, so the free list is not empty.
	cfg.CheckpointRequests = 1
	for i := range 3 {
		n = open(t, cfg)
		n.put(t, fmt.Sprint("more", i))
		items = append(items, fmt.Sprint("more", i))
		n.close(t)
	}
	return cfg, items
}

// tryState opens the directory and returns the items, or the error of Open.
func tryState(t *testing.T, cfg Config) ([]string, error) {
	t.Helper()
	n, err := tryOpen(t, cfg)
	if err != nil {
		return nil, err
	}
	n.wait(t)
	n.close(t)
	return n.list.all(), nil
}

func mustBeCorrupt(t *testing.T, path string, err error) {
	t.Helper()
	if !errors.Is(err, ErrCorruptCheckpoint) || !strings.Contains(err.Error(), path) {
		t.Fatalf("error %v does not say that %s is corrupt", err, path)
	}
}

// Every page of a checkpoint is damaged in several ways: Open returns an error, or the state is
// right anyway. The state is never silently wrong, and nothing stays locked.
func TestC4_DamagedPages(t *testing.T) {
	t.Parallel()
	cfg, items := smallCheckpoint(t)
	path := cfg.checkpointPath()
	good := readFile(t, path)
	page := os.Getpagesize()
	rng := rand.New(rand.NewPCG(1, 1))
	damages := map[string]func(p []byte){
		"zeros": func(p []byte) { clear(p) },
		"ones":  func(p []byte) { fill(p, 0xff) },
		"noise": func(p []byte) {
			for i := range p {
				p[i] = byte(rng.Uint32())
			}
		},
		"noise behind the head": func(p []byte) {
			for i := range p[16:] {
				p[16+i] = byte(rng.Uint32())
			}
		},
		"bit in the head": func(p []byte) { p[rng.IntN(16)] ^= 1 << rng.IntN(8) },
		"bit":             func(p []byte) { p[rng.IntN(len(p))] ^= 1 << rng.IntN(8) },
		"bit in use":      func(p []byte) { p[rng.IntN(200)] ^= 1 << rng.IntN(8) },
	}
	found, harmless := 0, 0
	cfg.CheckpointRequests = 1 << 30
	for at := 0; at < len(good); at += page {
		if n := at / page; n >= 8 && n%8 != 0 && !exhaustive.Enabled() {
			continue
		}
		for _, name := range sortedNames(damages) {
			for range exhaustive.Or(1, 2) {
				bad := slices.Clone(good)
				damages[name](bad[at : at+page])
				writeFile(t, path, bad)
				got, err := tryState(t, cfg)
				switch {
				case err != nil:
					mustBeCorrupt(t, path, err)
					if !bytes.Equal(readFile(t, path), bad) {
						t.Fatalf("page %d, %s: Open changed the file", at/page, name)
					}
					found++
				case !slices.Equal(got, items):
					t.Fatalf("page %d, %s: %d items, want %d, and no error", at/page, name, len(got), len(items))
				default:
					harmless++
					// One of the two meta pages may be lost: the other suffices.
					// docs/internals/consensus.md says what damage in other pages does to the next
					// checkpoint.
					if at < 2*page {
						writeFile(t, path, bad)
						goOn(t, cfg, items)
					}
				}
				writeFile(t, path, good)
			}
		}
	}
	t.Logf("%d pages: %d damages found, %d harmless", len(good)/page, found, harmless)
	if got, err := tryState(t, cfg); err != nil || !slices.Equal(got, items) {
		t.Fatal("the good file afterwards:", err)
	}
	if found == 0 || harmless == 0 {
		t.Error("too little was tried")
	}
}

// goOn writes another checkpoint to a file with damage that Open did not notice. If an older state
// comes to light, the log either has a gap after it, which is an error, or holds everything since.
func goOn(t *testing.T, cfg Config, items []string) {
	t.Helper()
	cfg.Dir = copyDir(t, cfg.Dir)
	cfg.CheckpointRequests = 1
	n, err := tryOpen(t, cfg)
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan struct{})
	n.Propose([]byte("one more"), func() { close(answered) })
	select {
	case <-answered:
	case err := <-n.done: // a checkpoint of the log's entries came first
		n.done <- err // for stop
	case <-watchdog.After(t, 20*time.Second):
		t.Fatal("no answer")
	}
	if err := n.stop(); !errors.Is(err, ErrClosed) {
		mustBeCorrupt(t, cfg.checkpointPath(), err)
	}
	cfg.CheckpointRequests = 1 << 30
	got, err := tryState(t, cfg)
	if err != nil {
		mustBeCorrupt(t, cfg.checkpointPath(), err)
	} else if want := n.list.all(); !slices.Equal(got[:min(len(got), len(want))], want) || len(got) > len(items)+1 {
		t.Fatalf("%d items after another checkpoint, want %d, and no error", len(got), len(want))
	}
}

func copyDir(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestC4_TruncatedFile(t *testing.T) {
	cfg, items := smallCheckpoint(t)
	path := cfg.checkpointPath()
	good := readFile(t, path)
	for size := 0; size < len(good); size += 1000 {
		writeFile(t, path, good[:size])
		got, err := tryState(t, cfg)
		if err != nil {
			mustBeCorrupt(t, path, err)
		} else if !slices.Equal(got, items) {
			t.Fatalf("cut at %d of %d: %d items and no error", size, len(good), len(got))
		}
	}
	writeFile(t, path, good)
	if got, err := tryState(t, cfg); err != nil || !slices.Equal(got, items) {
		t.Fatal("the good file afterwards:", err)
	}
}

func TestC4_MissingBucketOrMeta(t *testing.T) {
	cfg, items := smallCheckpoint(t)
	path := cfg.checkpointPath()
	good := readFile(t, path)
	for _, change := range []func(tx *bolt.Tx) error{
		func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte("state")) },
		func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte("meta")) },
		func(tx *bolt.Tx) error { return tx.Bucket([]byte("meta")).Delete([]byte("meta")) },
		func(tx *bolt.Tx) error { return tx.Bucket([]byte("meta")).Put([]byte("meta"), []byte("\x01something")) },
		func(tx *bolt.Tx) error { return tx.Bucket([]byte("state")).Put([]byte("z"), []byte("another sum")) },
	} {
		db, err := bolt.Open(path, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		other := func(tx *bolt.Tx) error { return tx.Bucket([]byte("state")).Put([]byte("y"), []byte("another state")) }
		if err := errors.Join(db.Update(other), db.Update(change), db.Close()); err != nil { // both transactions are wrong
			t.Fatal(err)
		}
		_, err = tryState(t, cfg)
		mustBeCorrupt(t, path, err)
		writeFile(t, path, good)
	}
	if got, err := tryState(t, cfg); err != nil || !slices.Equal(got, items) {
		t.Fatal("the good file afterwards:", err)
	}
}

// The remains of an incomplete first checkpoint are not taken for a checkpoint.
func TestC4_HalfWrittenFirstCheckpoint(t *testing.T) {
	whole, _ := smallCheckpoint(t)
	left := readFile(t, whole.checkpointPath())
	for _, contents := range [][]byte{{}, []byte("half"), left, left[:len(left)/2]} {
		cfg := Config{Dir: t.TempDir(), StateMachine: &list{}}
		writeFile(t, cfg.checkpointPath()+".new", contents)
		// The log may or may not have its first state already.
		got, err := tryState(t, cfg)
		if err != nil || len(got) != 0 {
			t.Fatalf("%d items, %v", len(got), err)
		}
		if _, err := os.Stat(cfg.checkpointPath() + ".new"); err == nil {
			t.Error("the remains are still there")
		}
		if err := os.Rename(cfg.checkpointPath(), cfg.checkpointPath()+".new"); err != nil {
			t.Fatal(err)
		}
	}
}

// A new member writes the log's first state, then the checkpoint. A crash between the two leaves a
// new member.
func TestOpen_CrashBeforeTheFirstCheckpoint(t *testing.T) {
	cfg := Config{Dir: t.TempDir(), StateMachine: &list{}}
	n, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(n.loop.Form(), n.Close()); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(cfg.checkpointPath()); err != nil {
		t.Fatal(err)
	}
	r := open(t, cfg)
	r.put(t, "a")
	r.close(t)
	if got, err := tryState(t, cfg); err != nil || !slices.Equal(got, []string{"a"}) {
		t.Fatal(got, err)
	}
}

func fill(p []byte, b byte) {
	for i := range p {
		p[i] = b
	}
}

func sortedNames[V any](m map[string]V) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A log that lacks an entry that it calls committed is damaged, although all that it has is whole.
func TestOpen_CommittedEntriesAreMissing(t *testing.T) {
	cfg := Config{Dir: t.TempDir(), StateMachine: &list{}}
	r := open(t, cfg)
	r.put(t, "a")
	r.close(t)
	log, rec, err := wal.Open(cfg.walDir(), wal.Config{FS: vfs.OS{}})
	if err != nil {
		t.Fatal(err)
	}
	state, err := core.DecodeLogState(rec.State)
	state.Commit = log.LastIndex() + 1
	if err := errors.Join(err, log.Append(wal.Batch{State: state.Append(nil)}), log.Close()); err != nil {
		t.Fatal(err)
	}
	n, err := Open(cfg)
	if want := fmt.Sprintf("entry %d was committed", state.Commit); !errors.Is(err, wal.ErrCorrupt) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want an error with %q", err, want)
	}
	if n != nil {
		t.Error("the node is open", n.Close())
	}
}

// A start makes durable what the process before it had renamed, and removes the checkpoints that
// it had not received completely.
func TestOpen_AfterAKill(t *testing.T) {
	mem := vfstest.NewMem()
	cfg := Config{Dir: "data", LogDir: "log", FS: mem, DirFS: mem, StateMachine: &list{}}
	r := open(t, cfg)
	r.put(t, "a")
	r.close(t)
	path := cfg.checkpointPath()
	part, err := mem.Create(path + ".from-3")
	err = errors.Join(err, part.Close(), mem.Rename(path, path+".new"), mem.SyncDir(cfg.Dir), mem.Rename(path+".new", path))
	if err != nil {
		t.Fatal(err)
	}
	n, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if there, err := vfs.Exists(mem, path+".from-3"); err != nil || there {
		t.Errorf("the part of a checkpoint is there: %v, %v", there, err)
	}
	if there, err := vfs.Exists(mem.Crash(func(int) int { return 0 }), path); err != nil || !there {
		t.Errorf("after a power loss the checkpoint is there: %v, %v", there, err)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}

// A member whose checkpoint came from another member, just before a crash, begins in the term of
// the checkpoint, not in the earlier one that its log knows.
func TestRecovered_TermOfTheCheckpoint(t *testing.T) {
	r := recovered{meta: core.Meta{Member: 1, Index: 5, Term: 7}}
	state := core.LogState{Term: 3, Vote: 2, Commit: 2}
	if err := r.join(wal.Recovered{State: state.Append(nil)}, true, 1, dataPaths{}); err != nil {
		t.Fatal(err)
	}
	if r.state.Term != 7 || r.state.Commit != 5 {
		t.Errorf("it begins in term %d, with commit index %d, want 7 and 5", r.state.Term, r.state.Commit)
	}
}
