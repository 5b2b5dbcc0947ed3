package datatree

import (
	"fmt"
	"slices"
	"testing"

	"github.com/gozkd/gozkd/proto"
)

// TestLimit_Rules: all members must come to the same weights, whatever their version.
func TestLimit_Rules(t *testing.T) {
	l := &limited{tree: New(Options{})}
	before := l.tree.Weight()
	l.apply(proto.OpCreateSession, (&CreateSessionBody{TimeoutMs: 1000}).Append(nil))
	l.createAt("/d", make([]byte, 1000))
	if got, want := l.tree.Weight()-before, int64(1699); got != want {
		t.Errorf("a session and a znode weigh %d bytes, want %d", got, want)
	}
	if got := (Limit{Weight: 10_000}).Resumes(); got != 9500 {
		t.Errorf("a limit of 10,000 bytes ends to refuse at %d", got)
	}
	l.tree.replaceLimit(Limit{Weight: l.tree.Weight() + 10, Cause: LimitedByMemory, Member: 1})
	for _, c := range []struct {
		bytes int
		want  proto.ErrCode
		says  bool // why: only when the state becomes full
	}{{1010, proto.OK, false}, {1011, proto.ErrQuotaExceeded, true}, {1000, proto.OK, false}, {1001, proto.ErrQuotaExceeded, false}} {
		set := (&proto.SetDataRequest{Path: "/d", Data: make([]byte, c.bytes), Version: -1}).Append(nil)
		if res := l.apply(proto.OpSetData, set); res.Err != c.want || (res.Why != "") != c.says {
			t.Errorf("%d bytes: %v (%s), want %v; %+v", c.bytes, res.Err, res.Why, c.want, l.tree.Limit())
		}
	}
}

// TestLimit_Bounds: the limits of sessions, and the end of the full state, are met to the byte.
func TestLimit_Bounds(t *testing.T) {
	const many = sessionBytes/sessionCost + 1
	for _, c := range []struct {
		sessions int
		weight   int64 // of the znodes
		limit    int64
		want     proto.ErrCode
	}{
		{many, 0, 0, proto.OK},
		{many - 2, 1 << 30, 1, proto.OK}, // the last of the reserve
		{many - 1, 1 << 30, 1, proto.ErrQuotaExceeded},
		{many, 1 << 20, 1<<20 + (many+1)*sessionCost, proto.OK},
		{many, 1 << 20, 1<<20 + (many+1)*sessionCost - 1, proto.ErrQuotaExceeded},
		{3*many - 1, 1 << 30, 3 * many * sessionCost * 100 / sessionPercent, proto.OK},
		{3 * many, 1 << 30, 3 * many * sessionCost * 100 / sessionPercent, proto.ErrQuotaExceeded},
	} {
		tree := New(Options{})
		for i := range c.sessions {
			tree.sessions[proto.SessionID(i)] = nil
		}
		tree.weight = c.weight
		tree.replaceLimit(Limit{Weight: c.limit})
		x := newTxn(Header{}, &Request{})
		if code := tree.mayAddSession(&x); code != c.want || x.res.Full != (code != proto.OK) {
			t.Errorf("%+v: %v, full %v", c, code, x.res.Full)
		}
	}
	for weight, full := range map[int64]bool{9500: true, 9499: false} {
		tree := New(Options{})
		tree.weight = weight
		tree.replaceLimit(Limit{Weight: 10_000})
		if tree.outgrown(1000) == full { // it then would be full, and stay so
			t.Errorf("%d bytes of 10,000 and 1000 more: outgrown %v", weight, full)
		}
		tree.replaceLimit(Limit{Weight: 10_000, Full: true})
		if tree.endFull(); tree.Limit().Full != full {
			t.Errorf("%d bytes of 10,000: full %v", weight, !full)
		}
	}
}

// TestLimit_RefusesGrowth: a create is refused before it is in the log if, and only if, Apply would
// refuse it, to the byte; also if most of its data have not arrived.
func TestLimit_RefusesGrowth(t *testing.T) {
	create := &proto.CreateRequest{Path: "/large", Data: make([]byte, 10_000), ACL: proto.OpenACL()}
	body := create.Append(nil, proto.OpCreate)
	head := 4 + len(create.Path) + 4
	for room, refused := range map[int]bool{createdBytes(create.Path, len(create.Data), 0): false, createdBytes(create.Path, len(create.Data), 0) - 1: true} {
		l := &limited{tree: New(Options{})}
		l.tree.replaceLimit(Limit{Weight: l.tree.Weight() + int64(room), Cause: LimitedByMemory, Member: 1})
		whole := l.tree.RefusesGrowth(&Request{Op: proto.OpCreate, Body: body}, 0)
		part := l.tree.RefusesGrowth(&Request{Op: proto.OpCreate, Body: body[:head]}, len(body)-head)
		if got := l.tree.RefusesGrowth(&Request{Op: proto.OpCreate, Body: body[:len(body)-1]}, 1); got != part {
			t.Errorf("room for %d bytes, and a byte is missing: refused %v", room, got)
		}
		if res := l.apply(proto.OpCreate, body); whole != refused || part != refused || (res.Err == proto.ErrQuotaExceeded) != refused {
			t.Errorf("room for %d bytes: refused %v, by its head %v, Apply returns %v", room, whole, part, res.Err)
		}
	}
}

// TestLimit_MultiNamesWhatGrew: the operation of a refused multi that fails is the first after
// which the state stays larger than before.
func TestLimit_MultiNamesWhatGrew(t *testing.T) {
	l := &limited{tree: New(Options{})}
	l.createAt("/large", make([]byte, 1000))
	l.createAt("/small", make([]byte, 10))
	l.tree.replaceLimit(Limit{Weight: l.tree.Weight(), Cause: LimitedByMemory, Member: 1, Full: true})
	check := proto.MultiOp{Op: proto.OpCheck, Path: "/", Version: -1}
	remove := proto.MultiOp{Op: proto.OpDelete, Path: "/large", Version: -1}
	grow := proto.MultiOp{Op: proto.OpSetData, Path: "/small", Data: make([]byte, 100), Version: -1}
	create := func(path string, bytes int) proto.MultiOp {
		return proto.MultiOp{Op: proto.OpCreate, Path: path, Data: make([]byte, bytes), ACL: proto.OpenACL()}
	}
	for _, c := range []struct {
		want int
		ops  []proto.MultiOp
	}{
		{0, []proto.MultiOp{create("/x", 1), check}},
		{0, []proto.MultiOp{{Op: proto.OpSetData, Path: "/small", Data: make([]byte, 11), Version: -1}}},
		{1, []proto.MultiOp{check, create("/x", 1), check}},
		{2, []proto.MultiOp{create("/x", 1), remove, create("/y", 2000), grow}},
		{4, []proto.MultiOp{check, remove, create("/x", 500), grow, create("/y", 1000)}},
	} {
		res := l.apply(proto.OpMulti, (&proto.MultiRequest{Ops: c.ops}).Append(nil))
		failed := slices.IndexFunc(res.Multi, func(r proto.MultiResult) bool { return r.Err == proto.ErrQuotaExceeded })
		if !res.MultiFailed || !res.Full || failed != c.want {
			t.Errorf("operation %d of %v fails, want %d", failed, c.ops, c.want)
		}
	}
}

// TestQuota_Edges: what is no quota limits nothing, and a limit of 0 leaves no room at all.
func TestQuota_Edges(t *testing.T) {
	hard := func(count, bytes int) []byte {
		return fmt.Appendf(nil, "count=-1,bytes=-1=;byteHardLimit=%d;countHardLimit=%d", bytes, count)
	}
	for name, c := range map[string]struct {
		limits, stats string // znodes
		text          []byte
		want          proto.ErrCode // of a create below /a
	}{
		"no znode more":           {"/zookeeper/quota/a/zookeeper_limits", "/zookeeper/quota/a/zookeeper_stats", hard(0, -1), proto.ErrQuotaExceeded},
		"no byte more":            {"/zookeeper/quota/a/zookeeper_limits", "/zookeeper/quota/a/zookeeper_stats", hard(-1, 0), proto.ErrQuotaExceeded},
		"no limit":                {"/zookeeper/quota/a/zookeeper_limits", "/zookeeper/quota/a/zookeeper_stats", hard(-1, -1), proto.OK},
		"without stats":           {"/zookeeper/quota/a/zookeeper_limits", "/zookeeper/quota/a/other", hard(0, 0), proto.OK},
		"of the root":             {"/zookeeper/quota/zookeeper_limits", "/zookeeper/quota/zookeeper_stats", hard(0, 0), proto.OK},
		"elsewhere":               {"/a/zookeeper_limits", "/zookeeper/quota/a/zookeeper_stats", hard(0, 0), proto.OK},
		"of ZooKeeper's own node": {"/zookeeper/quota/zookeeper/zookeeper_limits", "/zookeeper/quota/zookeeper/zookeeper_stats", hard(0, 0), proto.OK},
	} {
		l := &limited{tree: New(Options{})}
		for _, path := range []string{"/a", "/zookeeper/quota/a", "/zookeeper/quota/zookeeper", c.stats} {
			l.createAt(path, nil)
		}
		if res := l.createAt(c.limits, c.text); res.Err != proto.OK {
			t.Fatal(name, res.Err)
		}
		create := (&proto.CreateRequest{Path: "/a/b", Data: []byte("1"), ACL: proto.OpenACL()}).Append(nil, proto.OpCreate)
		r := Request{Op: proto.OpCreate, Flags: FlagEnforceQuota, Body: create}
		if res, _ := l.tree.Apply(Header{Zxid: l.tree.LastZxid() + 1}, &r); res.Err != c.want {
			t.Errorf("%s: %v, want %v", name, res.Err, c.want)
		}
		for path := range l.tree.quotas {
			if path != "/a" {
				t.Errorf("%s: a quota of %q", name, path)
			}
		}
	}
}
