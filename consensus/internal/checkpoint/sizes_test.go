package checkpoint

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/internal/vfs"
)

// bboltAgrees checks a file with bbolt, and compares its state.
func bboltAgrees(t *testing.T, path string, want map[string]string) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{NoSync: true, FreelistType: bolt.FreelistMapType, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	err = db.View(func(tx *bolt.Tx) error {
		for err := range tx.Check() {
			t.Errorf("bbolt's check: %v", err)
		}
		n := 0
		err := tx.Bucket(stateBucket).ForEach(func(k, v []byte) error {
			if n++; want[string(k)] != string(v) {
				return fmt.Errorf("key %.20q has %d bytes, want %d", k, len(v), len(want[string(k)]))
			}
			return nil
		})
		if err == nil && n != len(want) {
			err = fmt.Errorf("%d keys, want %d", n, len(want))
		}
		return err
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// Files of other machines have other page sizes. For each of them: values of megabytes, the longest
// keys, a branch that loses all its children, a state that becomes empty, and a state of a single
// key.
func TestC4_MergeSizes(t *testing.T) {
	for _, size := range exhaustive.Or([]int{minPageSize, 4096}, []int{minPageSize, 4096, 16384, maxPageSize}) {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "checkpoint.db")
			db, err := bolt.Open(path, 0o600, &bolt.Options{PageSize: size})
			if err != nil {
				t.Fatal(err)
			}
			state := map[string]string{"one": "1"}
			err = db.Update(func(tx *bolt.Tx) error {
				s, err := tx.CreateBucket(stateBucket)
				if err != nil {
					return err
				}
				m, err := tx.CreateBucket(metaBucket)
				return errors.Join(err, s.Put([]byte("one"), []byte("1")), m.Put(metaKey, testMeta(0)))
			})
			if err := errors.Join(err, db.Close()); err != nil {
				t.Fatal(err)
			}
			many := func(prefix string, n, value int) delta {
				d := make(delta)
				for i := range n {
					d[fmt.Sprintf("%s%06d", prefix, i)] = strings.Repeat("v", value)
				}
				return d
			}
			none := func(d delta) delta {
				gone := make(delta)
				for k := range d {
					gone[k] = ""
				}
				return gone
			}
			huge := delta{"h1": strings.Repeat("h", 3<<20), "h2": strings.Repeat("i", 1<<20+1), "h3": strings.Repeat("j", size-pageHeader-pageElement-2)}
			longest := delta{strings.Repeat("l", bolt.MaxKeySize): "v", strings.Repeat("m", bolt.MaxKeySize): "w", strings.Repeat("l", bolt.MaxKeySize-1): "x"}
			deep := many("d", 20_000, 40)
			for i, d := range []delta{
				{}, {"one": ""}, {}, {"two": "2"}, {"two": ""}, // one key, then none
				deep, {}, many("d", 10, 5000), none(deep), // below several branches
				huge, {"h2": "small"}, {"h2": strings.Repeat("k", 2<<20)}, none(huge),
				longest, {}, many("k", 500, 1), none(longest), many("n", 500, 1),
				none(many("k", 499, 1)), none(many("n", 499, 1)), // one key of each is left
				{"never there": ""},
			} {
				next := uint64(i + 1)
				if err := Merge(vfs.OS{}, path, mustBe(next-1), testMeta(next), d.Range); err != nil {
					t.Fatal(err)
				}
				d.to(state)
				f, err := vfs.OS{}.Open(path)
				if err != nil {
					t.Fatal(err)
				}
				index, got, err := stateOf(f)
				if err := errors.Join(err, f.Close()); err != nil || index != next || !maps.Equal(got, state) {
					t.Fatalf("step %d: entry %d, %d keys, want %d; %v", i, index, len(got), len(state), err)
				}
				if i%3 == 0 || len(d) < 4 {
					bboltAgrees(t, path, state)
				}
			}
			bboltAgrees(t, path, state)
		})
	}
}

// More free pages than the 16-bit count of a freelist page can hold.
func TestC4_MergeManyFreePages(t *testing.T) {
	exhaustive.Only(t) // tens of megabytes, in more pages than a count of 16 bits holds
	path := filepath.Join(t.TempDir(), "checkpoint.db")
	f, err := vfs.OS{}.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	state := make(map[string]string)
	merge := func(index uint64, d delta) (free int) {
		t.Helper()
		var old *pageReader
		if index > 0 {
			if old, err = newPageReader(f, NewestOfTwo); err != nil {
				t.Fatal(err)
			}
		}
		if err := mergeDelta(unsynced{f}, old, d, index); err != nil {
			t.Fatal(err)
		}
		d.to(state)
		if got, is, err := stateOf(f); err != nil || got != index || !maps.Equal(is, state) {
			t.Fatalf("transaction %d: %d, %d keys, want %d; %v", index, got, len(is), len(state), err)
		}
		p, err := newPageReader(f, NewestOfTwo)
		if err != nil {
			t.Fatal(err)
		}
		ids, _, err := p.readFreelist()
		if err != nil {
			t.Fatal(err)
		}
		return len(ids)
	}
	all, gone := make(delta), make(delta)
	for i := range 0x10000 {
		all[fmt.Sprintf("%06d", i)] = strings.Repeat("v", 3*minPageSize) // four pages each
		gone[fmt.Sprintf("%06d", i)] = ""
	}
	merge(0, all)
	if free := merge(1, gone); free <= 0xFFFF {
		t.Fatalf("%d free pages are too few", free)
	}
	bboltAgrees(t, path, state)
	before, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	for index := range uint64(3) {
		if free := merge(2+index, delta{fmt.Sprint(index): "v"}); free <= 0xFFFF {
			t.Fatalf("%d free pages are left", free)
		}
	}
	bboltAgrees(t, path, state)
	merge(5, all)
	if after, err := f.Size(); err != nil || after > before+before/16 {
		t.Errorf("%d bytes, it had %d: the free pages were not used; %v", after, before, err)
	}
	bboltAgrees(t, path, state)
}

// A file does not grow unless the state does, although keys change a thousand times: a few keys,
// values of other sizes, large values, or a queue.
func TestC4_MergesDoNotGrow(t *testing.T) {
	for name, change := range map[string]func(rng *rand.Rand) delta{
		"a few": func(rng *rand.Rand) delta {
			d := make(delta)
			for range 20 {
				d[fmt.Sprintf("%05d", rng.IntN(3000))] = strings.Repeat("v", 100)
			}
			return d
		},
		"sizes": func(rng *rand.Rand) delta {
			d := make(delta)
			for range 200 {
				d[fmt.Sprintf("%05d", rng.IntN(3000))] = strings.Repeat("v", 1+rng.IntN(199))
			}
			return d
		},
		"large": func(rng *rand.Rand) delta {
			d := make(delta)
			for range 10 {
				d[fmt.Sprintf("%05d", 10*rng.IntN(20))] = strings.Repeat("v", 1+rng.IntN(20_000))
			}
			return d
		},
		"queue": func(rng *rand.Rand) delta {
			d, at := make(delta), rng.IntN(2900)
			for i := range 100 {
				d[fmt.Sprintf("%05d", at+i)] = strings.Repeat("v", 100*rng.IntN(2)) // half of them are deleted
			}
			return d
		},
	} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(13, 14))
			f, err := vfstest.NewMem().Create("checkpoint.db")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = f.Close() }()
			all := make(delta)
			for i := range 3000 {
				all[fmt.Sprintf("%05d", i)] = strings.Repeat("v", 100)
			}
			if err := mergeDelta(f, nil, all, 0); err != nil {
				t.Fatal(err)
			}
			transactions := exhaustive.Or[uint64](100, 1000)
			var early uint64
			for index := uint64(1); index <= transactions; index++ {
				old, err := newPageReader(f, NewestOfTwo)
				if err != nil {
					t.Fatal(err)
				}
				if err := mergeDelta(f, old, change(rng), index); err != nil {
					t.Fatal(err)
				}
				if index == transactions/5 {
					early = old.end
				}
				if index == transactions {
					p, err := newPageReader(f, NewestOfTwo)
					if err != nil {
						t.Fatal(err)
					}
					ids, _, err := p.readFreelist()
					if err != nil {
						t.Fatal(err)
					}
					if p.end > early+early/4 {
						t.Errorf("%d pages, after a fifth of the transactions %d", p.end, early)
					}
					t.Logf("%d pages after %d transactions, %d after %d, of which %d are in use", early, transactions/5, p.end, transactions, p.end-uint64(len(ids)))
				}
			}
		})
	}
}
