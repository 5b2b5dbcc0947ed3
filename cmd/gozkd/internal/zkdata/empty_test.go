package zkdata

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/history"
	"github.com/gozkd/gozkd/internal/testkit/zkcorpus"
	"github.com/gozkd/gozkd/internal/testkit/zkrecord"
	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/proto"
)

func create(zxid proto.Zxid, path string, parentCversion int32) *zkfiles.Record {
	return &zkfiles.Record{Session: 7, Zxid: zxid, TimeMs: int64(zxid), Txn: zkfiles.Txn{Op: proto.OpCreate, Path: path, ACL: proto.OpenACL(), ParentCversion: parentCversion}}
}

func opens(zxid proto.Zxid) *zkfiles.Record {
	return &zkfiles.Record{Session: 7, Zxid: zxid, Txn: zkfiles.Txn{Op: proto.OpCreateSession, TimeoutMs: 4000}}
}

// server makes the directory of a server with a log of these transactions.
func server(t *testing.T, log ...*zkfiles.Record) string {
	t.Helper()
	b := zkfiles.AppendLogHeader(nil)
	for _, r := range log {
		b = zkrecord.AppendToLog(b, r)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, fmt.Sprintf("log.%x", int64(log[0].Zxid))), append(b, make([]byte, 1024)...))
	return dir
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Logs from the first transaction on are the state of a ZooKeeper 3.4, which writes no snapshot at
// its start.
func TestLoad_WithoutSnapshot(t *testing.T) {
	failed := &zkfiles.Record{Zxid: 0x200000001, Txn: zkfiles.Txn{Op: proto.OpMulti, Ops: []zkfiles.Txn{create(0, "/x", 1).Txn, {Op: proto.OpError}}}}
	multi := &zkfiles.Record{Zxid: 0x200000001, Txn: zkfiles.Txn{Op: proto.OpMulti, Ops: []zkfiles.Txn{create(0, "/x", 1).Txn, create(0, "/x/y", 1).Txn}}}
	const none = "do not begin with the first transaction"
	for _, c := range []struct {
		name string
		log  []*zkfiles.Record
		want string
	}{
		{"a standalone server", []*zkfiles.Record{opens(1), create(2, "/a", 1), create(3, "/a/b", 1)}, ""},
		{"an ensemble", []*zkfiles.Record{opens(0x100000001), create(0x100000002, "/a", 1)}, ""},
		{"an ensemble without znodes", []*zkfiles.Record{opens(0x100000001)}, ""},
		{"leaders before it that wrote nothing", []*zkfiles.Record{opens(0x300000001), create(0x300000002, "/a", 1)}, ""},
		{"its first creation in a multi", []*zkfiles.Record{multi}, ""},
		{"a failed multi first", []*zkfiles.Record{failed, create(0x200000002, "/a", 1)}, ""},
		{"a quota first", []*zkfiles.Record{create(0x200000001, "/zookeeper/quota/zookeeper_limits", 1), create(0x200000002, "/a", 1)}, ""},
		{"purged logs", []*zkfiles.Record{opens(0x300000001), create(0x300000002, "/b", 2)}, none},
		{"purged logs of a deeper znode", []*zkfiles.Record{create(0x300000001, "/a/b", 1)}, none},
		{"a later epoch without a proof", []*zkfiles.Record{opens(0x300000001)}, none},
		{"a later epoch of 3.3 without a proof", []*zkfiles.Record{create(0x300000001, "/a", zkfiles.NoCversion)}, none},
		{"the middle of an epoch", []*zkfiles.Record{create(0x100000002, "/a", 1)}, none},
		{"a missing transaction", []*zkfiles.Record{opens(1), create(3, "/a", 1)}, "transactions are missing before 0x3"},
	} {
		l, err := Load(t.Context(), mustFind(t, server(t, c.log...)), Options{})
		switch {
		case c.want != "":
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", c.name, err)
			}
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
		case l.Tree.LastZxid() != c.log[len(c.log)-1].Zxid || l.Records != int64(len(c.log)) || l.Snapshot.Path != "" || l.Tree.Check() != nil:
			t.Errorf("%s: %v after %d transactions, snapshot %q", c.name, l.Tree.LastZxid(), l.Records, l.Snapshot.Path)
		}
	}
}

// Complete logs replace snapshots that were not written to their end, and reach moments before the
// first snapshot.
func TestLoad_EmptyTreeInsteadOfASnapshot(t *testing.T) {
	dir := server(t, opens(1), create(2, "/a", 1), create(3, "/b", 2))
	write(t, filepath.Join(dir, "snapshot.2"), []byte("ZKSN"))
	l := mustLoad(t, dir, Options{})
	if l.Tree.LastZxid() != 3 || len(l.Unfinished) != 1 {
		t.Errorf("%v, left out %q", l.Tree.LastZxid(), l.Unfinished)
	}
	if l := mustLoad(t, dir, Options{Until: history.Moment{Zxid: 1}}); l.Tree.LastZxid() != 1 || l.Tree.NumSessions() != 1 {
		t.Errorf("--until 0x1: %v", l.Tree.LastZxid())
	}
}

// A state before damage can be imported, and the error for the damage says how.
func TestLoad_UntilBeforeDamage(t *testing.T) {
	for _, release := range zkcorpus.Releases {
		dir, _ := zkcorpus.Unpack(t, release)
		d := mustFind(t, dir)
		last := d.Logs[len(d.Logs)-1].Path
		var good, bad *zkfiles.Record
		logs := &logFiles{files: []File{{Path: last}}}
		for r, err := range logs.records() {
			if err != nil {
				t.Fatal(err)
			}
			good, bad = bad, r
		}
		b, err := os.ReadFile(last)
		if err != nil {
			t.Fatal(err)
		}
		damaged := bytes.Clone(b)
		damaged[logs.byte+20] ^= 0x40
		write(t, last, damaged)
		for _, until := range []history.Moment{{}, {Time: time.UnixMilli(bad.TimeMs + 1)}} {
			_, err = Load(t.Context(), d, Options{Until: until})
			if want := fmt.Sprintf("--until %v takes the state up to there", good.Zxid); !errors.Is(err, zkfiles.ErrDamaged) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v\nwant %s", release, err, want)
			}
		}
		if l := mustLoad(t, dir, Options{Until: history.Moment{Zxid: good.Zxid}}); l.Tree.LastZxid() != good.Zxid {
			t.Errorf("%s: %v, want %v", release, l.Tree.LastZxid(), good.Zxid)
		}
	}
	dir := server(t, opens(1), create(2, "/a", 1), create(3, "/b", 2))
	path := filepath.Join(dir, "log.1")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[bytes.Index(b, []byte("/b"))]++
	write(t, path, b)
	if _, err := Load(t.Context(), mustFind(t, dir), Options{}); err == nil || !strings.Contains(err.Error(), "--until 0x2 ") {
		t.Error(err)
	}
	if l := mustLoad(t, dir, Options{Until: history.Moment{Zxid: 2}}); l.Tree.LastZxid() != 2 {
		t.Errorf("%v, want 0x2", l.Tree.LastZxid())
	}
}
