package zkfiles_test

import (
	"testing"

	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/proto"
)

// TestDigests_Multi checks that any creates of a multi may have asked for a container.
func TestDigests_Multi(t *testing.T) {
	creates := []zkfiles.Txn{
		{Op: proto.OpCreate, Path: "/a"}, {Op: proto.OpSetData, Path: "/x"},
		{Op: proto.OpCreate2, Path: "/b"}, {Op: proto.OpCreate, Path: "/c"},
	}
	r := zkfiles.Record{Zxid: 7, TimeMs: 8, Txn: zkfiles.Txn{Op: proto.OpMulti, Ops: creates}}
	more := func(path string) uint64 {
		s := zkfiles.Stat{Czxid: r.Zxid, Mzxid: r.Zxid, Pzxid: r.Zxid, CtimeMs: r.TimeMs, MtimeMs: r.TimeMs}
		got := zkfiles.ZnodeDigest(path, nil, &s)
		s.Owner = zkfiles.OwnerOf(zkfiles.Container, 0, 0)
		return zkfiles.ZnodeDigest(path, nil, &s) - got
	}
	a, b, c := more("/a"), more("/b"), more("/c")
	const is = 5
	for _, exceeds := range []uint64{0, a, b, c, a + b, a + c, b + c, a + b + c} {
		r.Digest = is + exceeds
		if got := new(zkfiles.Digests).OfTree(&r, is); got != is {
			t.Errorf("exceeds by %d: %d", exceeds, got)
		}
	}
	for _, wrong := range []uint64{1, 2 * a, a + b + 1, more("/x")} {
		r.Digest = is + wrong
		if got := new(zkfiles.Digests).OfTree(&r, is); got != r.Digest {
			t.Errorf("a wrong digest, by %d, is taken for %d", wrong, got)
		}
	}
	r.Digest, r.Txn.Ops = is+a, append(creates, zkfiles.Txn{Op: proto.OpError})
	if got := new(zkfiles.Digests).OfTree(&r, is); got != r.Digest {
		t.Errorf("a multi that failed is taken for %d", got)
	}
}
