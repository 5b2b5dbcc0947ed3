package zkdata

import (
	"errors"
	"fmt"
	"hash/adler32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/history"
	"github.com/gozkd/gozkd/internal/testkit/zkrecord"
	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/proto"
)

// A snapshot that became complete after the transaction of --until lacks what was deleted in
// between, and leaves no trace of it. So it does not count, and neither does a wrong digest in it
// pass.
func TestLoad_UntilWithinTheFuzzyRange(t *testing.T) {
	dir, znodes := t.TempDir(), []byte(nil)
	replay, log := datatree.NewReplay(datatree.New(datatree.Options{})), zkfiles.AppendLogHeader(nil)
	for i, x := range []zkfiles.Txn{
		{Op: proto.OpCreate, Path: "/gone", ACL: proto.OpenACL(), ParentCversion: 1},
		{Op: proto.OpCreate, Path: "/left", ACL: proto.OpenACL(), ParentCversion: 2},
		{Op: proto.OpSetData, Path: "/left", Version: 1},
		{Op: proto.OpDelete, Path: "/gone"},
	} {
		if x.Op == proto.OpDelete { // between the root and the others
			_ = replay.Tree().ZooKeeperZnodes(func(z *zkfiles.Znode) error {
				if z.Path != x.Path {
					znodes = z.Append(znodes)
				}
				return nil
			})
		}
		r := &zkfiles.Record{Zxid: proto.Zxid(i + 2), TimeMs: 5, Txn: x}
		if err := replay.Apply(r); err != nil {
			t.Fatal(err)
		}
		log = zkrecord.AppendToLog(log, r)
	}
	tree, digest := replay.Tree(), replay.Digest()
	write := func(name string, b []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	snapshot := func(value uint64) {
		b := zkfiles.AppendSnapshotHeader(nil, nil, tree.ZooKeeperACLs())
		b = zkfiles.AppendTreeEnd(append(b, znodes...))
		b = zkfiles.AppendSeal(b, adler32.Checksum(b))
		b = (&zkfiles.SnapshotDigest{Zxid: 5, Version: zkfiles.DigestVersion, Value: value}).Append(b)
		write("snapshot.3", zkfiles.AppendSeal(b, adler32.Checksum(b))) // begun at 3, complete at 5
	}
	write("log.2", log) // of a purged log.1
	snapshot(digest)
	if l := mustLoad(t, dir, Options{}); l.Compared != 1 || l.Tree.LastZxid() != 5 {
		t.Errorf("%d digests compared, zxid %v", l.Compared, l.Tree.LastZxid())
	}
	if _, err := Load(t.Context(), mustFind(t, dir), Options{Until: history.Moment{Zxid: 4}}); !errors.Is(err, errNoSnapshot) {
		t.Errorf("until 4: %v", err)
	}
	snapshot(digest + 1)
	_, err := Load(t.Context(), mustFind(t, dir), Options{})
	if want := fmt.Sprintf("the snapshot's digest of zxid 0x5 is %#x, computed is %#x", digest+1, digest); !errors.Is(err, zkfiles.ErrDamaged) || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
}

// TestLoad_AskedForAnotherKind: ZooKeeper computes the digest of a container for the persistent
// znode that it makes if a client asks for a container with the request create, and vice versa. The
// digests of the transactions in its pipeline inherit that. Other wrong digests count.
func TestLoad_AskedForAnotherKind(t *testing.T) {
	container := zkfiles.OwnerOf(zkfiles.Container, 0, 0)
	for _, c := range []struct {
		op         proto.OpCode
		got, asked int64 // the owners
	}{
		{proto.OpCreate, 0, container}, {proto.OpCreate2, 0, container},
		{proto.OpCreateContainer, container, 0}, {proto.OpCreateContainer, container, int64(session)},
	} {
		dir, list := t.TempDir(), tenTransactions()
		list[1].Txn.Op, list[2].Txn.Op = c.op, c.op
		digests(list)
		write := func() {
			t.Helper()
			if err := os.WriteFile(filepath.Join(dir, "log.1"), logOf(list), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		more := func(r *zkfiles.Record) uint64 {
			s := zkfiles.Stat{Czxid: r.Zxid, Mzxid: r.Zxid, Pzxid: r.Zxid, CtimeMs: r.TimeMs, MtimeMs: r.TimeMs, Owner: c.got}
			got := zkfiles.ZnodeDigest(r.Txn.Path, r.Txn.Data, &s)
			s.Owner = c.asked
			return zkfiles.ZnodeDigest(r.Txn.Path, r.Txn.Data, &s) - got
		}
		one, two := more(list[1]), more(list[2])
		list[1].Digest += one
		list[2].Digest += one + two
		list[3].Digest += one + two
		write()
		if l := mustLoad(t, dir, Options{}); l.Compared != 9 || l.Tree.LastZxid() != 10 {
			t.Errorf("%+v: %d digests compared, zxid %v", c, l.Compared, l.Tree.LastZxid())
		}
		list[5].Digest += one
		write()
		if _, err := Load(t.Context(), mustFind(t, dir), Options{}); !errors.Is(err, zkfiles.ErrDamaged) {
			t.Errorf("%+v: a digest that is ahead again: %v", c, err)
		}
	}
}
