package checkpoint

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/internal/vfs"
)

// drawDelta draws changes: runs of adjacent keys, some of them long, with values some of which are
// very long, and deletions.
func drawDelta(t *rapid.T, state map[string]string) delta {
	d := make(delta)
	known := slices.Sorted(maps.Keys(state))
	for range rapid.IntRange(0, 3).Draw(t, "runs") {
		from, n := rapid.IntRange(0, 2000).Draw(t, "from"), rapid.SampledFrom([]int{1, 2, 30, 400}).Draw(t, "n")
		long := rapid.SampledFrom([]int{0, 0, 0, 30, 700, 1500}).Draw(t, "key bytes")
		value := rapid.SampledFrom([]int{0, 1, 90, 400, 5000}).Draw(t, "value bytes")
		for i := range n {
			d[fmt.Sprintf("%05d%s", from+i, strings.Repeat("k", long))] = strings.Repeat("v", value)
		}
	}
	if len(known) > 0 && rapid.Bool().Draw(t, "delete") {
		from := rapid.IntRange(0, len(known)-1).Draw(t, "from")
		for _, k := range known[from:min(len(known), from+rapid.SampledFrom([]int{1, 20, 500, 5000}).Draw(t, "n"))] {
			d[k] = ""
		}
	}
	return d
}

// A merge has the same result as puts and deletes, in a file that bbolt's check accepts. bbolt can
// write to the file as well, as an older program does, and later merges can continue from there.
func TestC4_MergeIsATransactionOfBbolt(t *testing.T) {
	dir := t.TempDir()
	exhaustive.Checks(t, 8, 100)
	rapid.Check(t, func(t *rapid.T) {
		path := filepath.Join(dir, "checkpoint.db")
		f, err := vfs.OS{}.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		want := make(map[string]string)
		for round := range uint64(rapid.IntRange(1, 8).Draw(t, "transactions")) {
			d := drawDelta(t, want)
			var old *pageReader
			if round > 0 {
				if old, err = newPageReader(f, NewestOfTwo); err != nil {
					t.Fatal(err)
				}
			}
			if err := mergeDelta(unsynced{f}, old, d, round); err != nil {
				t.Fatal(err)
			}
			d.to(want)
			if index, got, err := stateOf(f); err != nil || index != round || !maps.Equal(got, want) {
				t.Fatalf("transaction %d: index %d, %d keys, want %d; %v", round, index, len(got), len(want), err)
			}
			more := delta(nil)
			if rapid.Bool().Draw(t, "bbolt too") {
				more = drawDelta(t, want)
			}
			throughBbolt(t, path, want, more)
			more.to(want)
		}
	})
}

// throughBbolt checks the file with bbolt, and writes more to it.
func throughBbolt(t *rapid.T, path string, want map[string]string, more delta) {
	db, err := bolt.Open(path, 0o600, &bolt.Options{NoSync: true, NoGrowSync: true, FreelistType: bolt.FreelistMapType})
	if err != nil {
		t.Fatal(err)
	}
	err = db.View(func(tx *bolt.Tx) error {
		for err := range tx.Check() {
			t.Errorf("bbolt's check: %v", err)
		}
		got := make(map[string]string)
		err := tx.Bucket(stateBucket).ForEach(func(k, v []byte) error { got[string(k)] = string(v); return nil })
		if !maps.Equal(got, want) {
			t.Errorf("bbolt sees %d keys, want %d", len(got), len(want))
		}
		return err
	})
	if err == nil && more != nil {
		err = db.Update(func(tx *bolt.Tx) error {
			b := tx.Bucket(stateBucket)
			return more.Range(func(k, v []byte) error {
				if v == nil {
					return b.Delete(k)
				}
				return b.Put(k, v)
			})
		})
	}
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// A power loss before any operation of a transaction leaves the previous transaction, or, after all
// was written, this one.
func TestC4_PowerLossInAMerge(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	mem := vfstest.NewMem()
	var index uint64
	states := []map[string]string{{}}
	crashes := 0
	var hook func(op vfstest.Op)
	f, err := vfstest.NewFaulty(mem, func(op vfstest.Op) error {
		if hook != nil {
			hook(op)
		}
		return nil
	}).Create("checkpoint.db")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := errors.Join(mergeDelta(f, nil, nil, 0), mem.SyncDir(".")); err != nil {
		t.Fatal(err)
	}
	hook = func(op vfstest.Op) {
		for _, choose := range []func(int) int{rng.IntN, func(int) int { return 0 }, func(n int) int { return n - 1 }} {
			after, err := mem.Crash(choose).Open("checkpoint.db")
			if err != nil {
				t.Fatal(err)
			}
			got, state, err := stateOf(after)
			if err != nil || got+1 < index || got > index || !maps.Equal(state, states[got]) {
				t.Fatalf("power loss before %v of transaction %d: transaction %d with %d keys, %v", op, index, got, len(state), err)
			}
			crashes++
			_ = after.Close()
		}
	}
	for index = 1; index <= exhaustive.Or[uint64](8, 40); index++ {
		d, at := make(delta), rng.IntN(3000)
		for i := range 1 + rng.IntN(200) {
			d[fmt.Sprintf("%05d", at+i*rng.IntN(20))] = strings.Repeat("v", rng.IntN(300)) // some are deleted
		}
		next := maps.Clone(states[index-1])
		d.to(next)
		states = append(states, next)
		old, err := newPageReader(f, Newest)
		if err != nil {
			t.Fatal(err)
		}
		if err := mergeDelta(f, old, d, index); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d crashes", crashes)
}

// Keys must ascend: otherwise the tree would be unordered, and lookups would fail.
func TestMerge_Order(t *testing.T) {
	f, err := vfstest.NewMem().Create("f")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	m := newMerge(f, minPageSize)
	if err := m.put([]byte("b"), []byte("1")); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"a", "b"} {
		if err := m.put([]byte(key), []byte("2")); err == nil {
			t.Errorf("key %s was accepted after key b", key)
		}
	}
}

// The process dies between the meta page of a transaction and its sync, or the sync fails and
// leaves the pages clean. The next process reads that transaction. It must make it durable before
// it overwrites pages of the previous one. A power loss at any moment leaves a whole transaction.
func TestC4_PowerLossAfterAKill(t *testing.T) {
	for _, lose := range []bool{false, true} {
		t.Run(fmt.Sprintf("failed sync %v", lose), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(5, 6))
			mem := vfstest.NewMem()
			states := []map[string]string{{}}
			var index, base, durable uint64 // the running transaction; its base; the last one known to be durable
			syncs, die, crashes := 0, false, 0
			errDied := errors.New("died")
			disk := vfstest.NewFaulty(mem, func(op vfstest.Op) error {
				if index == 0 || op.Kind != vfstest.OpWrite && op.Kind != vfstest.OpSync {
					return nil
				}
				if syncs > 0 { // the base is durable
					durable = base
				}
				for _, choose := range []func(int) int{rng.IntN, func(int) int { return 0 }, func(n int) int { return n - 1 }} {
					after, err := mem.Crash(choose).Open("checkpoint.db")
					if err != nil {
						t.Fatal(err)
					}
					got, state, err := stateOf(after)
					if err != nil || got < durable || got > index || !maps.Equal(state, states[got]) {
						t.Fatalf("power loss before %v of transaction %d: transaction %d with %d keys, %v", op, index, got, len(state), err)
					}
					crashes++
					_ = after.Close()
				}
				if op.Kind == vfstest.OpSync {
					if syncs++; die && syncs == 3 { // the last sync
						if lose {
							mem.LoseUnsynced(op.Path)
						}
						return errDied
					}
				}
				return nil
			})
			merge := func(d delta) error {
				f, err := disk.OpenRW("checkpoint.db")
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = f.Close() }()
				syncs = 0
				if base, _, err = stateOf(f); err != nil {
					return err
				}
				return mergeInto(f, mustBe(base), testMeta(index), d.Range)
			}
			f, err := disk.Create("checkpoint.db")
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(mergeDelta(f, nil, nil, 0), f.Close(), mem.SyncDir(".")); err != nil {
				t.Fatal(err)
			}
			for index = 1; index <= exhaustive.Or[uint64](6, 30); index++ {
				d := make(delta)
				for range 1 + rng.IntN(60) {
					d[fmt.Sprintf("%05d", rng.IntN(300))] = strings.Repeat("v", rng.IntN(900))
				}
				next := maps.Clone(states[index-1])
				d.to(next)
				states = append(states, next)
				die = rng.IntN(2) == 0
				switch err := merge(d); {
				case err == nil:
					durable = index
				case !errors.Is(err, errDied):
					t.Fatal(err)
				}
			}
			t.Logf("%d crashes", crashes)
		})
	}
}

// Each operation of a transaction fails in turn, some writes after a part. The previous transaction
// stays current, and the next merge starts from it.
func TestC4_FailuresInAMerge(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	mem := vfstest.NewMem()
	errFull := errors.New("no space left on device")
	countdown := 0
	disk := vfstest.NewFaulty(mem, func(op vfstest.Op) error {
		if countdown--; countdown != 0 {
			return nil
		}
		if op.Kind == vfstest.OpWrite {
			return &vfstest.ShortWrite{N: rng.IntN(5000), Err: errFull}
		}
		return errFull
	})
	f, err := disk.Create("checkpoint.db")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := mergeDelta(f, nil, nil, 0); err != nil {
		t.Fatal(err)
	}
	state, base, failed := map[string]string{}, uint64(0), 0
	for index := uint64(1); index <= exhaustive.Or[uint64](2, 12); index++ {
		d := make(delta)
		for range 1 + rng.IntN(200) {
			d[fmt.Sprintf("%05d", rng.IntN(500))] = strings.Repeat("v", rng.IntN(3000))
		}
		next := maps.Clone(state)
		d.to(next)
		for at := 1; ; at++ {
			countdown = at
			err := mergeInto(f, mustBe(base), testMeta(index), d.Range)
			countdown = 0
			if err == nil {
				break
			}
			failed++
			got, is, other := stateOf(f)
			if !errors.Is(err, errFull) || other != nil || got != index && !maps.Equal(is, state) || got == index && !maps.Equal(is, next) {
				t.Fatalf("transaction %d, operation %d: %v; transaction %d with %d keys, %v", index, at, err, got, len(is), other)
			}
			base = got
		}
		state, base = next, index
		if got, is, err := stateOf(f); err != nil || got != index || !maps.Equal(is, state) {
			t.Fatalf("transaction %d: %d, %v", index, got, err)
		}
	}
	t.Logf("%d failures", failed)
}

// The file vanishes while a server runs. The changes since would be a part of a checkpoint, and are
// not written as a whole one.
func TestC4_MergeIntoNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "checkpoint.db")
	d := delta{"a": "v"}
	if err := Merge(vfs.OS{}, path, mustBe(0), testMeta(1), d.Range); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	err := Merge(vfs.OS{}, path, mustBe(1), testMeta(2), d.Range)
	if left, _ := filepath.Glob(path + "*"); err == nil || len(left) > 0 {
		t.Errorf("%v, files %v", err, left)
	}
}

// The newest meta page is damaged while a server runs, so that the file is at the previous
// transaction. Merging only the newest changes into it would lose others, and is refused.
func TestC4_MergeIntoAnotherState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "checkpoint.db")
	write := func(base, index uint64) error {
		d := delta{fmt.Sprint(index): "v"}
		return Merge(vfs.OS{}, path, mustBe(base), testMeta(index), d.Range)
	}
	for index := range uint64(4) {
		if err := write(index-1, index); err != nil { // the first one has no base
			t.Fatal(err)
		}
	}
	good := readFile(t, path)
	page := os.Getpagesize()
	newest := 0
	if word(good[page+pageHeader+48:]) > word(good[pageHeader+48:]) {
		newest = page
	}
	bad := slices.Clone(good)
	bad[newest+pageHeader+20] ^= 1
	writeFile(t, path, bad)
	mustBeCorrupt(t, path, write(3, 4))
	if !slices.Equal(readFile(t, path), bad) {
		t.Error("the file was changed")
	}
	writeFile(t, path, good)
	if err := write(3, 4); err != nil {
		t.Error(err)
	}
}
