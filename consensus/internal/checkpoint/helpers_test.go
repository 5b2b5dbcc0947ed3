package checkpoint

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/vfs"
)

// delta holds changes of a state. An empty value deletes the key.
type delta map[string]string

func (d delta) Range(put func(key, value []byte) error) error {
	for _, k := range slices.Sorted(maps.Keys(d)) {
		var v []byte
		if d[k] != "" {
			v = []byte(d[k])
		}
		if err := put([]byte(k), v); err != nil {
			return err
		}
	}
	return nil
}

func (d delta) to(state map[string]string) {
	for k, v := range d {
		if state[k] = v; v == "" {
			delete(state, k)
		}
	}
}

// testMeta returns the meta of the tests: a number.
func testMeta(index uint64) []byte { return strconv.AppendUint(nil, index, 10) }

func testIndex(meta []byte) (uint64, error) { return strconv.ParseUint(string(meta), 10, 64) }

// mustBe returns a check for Merge that requires the meta of an index, or, if that is 0 or the one
// before 0, no checkpoint.
func mustBe(index uint64) func(meta []byte) error {
	return func(meta []byte) error {
		if meta == nil && index+1 <= 1 {
			return nil
		}
		if got, err := testIndex(meta); err != nil || got != index {
			return fmt.Errorf("the meta is %q, want %d", meta, index)
		}
		return nil
	}
}

// mergeDelta merges d in one transaction. A new file gets pages of the smallest size.
func mergeDelta(f vfs.File, old *pageReader, d delta, index uint64) error {
	m := newMerge(f, minPageSize)
	if old != nil {
		m = newMerge(f, int(old.pageSize))
		if _, err := m.beginWith(old); err != nil {
			return err
		}
	}
	return errors.Join(d.Range(m.put), m.commit(testMeta(index)))
}

// unsynced is a file whose Sync does nothing, which is faster.
type unsynced struct{ vfs.File }

func (unsynced) Sync() error { return nil }

// stateOf reads the newest transaction of a file and verifies all of it.
func stateOf(f vfs.File) (index uint64, state map[string]string, err error) {
	return transactionOf(f, Newest)
}

// transactionOf reads a transaction of a file and verifies all of it.
func transactionOf(f vfs.File, which Transaction) (index uint64, state map[string]string, err error) {
	p, err := newPageReader(f, which)
	if err != nil {
		return 0, nil, err
	}
	meta, bucket, err := p.buckets()
	if err != nil {
		return 0, nil, err
	}
	if index, err = testIndex(meta); err != nil {
		return 0, nil, err
	}
	state = make(map[string]string)
	err = p.pairs(bucket, func(k, v []byte) error { state[string(k)] = string(v); return nil })
	if err != nil {
		return 0, nil, err
	}
	if _, _, err = p.readFreelist(); err != nil {
		return 0, nil, err
	}
	for id := range p.end {
		if !p.isUsed(id) {
			return 0, nil, fmt.Errorf("page %d is lost", id)
		}
	}
	return index, state, nil
}

// readAll opens a file, and reads and verifies all of it, once alone and once with bbolt. Both must
// agree.
func readAll(path string, which Transaction) error {
	alone, errAlone := pairsOf(Open(vfs.OS{}, path, which))
	second, err := pairsOf(Open(Saved{}, path, which))
	if (errAlone == nil) != (err == nil) || errors.Is(errAlone, ErrCorrupt) != errors.Is(err, ErrCorrupt) ||
		err == nil && !maps.Equal(alone, second) {
		panic(fmt.Sprintf("%s: %d pairs, %v; with bbolt %d pairs, %v", path, len(alone), errAlone, len(second), err))
	}
	return errAlone
}

// pairsOf reads and verifies all that r reads, and closes r.
func pairsOf(r *Reader, err error) (pairs map[string]string, _ error) {
	if err != nil {
		return nil, err
	}
	pairs = make(map[string]string)
	err = r.Range(func(k, v []byte) error { pairs[string(k)] = string(v); return nil })
	if err == nil {
		err = r.CheckFreelist()
	}
	return pairs, errors.Join(err, r.Close())
}

func mustBeCorrupt(t *testing.T, path string, err error) {
	t.Helper()
	if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), path) {
		t.Fatalf("error %v does not say that %s is corrupt", err, path)
	}
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
