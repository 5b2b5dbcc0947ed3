package moving

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/proto"
)

// releases are the ZooKeeper servers of the corpus: go run ./test/compat/moving -releases all -corpus
// cmd/gozkd/internal/moving/testdata. Each archive has what a server left behind when it was killed
// under load, and in expect.json what it served after its restart.
var releases = []string{"3.4.14", "3.5.10", "3.6.4", "3.8.4", "3.9.5"}

// expected is a znode of expect.json.
type expected struct {
	Data []byte
	Stat proto.Stat
	ACL  string
}

// unpack returns a directory with the files of a server.
func unpack(t testing.TB, release string) (dir string, want map[string]expected) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", release+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "version-2"), 0o755); err != nil {
		t.Fatal(err)
	}
	for in := tar.NewReader(z); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return dir, want
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		if h.Name == "expect.json" {
			if err := json.Unmarshal(b, &want); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(h.Name)), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func mustFind(t testing.TB, dir string) *directory {
	t.Helper()
	d, err := findDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func mustLoad(t testing.TB, dir string, opt options) *loaded {
	t.Helper()
	l, err := load(t.Context(), mustFind(t, dir), opt)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.tree.Check(); err != nil {
		t.Fatal(err)
	}
	return l
}

// The state of each release is what that ZooKeeper served after its own restart, from its newest
// snapshot as from the one before.
func TestLoad_IsWhatZooKeeperServes(t *testing.T) {
	for _, release := range releases {
		dir, want := unpack(t, release)
		for first := true; ; first = false {
			l, err := load(t.Context(), mustFind(t, dir), options{})
			if !first && errors.Is(err, errNoSnapshot) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if release >= "3.6" && l.compared == 0 {
				t.Errorf("%s: no digest of %d transactions was compared", release, l.records)
			}
			compare(t, release, l.tree, want)
			if err := os.Remove(l.snapshot.path); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func compare(t *testing.T, release string, tree *datatree.Tree, want map[string]expected) {
	t.Helper()
	n := 0
	tree.Walk("/", func(z datatree.ZnodeInfo) bool {
		if z.Path == "/zookeeper/config" {
			return true // ours
		}
		n++
		w, there := want[z.Path]
		if z.Path == "/zookeeper" || strings.HasSuffix(z.Path, "/zookeeper_stats") {
			// 3.4 has no config in it, and each server counts by itself.
			w.Stat, w.Data = z.Stat, z.Data
		}
		if !there || !bytes.Equal(w.Data, z.Data) || (w.Data == nil) != (z.Data == nil) || w.Stat != z.Stat || w.ACL != fmt.Sprint(z.ACL) {
			t.Errorf("%s: %s\n is   %q %+v %v\n want %q %+v %v", release, z.Path, z.Data, z.Stat, z.ACL, w.Data, w.Stat, w.ACL)
		}
		return true
	})
	delete(want, "/zookeeper/config")
	if n != len(want) {
		t.Errorf("%s: %d znodes, want %d", release, n, len(want))
	}
}

// A changed byte in any file that the import reads is an error, or the report says that something was
// left out, or, in a compressed snapshot, it changes nothing.
func TestLoad_ChangedByte(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for _, release := range releases {
		dir, _ := unpack(t, release)
		whole := mustLoad(t, dir, options{})
		d := mustFind(t, dir)
		files := []file{whole.snapshot}
		for i, f := range d.logs {
			if i+1 == len(d.logs) || d.logs[i+1].zxid > whole.snapshot.zxid+1 {
				files = append(files, f)
			}
		}
		for range exhaustive.Or(40, 2500) {
			path := files[rng.IntN(len(files))].path
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			used := len(bytes.TrimRight(b, "\x00"))
			at, change := rng.IntN(used), byte(1+rng.IntN(255))
			damaged := bytes.Clone(b)
			damaged[at] ^= change
			if err := os.WriteFile(path, damaged, 0o644); err != nil {
				t.Fatal(err)
			}
			isLog := strings.HasPrefix(filepath.Base(path), "log.")
			l, err := load(t.Context(), d, options{})
			switch {
			case err != nil && errors.Is(err, zkfiles.ErrDamaged), err == nil && len(l.torn)+len(l.unfinished) > len(whole.torn):
			case err == nil && l.tree.Digest() == whole.tree.Digest() && (isLog && at >= 8 && at < 16 || filepath.Ext(path) == ".gz" || filepath.Ext(path) == ".snappy"):
			default:
				t.Errorf("%s: byte %d of %d of %s changed by %#x: %v", release, at, used, filepath.Base(path), change, err)
			}
			if err := os.WriteFile(path, b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Each moment since the snapshot can be imported, and has the digest that ZooKeeper logged.
func TestLoad_Until(t *testing.T) {
	for _, release := range []string{"3.4.14", "3.9.5"} {
		dir, _ := unpack(t, release)
		d := mustFind(t, dir)
		begin := d.snapshots[len(d.snapshots)-1].zxid
		n := 0
		for _, f := range d.logs {
			err := readLog(f.path, func(r *zkfiles.Record, _ int64) error {
				if r.Zxid <= begin {
					return nil
				}
				l, err := load(t.Context(), d, options{until: limit{zxid: r.Zxid}})
				if err != nil {
					// In the fuzzy range of the older snapshot.
					if n > 0 && !strings.Contains(err.Error(), "name a later zxid") {
						t.Fatalf("%s: %v: %v", release, r.Zxid, err)
					}
					return nil
				}
				if n++; l.tree.LastZxid() != r.Zxid {
					t.Fatalf("%s: %v, want %v", release, l.tree.LastZxid(), r.Zxid)
				}
				return l.tree.Check()
			})
			if err != nil && !errors.Is(err, zkfiles.ErrTorn) {
				t.Fatal(err)
			}
		}
		t.Logf("%s: %d moments", release, n)
		if n == 0 {
			t.Errorf("%s: no moment was imported", release)
		}
	}
	dir, _ := unpack(t, "3.9.5")
	all := mustLoad(t, dir, options{})
	byTime := mustLoad(t, dir, options{until: limit{timeMs: all.lastTimeMs}})
	if byTime.tree.Digest() != all.tree.Digest() {
		t.Error("until the time of the last transaction is not all")
	}
	if _, err := load(t.Context(), mustFind(t, dir), options{until: limit{timeMs: 1}}); err == nil || !strings.Contains(err.Error(), "no transaction at or before "+time.UnixMilli(1).UTC().Format(time.RFC3339)) {
		t.Error(err)
	}
}

// A log that ends within a record gives the state before it, and the report says so.
func TestLoad_TornTail(t *testing.T) {
	dir, _ := unpack(t, "3.9.5")
	d := mustFind(t, dir)
	last := d.logs[len(d.logs)-1].path
	b, err := os.ReadFile(last)
	if err != nil {
		t.Fatal(err)
	}
	b = bytes.TrimRight(b, "\x00")
	var ends []int64
	if err := readLog(last, func(_ *zkfiles.Record, at int64) error { ends = append(ends, at); return nil }); err != nil && !errors.Is(err, zkfiles.ErrTorn) {
		t.Fatal(err)
	}
	if len(ends) < 2 {
		t.Fatalf("the last log has %d records", len(ends))
	}
	start := ends[len(ends)-1]
	whole := mustLoad(t, dir, options{})
	for _, cut := range []int64{start + 5, start + 13, start + 30} {
		if err := os.WriteFile(last, append(bytes.Clone(b[:cut]), make([]byte, 500)...), 0o644); err != nil {
			t.Fatal(err)
		}
		l := mustLoad(t, dir, options{})
		if l.records != whole.records-1 || len(l.torn) == 0 {
			t.Errorf("cut at %d: %d of %d transactions, torn %q", cut, l.records, whole.records, l.torn)
		}
	}
	// The same record, and another file behind it that goes on elsewhere: something is missing.
	gap := zkfiles.Record{Zxid: whole.tree.LastZxid() + 5, Txn: zkfiles.Txn{Op: proto.OpError}}
	next := filepath.Join(filepath.Dir(last), fmt.Sprintf("log.%x", uint64(gap.Zxid)))
	if err := os.WriteFile(next, zkfiles.AppendLogRecord(zkfiles.AppendLogHeader(nil), &gap), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := load(t.Context(), mustFind(t, dir), options{}); err == nil || !strings.Contains(err.Error(), "transactions are missing before") {
		t.Error(err)
	}
}

// Without a log, a fuzzy snapshot is refused; a missing file in the middle is noticed.
func TestLoad_MissingLog(t *testing.T) {
	dir, _ := unpack(t, "3.5.10")
	d := mustFind(t, dir)
	if err := os.Remove(d.snapshots[0].path); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(d.logs[1].path); err != nil {
		t.Fatal(err)
	}
	if _, err := load(t.Context(), mustFind(t, dir), options{}); err == nil || !strings.Contains(err.Error(), "transactions are missing before") {
		t.Error(err)
	}
}

// Snapshots that were not written to their end are passed over.
func TestLoad_UnfinishedSnapshot(t *testing.T) {
	for _, release := range []string{"3.5.10", "3.6.4", "3.9.5"} { // plain, snappy, gzip
		dir, _ := unpack(t, release)
		want := mustLoad(t, dir, options{})
		b, err := os.ReadFile(want.snapshot.path)
		if err != nil {
			t.Fatal(err)
		}
		for _, cut := range []int{0, 3, 12, len(b) / 2, len(b) - 1} {
			if err := os.WriteFile(want.snapshot.path, b[:cut], 0o644); err != nil {
				t.Fatal(err)
			}
			got, err := load(t.Context(), mustFind(t, dir), options{})
			if errors.Is(err, zkfiles.ErrDamaged) && filepath.Ext(want.snapshot.path) == ".snappy" {
				continue // cut between two blocks
			}
			if err != nil {
				t.Fatalf("%s, cut at %d: %v", release, cut, err)
			}
			if got.tree.Digest() != want.tree.Digest() || len(got.unfinished) != 1 {
				t.Errorf("%s, cut at %d: left out %q", release, cut, got.unfinished)
			}
		}
	}
}
