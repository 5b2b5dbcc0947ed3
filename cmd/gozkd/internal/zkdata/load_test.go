package zkdata

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/history"
	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/testkit/zkcorpus"
	"github.com/gozkd/gozkd/internal/testkit/zkrecord"
	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/proto"
)

func mustFind(t testing.TB, dir string) *Directory {
	t.Helper()
	d, err := Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func mustLoad(t testing.TB, dir string, opt Options) *Loaded {
	t.Helper()
	l, err := Load(t.Context(), mustFind(t, dir), opt)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Tree.Check(); err != nil {
		t.Fatal(err)
	}
	return l
}

// The state of each release is what that ZooKeeper served after its own restart, from its newest
// snapshot as from the one before.
func TestLoad_IsWhatZooKeeperServes(t *testing.T) {
	for _, release := range zkcorpus.Releases {
		dir, want := zkcorpus.Unpack(t, release)
		for first := true; ; first = false {
			l, err := Load(t.Context(), mustFind(t, dir), Options{})
			if !first && errors.Is(err, errNoSnapshot) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if release >= "3.6" && l.Compared == 0 {
				t.Errorf("%s: no digest of %d transactions was compared", release, l.Records)
			}
			compare(t, release, l.Tree, want)
			if err := os.Remove(l.Snapshot.Path); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func compare(t *testing.T, release string, tree *datatree.Tree, want map[string]zkcorpus.Znode) {
	t.Helper()
	n := 0
	tree.Walk("/", func(z proto.Znode) bool {
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

// A changed byte in any file that the import reads is an error, or the report says that something
// was left out, or, in a compressed snapshot, it changes nothing.
func TestLoad_ChangedByte(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for _, release := range zkcorpus.Releases {
		dir, _ := zkcorpus.Unpack(t, release)
		whole := mustLoad(t, dir, Options{})
		d := mustFind(t, dir)
		files := []File{whole.Snapshot}
		for i, f := range d.Logs {
			if i+1 == len(d.Logs) || d.Logs[i+1].Zxid > whole.Snapshot.Zxid+1 {
				files = append(files, f)
			}
		}
		for range exhaustive.Or(12, 2500) {
			path := files[rng.IntN(len(files))].Path
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
			l, err := Load(t.Context(), d, Options{})
			switch {
			case err != nil && errors.Is(err, zkfiles.ErrDamaged), err == nil && len(l.Torn)+len(l.Unfinished) > len(whole.Torn):
			case err == nil && l.Tree.Digest() == whole.Tree.Digest() && (isLog && at >= 8 && at < 16 || filepath.Ext(path) == ".gz" || filepath.Ext(path) == ".snappy"):
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
	var lastMs int64 // of the last transaction
	for _, release := range []string{"3.4.14", "3.9.5"} {
		dir, _ := zkcorpus.Unpack(t, release)
		d := mustFind(t, dir)
		begin := d.Snapshots[len(d.Snapshots)-1].Zxid
		n := 0
		for r, err := range (&logFiles{files: d.Logs}).records() {
			if err != nil {
				t.Fatal(err)
			}
			lastMs = r.TimeMs
			if r.Zxid <= begin || int(r.Zxid)%exhaustive.Or(5, 1) != 0 {
				continue
			}
			l, err := Load(t.Context(), d, Options{Until: history.Moment{Zxid: r.Zxid}})
			if err != nil {
				// In the fuzzy range of the older snapshot.
				if n > 0 && !strings.Contains(err.Error(), "name a later zxid") {
					t.Fatalf("%s: %v: %v", release, r.Zxid, err)
				}
				continue
			}
			if n++; l.Tree.LastZxid() != r.Zxid {
				t.Fatalf("%s: %v, want %v", release, l.Tree.LastZxid(), r.Zxid)
			}
			if got := datatree.NewReplay(l.Tree).Digest(); r.HasDigest && l.Unknown == 0 && got != r.Digest {
				t.Fatalf("%s: %v: the digest is %#x, ZooKeeper's %#x", release, r.Zxid, got, r.Digest)
			}
			if err := l.Tree.Check(); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("%s: %d moments", release, n)
		if n == 0 {
			t.Errorf("%s: no moment was imported", release)
		}
	}
	dir, _ := zkcorpus.Unpack(t, "3.9.5")
	all := mustLoad(t, dir, Options{})
	byTime := mustLoad(t, dir, Options{Until: history.Moment{Time: time.UnixMilli(lastMs)}})
	if byTime.Tree.Digest() != all.Tree.Digest() {
		t.Error("until the time of the last transaction is not all")
	}
	if _, err := Load(t.Context(), mustFind(t, dir), Options{Until: history.Moment{Time: time.UnixMilli(1)}}); err == nil || !strings.Contains(err.Error(), "no transaction at or before "+time.UnixMilli(1).UTC().Format(time.RFC3339)) {
		t.Error(err)
	}
}

// A log that ends within a record gives the state before it, and the report says so.
func TestLoad_TornTail(t *testing.T) {
	dir, _ := zkcorpus.Unpack(t, "3.9.5")
	d := mustFind(t, dir)
	last := d.Logs[len(d.Logs)-1].Path
	b, err := os.ReadFile(last)
	if err != nil {
		t.Fatal(err)
	}
	b = bytes.TrimRight(b, "\x00")
	var ends []int64
	logs := &logFiles{files: []File{{Path: last}}}
	for _, err := range logs.records() {
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, logs.byte)
	}
	if len(ends) < 2 {
		t.Fatalf("the last log has %d records", len(ends))
	}
	start := ends[len(ends)-1]
	whole := mustLoad(t, dir, Options{})
	for _, cut := range []int64{start + 5, start + 13, start + 30} {
		if err := os.WriteFile(last, append(bytes.Clone(b[:cut]), make([]byte, 500)...), 0o644); err != nil {
			t.Fatal(err)
		}
		l := mustLoad(t, dir, Options{})
		if l.Records != whole.Records-1 || len(l.Torn) == 0 {
			t.Errorf("cut at %d: %d of %d transactions, torn %q", cut, l.Records, whole.Records, l.Torn)
		}
	}
	// The same record, and another file behind it that goes on elsewhere: something is missing.
	gap := zkfiles.Record{Zxid: whole.Tree.LastZxid() + 5, Txn: zkfiles.Txn{Op: proto.OpError}}
	next := filepath.Join(filepath.Dir(last), fmt.Sprintf("log.%x", uint64(gap.Zxid)))
	if err := os.WriteFile(next, zkrecord.AppendToLog(zkfiles.AppendLogHeader(nil), &gap), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(t.Context(), mustFind(t, dir), Options{}); err == nil || !strings.Contains(err.Error(), "transactions are missing before") {
		t.Error(err)
	}
}

// Without a log, a fuzzy snapshot is refused; a missing file in the middle is noticed.
func TestLoad_MissingLog(t *testing.T) {
	dir, _ := zkcorpus.Unpack(t, "3.5.10")
	d := mustFind(t, dir)
	if err := os.Remove(d.Snapshots[0].Path); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(d.Logs[1].Path); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(t.Context(), mustFind(t, dir), Options{}); err == nil || !strings.Contains(err.Error(), "transactions are missing before") {
		t.Error(err)
	}
}

// Snapshots that were not written to their end are passed over.
func TestLoad_UnfinishedSnapshot(t *testing.T) {
	for _, release := range []string{"3.5.10", "3.6.4", "3.9.5"} { // plain, snappy, gzip
		dir, _ := zkcorpus.Unpack(t, release)
		want := mustLoad(t, dir, Options{})
		b, err := os.ReadFile(want.Snapshot.Path)
		if err != nil {
			t.Fatal(err)
		}
		cuts := []int{3, len(b) / 2, len(b) - 1}
		if isSnappy(want.Snapshot.Path) {
			head := len(snappyMagic) + 8
			cuts = append(cuts, head, head+4+int(binary.BigEndian.Uint32(b[head:]))) // before and after its first block
		}
		for _, cut := range cuts {
			if err := os.WriteFile(want.Snapshot.Path, b[:cut], 0o644); err != nil {
				t.Fatal(err)
			}
			got, err := Load(t.Context(), mustFind(t, dir), Options{})
			if err != nil {
				t.Fatalf("%s, cut at %d: %v", release, cut, err)
			}
			if got.Tree.Digest() != want.Tree.Digest() || len(got.Unfinished) != 1 {
				t.Errorf("%s, cut at %d: left out %q", release, cut, got.Unfinished)
			}
		}
	}
}

// The state is that of the server which would win an election. A copy of the files without
// currentEpoch is of the epoch of its last transaction, and may be newer than one with the file.
func TestNewest(t *testing.T) {
	server := func(epoch string, last proto.Zxid) *Directory {
		t.Helper()
		dir := t.TempDir()
		log := zkrecord.AppendToLog(zkfiles.AppendLogHeader(nil), &zkfiles.Record{Zxid: last, Txn: zkfiles.Txn{Op: proto.OpCloseSession}})
		files := map[string][]byte{fmt.Sprintf("log.%x", uint64(last)): log}
		if epoch != "" {
			files["currentEpoch"] = []byte(epoch)
		}
		for name, content := range files {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return mustFind(t, dir)
	}
	for _, c := range []struct{ older, newer *Directory }{
		{server("5", 0x500000001), server("5", 0x500000002)},
		{server("5", 0x500000002), server("6", 0x500000001)}, // it has elected a leader that wrote nothing yet
		{server("5", 0x500000002), server("", 0x700000001)},
		{server("", 0x700000001), server("", 0x700000002)},
		{server("", 0x700000001), server("8", 0x700000001)},
	} {
		for _, all := range [][]*Directory{{c.older, c.newer}, {c.newer, c.older}} {
			if got, err := Newest(all); err != nil || got != c.newer {
				t.Errorf("%+v %v, want %+v", got, err, c.newer)
			}
		}
	}
}
