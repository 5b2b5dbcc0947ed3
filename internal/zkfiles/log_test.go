package zkfiles_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/testkit/zkrecord"
	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/proto"
)

// allRecords has a transaction of each type.
func allRecords() []*zkfiles.Record {
	digest := proto.ACL{Perms: 5, ID: proto.ID{Scheme: "digest", ID: "u:h"}}
	ops := []zkfiles.Txn{
		{Op: proto.OpCreateSession, TimeoutMs: 30000},
		{Op: proto.OpCreate, Path: "/a", Data: []byte("data"), ACL: proto.OpenACL(), ParentCversion: 1},
		{Op: proto.OpCreate, Path: "/v0", ACL: proto.OpenACL(), Ephemeral: true, ParentCversion: zkfiles.NoCversion},
		{Op: proto.OpCreate2, Path: "/a/b", Data: []byte{}, ACL: []proto.ACL{digest}, Ephemeral: true, ParentCversion: 9},
		{Op: proto.OpCreateContainer, Path: "/c", ACL: proto.ReadACL(), ParentCversion: 2},
		{Op: proto.OpCreateTTL, Path: "/t", Data: []byte("x"), ACL: proto.OpenACL(), ParentCversion: 3, TTLMs: 60000},
		{Op: proto.OpSetData, Path: "/a", Data: []byte("more"), Version: 1},
		{Op: proto.OpReconfig, Path: "/zookeeper/config", Data: []byte("server.1=..."), Version: -1},
		{Op: proto.OpSetACL, Path: "/a", ACL: []proto.ACL{digest, {Perms: 31, ID: proto.ID{Scheme: "x509", ID: "CN=x"}}}, Version: 1},
		{Op: proto.OpDelete, Path: "/a/b"},
		{Op: proto.OpDeleteContainer, Path: "/c"},
		{Op: proto.OpError, Err: proto.ErrNoNode},
		{Op: proto.OpMulti, Ops: []zkfiles.Txn{
			{Op: proto.OpCheck, Path: "/a", Version: 1},
			{Op: proto.OpCreate, Path: "/m", Data: []byte("1"), ACL: proto.OpenACL(), ParentCversion: 4},
			{Op: proto.OpError, Err: proto.ErrNodeExists},
		}},
		{Op: proto.OpMulti},
		{Op: proto.OpCloseSession, Paths: []string{"/a/b", "/v0"}, HasPaths: true},
		{Op: proto.OpCloseSession},
	}
	var all []*zkfiles.Record
	for i, op := range ops {
		r := &zkfiles.Record{Session: 0x1000, Cxid: int32(i), Zxid: proto.MakeZxid(3, uint32(i+1)), TimeMs: int64(1e12) + int64(i), Txn: op}
		if op.Op != proto.OpError {
			r.HasDigest, r.DigestVersion, r.Digest = true, zkfiles.DigestVersion, uint64(i)*0x1234567890
		}
		all = append(all, r)
	}
	return all
}

func logOf(records []*zkfiles.Record, padding int) (b []byte, ends []int) {
	b = zkfiles.AppendLogHeader(nil)
	for _, r := range records {
		b = zkrecord.AppendToLog(b, r)
		ends = append(ends, len(b))
	}
	return append(b, make([]byte, padding)...), ends
}

// readLog returns the records before the first error, which is io.EOF for a whole log.
func readLog(b []byte) (got []*zkfiles.Record, err error) {
	l, err := zkfiles.NewLogReader(bytes.NewReader(b))
	for err == nil {
		var r *zkfiles.Record
		if r, err = l.Next(); err == nil {
			got = append(got, r)
		}
	}
	return got, err
}

func TestLog_RoundTrip(t *testing.T) {
	want := allRecords()
	for _, padding := range []int{0, 5, 12, 13, 100_000} {
		b, _ := logOf(want, padding)
		got, err := readLog(b)
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		for i, r := range got {
			if !reflect.DeepEqual(r, want[i]) {
				t.Errorf("got  %+v\nwant %+v", r, want[i])
			}
		}
		if len(got) != len(want) {
			t.Errorf("%d records of %d", len(got), len(want))
		}
	}
}

// Records of servers before 3.6 end without a digest, those of a close without paths, and those of
// a create of 3.3 without the parent's counter.
func TestDecodeRecord_OfEarlierVersions(t *testing.T) {
	for _, r := range allRecords() {
		r.HasDigest, r.DigestVersion, r.Digest = false, 0, 0
		b := zkrecord.Append(nil, r)
		if r.Txn.ParentCversion == zkfiles.NoCversion {
			b = b[:len(b)-4]
		}
		if got, err := zkfiles.DecodeRecord(b); err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("got  %+v, %v\nwant %+v", got, err, r)
		}
	}
}

// A leader overwrites the types of a failed multi in memory, and the bodies of other types stay.
func TestDecodeRecord_FailedMultiOfALeader(t *testing.T) {
	create := zkfiles.Txn{Op: proto.OpCreate, Path: "/never", ACL: proto.OpenACL(), ParentCversion: 1}
	body := zkrecord.AppendTxn(nil, &create)
	r := zkfiles.Record{Zxid: 7, Txn: zkfiles.Txn{Op: proto.OpMulti}}
	b := zkrecord.Append(nil, &r)
	b = b[:len(b)-4]
	b = append(b, 0, 0, 0, 2)
	for range 2 {
		b = append(b, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, byte(len(body)))
		b = append(b, body...)
	}
	got, err := zkfiles.DecodeRecord(b)
	if err != nil || !got.Txn.Failed() || len(got.Txn.Ops) != 2 {
		t.Errorf("%+v, %v", got, err)
	}
}

// The server was killed while it wrote: whatever the length of what arrived, the records before are
// read, and the rest is torn and not damaged.
func TestLog_TornAtEachByte(t *testing.T) {
	want := allRecords()
	b, ends := logOf(want, 0)
	for cut := range b {
		whole := 0
		for whole < len(ends) && ends[whole] <= cut {
			whole++
		}
		for _, padding := range []int{0, 4096} {
			got, err := readLog(append(bytes.Clone(b[:cut]), make([]byte, padding)...))
			atEnd := cut == len(zkfiles.AppendLogHeader(nil)) || whole > 0 && ends[whole-1] == cut
			// The checksum of a record begins with four zeros.
			if len(got) != whole || !errors.Is(err, zkfiles.ErrTorn) && !(errors.Is(err, io.EOF) && (atEnd || padding > 0 || b[cut-1] == 0)) {
				t.Fatalf("cut at %d, then %d zeros: %d records of %d, %v", cut, padding, len(got), whole, err)
			}
		}
	}
}

// A changed byte is found wherever it is, and is never taken for a torn record, unless the byte is
// the last one of the log and becomes 0, as if it had not been written.
func TestLog_ChangedByte(t *testing.T) {
	want := allRecords()
	b, _ := logOf(want, 4096)
	used := len(b) - 4096
	rng := rand.New(rand.NewPCG(1, 2))
	for range exhaustive.Or(600, 10_000) {
		at, change := rng.IntN(used), byte(1+rng.IntN(255))
		if at >= 8 && at < len(zkfiles.AppendLogHeader(nil)) {
			continue // the id of the database, which means nothing
		}
		b[at] ^= change
		_, err := readLog(b)
		if !errors.Is(err, zkfiles.ErrDamaged) && !(at == used-1 && b[at] == 0) {
			t.Errorf("byte %d of %d changed by %#x: %v", at, used, change, err)
		}
		b[at] ^= change
	}
}

// A log that ends and then goes on has lost a part in the middle.
func TestLog_HoleIsDamage(t *testing.T) {
	b, ends := logOf(allRecords(), 4096)
	clear(b[ends[2]:ends[4]])
	if got, err := readLog(b); !errors.Is(err, zkfiles.ErrDamaged) || len(got) != 3 {
		t.Errorf("%d records, %v", len(got), err)
	}
}

func FuzzLog(f *testing.F) {
	for _, padding := range []int{0, 100} {
		b, ends := logOf(allRecords(), padding)
		f.Add(b)
		f.Add(b[:ends[3]-2])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := readLog(b)
		if err == nil {
			t.Fatal("the end of a log is an error")
		}
		for _, r := range got {
			again, err := zkfiles.DecodeRecord(zkrecord.Append(nil, r))
			if err != nil || !reflect.DeepEqual(zkrecord.Append(nil, again), zkrecord.Append(nil, r)) {
				t.Fatalf("%+v\n%+v, %v", r, again, err)
			}
		}
	})
}

// FuzzRecord reads bytes that no checksum protects, as those of a leader.
func FuzzRecord(f *testing.F) {
	for _, r := range allRecords() {
		f.Add(zkrecord.Append(nil, r))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := zkfiles.DecodeRecord(b)
		if err != nil {
			if !errors.Is(err, zkfiles.ErrDamaged) {
				t.Fatal(err)
			}
			return
		}
		again, err := zkfiles.DecodeRecord(zkrecord.Append(nil, r))
		if err != nil || !bytes.Equal(zkrecord.Append(nil, again), zkrecord.Append(nil, r)) {
			t.Fatalf("%+v\n%+v, %v", r, again, err)
		}
	})
}
