package datatree

import (
	"bytes"
	"errors"
	"hash/adler32"
	"slices"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/proto"
)

// What ZooKeeper cannot have written is refused, with a reason.
func TestReplay_Refused(t *testing.T) {
	noTTL := zkfiles.OwnerOf(zkfiles.TTL, 0, 0)
	for _, tc := range []struct {
		znode zkfiles.Znode
		want  string
	}{
		{zkfiles.Znode{Path: "/x", Stat: zkfiles.Stat{Owner: noTTL}}, "means a time to live of 0"},
		{zkfiles.Znode{Path: "/zookeeper", Stat: zkfiles.Stat{Owner: 5}}, "its owner is 0x5"},
		{zkfiles.Znode{Path: "/x/y"}, "its parent is not before it"},
		{zkfiles.Znode{Path: "/a"}, "it comes twice"},
		{zkfiles.Znode{Path: "/x"}, "is one more than 5 znodes"},
	} {
		r := replayed(t, zkfiles.Txn{Op: proto.OpCreate, Path: "/a", ParentCversion: 1})
		r.t.mostZnodes = r.t.index.len()
		file := tc.znode.Append(zkfiles.AppendSnapshotHeader(nil, []zkfiles.Session{{ID: 7, TimeoutMs: 9}}, nil))
		s, err := zkfiles.NewSnapshotReader(strings.NewReader(string(file)))
		if err != nil {
			t.Fatal(err)
		}
		err = r.Load(s, func() error { return nil })
		if err == nil || !strings.Contains(err.Error(), tc.want) || !errors.Is(err, zkfiles.ErrDamaged) || !strings.Contains(err.Error(), "znode \""+tc.znode.Path) {
			t.Errorf("%s: %v, want %s", tc.znode.Path, err, tc.want)
		}
		if session, known := r.t.Session(7); !known || session.TimeoutMs != 9 {
			t.Errorf("session %+v", session)
		}
	}
	check := zkfiles.Txn{Op: proto.OpCheck}
	for _, tc := range []struct {
		zxid proto.Zxid
		txn  zkfiles.Txn
		want string
	}{
		{1, check, "transaction 0x1 comes after 0x1"},
		{2, zkfiles.Txn{Op: proto.OpGetData}, "transaction 0x2: getData is no transaction"},
		{2, zkfiles.Txn{Op: proto.OpMulti, Ops: []zkfiles.Txn{check, {Op: proto.OpGetData}}}, "operation 1 of the multi: getData"},
		{2, zkfiles.Txn{Op: proto.OpCreate, Path: "/x/"}, "/x/"},
		{2, zkfiles.Txn{Op: proto.OpCreateTTL, Path: "/x"}, "means a time to live of 0"},
		{2, zkfiles.Txn{Op: proto.OpCreate, Path: "/x"}, "is one more than 5 znodes"},
		{2, zkfiles.Txn{Op: proto.OpDelete, Path: "/zookeeper/quota"}, "it deletes \"/zookeeper/quota\""},
		{2, zkfiles.Txn{Op: proto.OpDelete, Path: "/a/"}, "it deletes \"/a/\""},
		{2, zkfiles.Txn{Op: proto.OpCloseSession, Paths: []string{"/"}}, "it deletes \"/\""},
	} {
		r := replayed(t, zkfiles.Txn{Op: proto.OpCreate, Path: "/a", ParentCversion: 1})
		r.t.mostZnodes = r.t.index.len()
		if err := r.Apply(&zkfiles.Record{Zxid: tc.zxid, Txn: tc.txn}); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v, want %s", tc.txn, err, tc.want)
		}
	}
}

// A snapshot is read to its end, unless the caller ends that.
func TestReplay_Load(t *testing.T) {
	file := zkfiles.AppendSnapshotHeader(nil, nil, nil)
	for _, path := range []string{"/", "/a", "/b"} {
		z := zkfiles.Znode{Path: path, Data: make([]byte, 2*largeBytes), ACL: zkfiles.OpenKey}
		file = z.Append(file)
	}
	whole := zkfiles.AppendSeal(zkfiles.AppendTreeEnd(file), adler32.Checksum(zkfiles.AppendTreeEnd(file)))
	stop := errors.New("stop")
	for what, tc := range map[string]struct {
		file  []byte
		most  int // znodes, after which each ends it
		want  error
		calls int
	}{
		"whole": {whole, 9, nil, 3}, "cut off": {file[:len(file)-1], 9, zkfiles.ErrDamaged, 2}, "stopped": {whole, 2, stop, 2},
	} {
		s, err := zkfiles.NewSnapshotReader(bytes.NewReader(tc.file))
		if err != nil {
			t.Fatal(err)
		}
		r, calls := NewReplay(New(Options{})), 0
		err = r.Load(s, func() error {
			if len(r.t.unhashed) > 0 {
				t.Errorf("%s: %d znodes are not in the digest", what, len(r.t.unhashed))
			}
			if calls++; calls == tc.most {
				return stop
			}
			return nil
		})
		if !errors.Is(err, tc.want) || calls != tc.calls {
			t.Errorf("%s: %v after %d znodes", what, err, calls)
		}
	}
}

// What a part of the transactions finds done already stays as it is.
func TestReplay_FuzzyCreates(t *testing.T) {
	known := []proto.ACL{{Perms: 1, ID: proto.ID{Scheme: "digest", ID: "u:h"}}}
	for _, tc := range []struct {
		what          string
		zxid          proto.Zxid
		czxid         proto.Zxid
		aversion      int32
		counter, want int32
		pzxid         proto.Zxid // of the root
		list          bool       // of the transaction
		path          string
	}{
		{"its own znode", 5, 5, 0, 3, 3, 5, true, "/a"},
		{"an equal counter", 5, 5, 0, 2, 2, 4, true, "/a"},
		{"a later znode", 5, 6, 0, 3, 3, 5, false, "/a"},
		{"its own znode, with a list of later", 5, 5, 1, 3, 3, 5, false, "/a"},
		{"below /zookeeper", 5, 5, 0, 99, 2, 4, false, "/zookeeper"},
	} {
		r := NewReplay(New(Options{}))
		root := zkfiles.Znode{Path: "/", ACL: zkfiles.OpenKey, Stat: zkfiles.Stat{Pzxid: 4, Cversion: 2}}
		a := zkfiles.Znode{Path: "/a", ACL: 1, Stat: zkfiles.Stat{Czxid: tc.czxid, Aversion: tc.aversion}}
		for _, z := range []*zkfiles.Znode{&root, &a} {
			if err := r.addZnode(z, map[int64][]proto.ACL{1: proto.ReadACL()}); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Apply(&zkfiles.Record{Zxid: tc.zxid, Txn: zkfiles.Txn{Op: proto.OpCreate, Path: tc.path, ACL: known, ParentCversion: tc.counter}}); err != nil {
			t.Fatal(err)
		}
		if rec := r.t.root.record(); rec.cversion != tc.want || rec.pzxid != tc.pzxid {
			t.Errorf("%s: the root is %+v", tc.what, rec)
		}
		if got := r.t.aclOf(r.t.get("/a")).acls(); slices.Equal(got, known) != tc.list {
			t.Errorf("%s: the list is %v", tc.what, got)
		}
	}
}

// A finished replay begins an ensemble of its own, and counts what quotas limit.
func TestReplay_Finish(t *testing.T) {
	r := replayed(t,
		zkfiles.Txn{Op: proto.OpCreate, Path: "/zookeeper/quota/a", ParentCversion: 1},
		zkfiles.Txn{Op: proto.OpCreate, Path: "/zookeeper/quota/a/zookeeper_limits", Data: []byte("count=5"), ParentCversion: 1},
		zkfiles.Txn{Op: proto.OpCreate, Path: "/zookeeper/quota/a/zookeeper_stats", Data: []byte("count=77,bytes=1"), ParentCversion: 2},
		zkfiles.Txn{Op: proto.OpCreate, Path: "/a", ParentCversion: 1},
		zkfiles.Txn{Op: proto.OpSetData, Path: "/zookeeper/quota/a/zookeeper_stats", Data: []byte("count=77,bytes=1"), Version: 1},
		zkfiles.Txn{Op: proto.OpReconfig, Path: configPath, Data: make([]byte, 2*largeBytes), Version: 8},
		zkfiles.Txn{Op: proto.OpCreateSession, TimeoutMs: 9},
		zkfiles.Txn{Op: proto.OpCloseSession}, zkfiles.Txn{Op: proto.OpCloseSession},
		zkfiles.Txn{Op: proto.OpCreateSession, TimeoutMs: 9},
		zkfiles.Txn{Op: proto.OpCreate2, Path: "/large", Data: make([]byte, 2*largeBytes), ParentCversion: 2},
		zkfiles.Txn{Op: proto.OpCreate, Path: "/large/e", Ephemeral: true, ParentCversion: 1},
		zkfiles.Txn{Op: proto.OpCheck},
	)
	if acl := r.t.record(r.t.get("/large")).acl; acl != "" {
		t.Errorf("an empty list becomes %q, and to ZooKeeper it is open", acl)
	}
	for _, session := range []proto.SessionID{1, 1, 2} { // the others are not known
		if err := r.DropSession(session); err != nil || len(r.t.unhashed) > 0 || r.t.NumSessions() != 0 || r.t.get("/large/e") != nil {
			t.Errorf("%v, %d znodes are not in the digest, %d sessions are left", err, len(r.t.unhashed), r.t.NumSessions())
		}
	}
	if _, err := r.Finish(); err != nil {
		t.Fatal(err)
	}
	if rec := r.t.record(r.t.get(configPath)); rec.data != "" || rec.null || rec.version != -1 {
		t.Errorf("the configuration is %+v", rec)
	}
	if rec := r.t.record(r.t.get("/zookeeper/quota/a/zookeeper_stats")); !strings.HasPrefix(rec.data, "count=1,bytes=0") {
		t.Errorf("the statistics are %q", rec.data)
	}
	if len(r.t.unhashed) > 0 {
		t.Error("znodes are not in the digest")
	}
	for kind, want := range map[kind]int64{
		persistent: 0, ephemeral: 9, container: zkfiles.OwnerOf(zkfiles.Container, 0, 0), ttl: zkfiles.OwnerOf(zkfiles.TTL, 0, 9),
	} {
		rec := record{kind: kind, owner: 9}
		if got := rec.zooKeeperStat().Owner; got != want {
			t.Errorf("kind %d has owner %#x, want %#x", kind, got, want)
		}
	}
}

// To ZooKeeper an empty list is open, wherever it stands: in a snapshot, a create or a setACL.
func TestReplay_EmptyACL(t *testing.T) {
	r := NewReplay(New(Options{}))
	if err := r.addZnode(&zkfiles.Znode{Path: "/a", ACL: 1, Stat: zkfiles.Stat{Czxid: 1}}, map[int64][]proto.ACL{1: {}}); err != nil {
		t.Fatal(err)
	}
	for i, x := range []zkfiles.Txn{
		{Op: proto.OpCreate, Path: "/b", ParentCversion: 1},
		{Op: proto.OpCreate, Path: "/c", ParentCversion: 2, ACL: proto.ReadACL()}, {Op: proto.OpSetACL, Path: "/c", Version: 1},
	} {
		if err := r.Apply(&zkfiles.Record{Zxid: proto.Zxid(i + 5), Txn: x}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Finish(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/a", "/b", "/c"} {
		if n := r.t.get(path); !slices.Equal(r.t.aclOf(n).acls(), proto.OpenACL()) || r.t.record(n).acl != "" {
			t.Errorf("%s has the list %v, encoded %q", path, r.t.aclOf(n).acls(), r.t.record(n).acl)
		}
	}
}
