package datatree

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/proto"
)

// limited drives a tree with requests of one session.
type limited struct {
	tree *Tree
	disk store // what was captured
	n    int   // names so far
}

func (l *limited) apply(op proto.OpCode, body []byte) Result {
	r := Request{Op: op, Body: body}
	res, _ := l.tree.Apply(Header{Zxid: l.tree.LastZxid() + 1, TimeMs: 1_700_000_000_000}, &r)
	return res
}

func (l *limited) createAt(path string, data []byte) Result {
	return l.apply(proto.OpCreate, (&proto.CreateRequest{Path: path, Data: data, ACL: proto.OpenACL()}).Append(nil, proto.OpCreate))
}

func (l *limited) setLimit(limit Limit) Result {
	return l.apply(proto.OpSetLimit, SetLimitBody{Limit: limit, Epoch: l.tree.LastZxid().Epoch()}.Append(nil))
}

// TestWeight_IsMemory compares the weight of states of several shapes with the memory that they
// take.
func TestWeight_IsMemory(t *testing.T) {
	live := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for _, c := range []struct {
		name          string
		znodes, bytes int
		spread        int // children of a znode
	}{
		{"100 bytes", 50_000, 100, 50_000},
		{"empty, each with a parent", 50_000, 0, 1},
		{"600 bytes in lists of 10", 30_000, 600, 10},
		{"2,000 bytes", 10_000, 2000, 1000},
		{"500 KB", 60, 500_000, 60},
	} {
		before := live()
		l := &limited{tree: New(Options{})}
		for i := range c.znodes {
			parent := fmt.Sprintf("/p%07d", i/c.spread)
			if i%c.spread == 0 {
				l.createAt(parent, nil)
			}
			if res := l.createAt(fmt.Sprintf("%s/c%07d", parent, i), make([]byte, c.bytes)); res.Err != proto.OK {
				t.Fatal(res)
			}
		}
		took := float64(live() - before)
		runtime.KeepAlive(l)
		if ratio := float64(l.tree.Weight()) / took; ratio < 0.85 || ratio > 1.2 {
			t.Errorf("%s: the state weighs %d bytes and takes %.0f: %.2f times", c.name, l.tree.Weight(), took, ratio)
		} else {
			t.Logf("%s: %.2f", c.name, ratio)
		}
	}
}

// TestLimit_RefusesGrowthOnly applies requests to a tree whose limit changes, and each request that
// is refused for the limit to a copy without a limit.
func TestLimit_RefusesGrowthOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &limited{tree: New(Options{TrackDirty: true}), disk: make(store)}
		l.disk.change(l.tree.CaptureAll())
		l.createAt("/d", nil)
		var paths []string
		drawOp := func() proto.MultiOp {
			data := make([]byte, rapid.SampledFrom([]int{0, 1, 100, 3000}).Draw(t, "bytes"))
			if len(paths) == 0 || rapid.IntRange(0, 2).Draw(t, "create") == 0 {
				l.n++
				return proto.MultiOp{Op: proto.OpCreate, Path: fmt.Sprintf("/d/%d", l.n), Data: data, ACL: proto.OpenACL()}
			}
			path := rapid.SampledFrom(paths).Draw(t, "path")
			op := rapid.SampledFrom([]proto.OpCode{proto.OpDelete, proto.OpSetData, proto.OpCheck}).Draw(t, "op")
			return proto.MultiOp{Op: op, Path: path, Data: data, Version: -1}
		}
		for range rapid.IntRange(1, 60).Draw(t, "requests") {
			if rapid.IntRange(0, 4).Draw(t, "limit") == 0 {
				weight := int64(rapid.IntRange(0, 20_000).Draw(t, "weight"))
				limit := Limit{Weight: weight}
				if weight > 0 {
					limit.Cause, limit.Member = LimitedByMemory, 1
				}
				if res := l.setLimit(limit); res.Err != proto.OK {
					t.Fatal(res)
				}
			}
			var m proto.MultiRequest
			for range rapid.IntRange(1, 4).Draw(t, "operations") {
				m.Ops = append(m.Ops, drawOp())
			}
			body, op := m.Append(nil), proto.OpMulti
			if o := m.Ops[0]; len(m.Ops) == 1 {
				switch op = o.Op; op {
				case proto.OpCreate:
					body = (&proto.CreateRequest{Path: o.Path, Data: o.Data, ACL: o.ACL}).Append(nil, op)
				case proto.OpDelete:
					body = (&proto.PathVersionRequest{Path: o.Path, Version: -1}).Append(nil)
				case proto.OpSetData:
					body = (&proto.SetDataRequest{Path: o.Path, Data: o.Data, Version: -1}).Append(nil)
				default:
					body, op = m.Append(nil), proto.OpMulti
				}
			}
			free := &limited{tree: l.copy(t)}
			free.tree.replaceLimit(Limit{})
			before, was := l.tree.Weight(), l.tree.Limit()
			res, want := l.apply(op, body), free.apply(op, body)
			code := res.Err
			for _, r := range res.Multi {
				if code == proto.OK && r.Err != proto.ErrRuntimeInconsistency {
					code = r.Err
				}
			}
			after := free.tree.Weight()
			switch l.check(t); {
			case code != proto.ErrQuotaExceeded:
				if res.Err != want.Err || res.MultiFailed != want.MultiFailed || l.tree.Weight() != after {
					t.Fatalf("%v instead of %v", res, want)
				}
				if data := after - before; was.Weight > 0 && after > was.Weight && data > 100 {
					t.Fatalf("the state of %d bytes became %d bytes, the limit is %+v", before, after, was)
				}
			case after <= before:
				t.Fatalf("refused with %+v, although the state of %d bytes would become %d", was, before, after)
			case !was.Full && after+headCost < was.Weight:
				t.Fatalf("refused with %+v, although the state would be %d bytes", was, after)
			case l.tree.Weight() != before || !l.tree.Limit().Full && before >= was.Weight/100*fullPercent:
				t.Fatalf("a refusal made %d bytes of %d, and %+v of %+v", l.tree.Weight(), before, l.tree.Limit(), was)
			}
			paths = l.tree.children1("/d")
		}
	})
}

func (st *state) children1(path string) (paths []string) {
	for _, id := range st.children(st.get(path)) {
		paths = append(paths, st.at(id).path())
	}
	return paths
}

// check checks the tree, and that checkpoints have all of it: a whole one, and all changes so far.
func (l *limited) check(t *rapid.T) {
	if err := l.tree.Check(); err != nil {
		t.Fatal(err)
	}
	weights := map[string]int64{}
	for part := range WeightParts {
		l.tree.WeighPart(part, func(child string, weight int64) { weights[strings.Clone(child)] += weight })
	}
	own := l.tree.root.blob().weight()
	if sum := weights[""] + weights["d"] + weights["zookeeper"]; weights[""] != own || len(weights) != 3 || sum != l.tree.Weight() {
		t.Fatalf("%v: the root weighs %d bytes, the state %d", weights, own, l.tree.Weight())
	}
	l.disk.change(l.tree.Capture())
	merged, err := Restore(Options{}, l.disk.sorted)
	if err != nil {
		t.Fatal(err)
	}
	for _, again := range []*Tree{l.copy(t), merged} {
		if again.Digest() != l.tree.Digest() || again.Limit() != l.tree.Limit() || again.Weight() != l.tree.Weight() {
			t.Fatalf("restored: %+v %d, it was %+v %d", again.Limit(), again.Weight(), l.tree.Limit(), l.tree.Weight())
		}
	}
}

// change applies the changes of a capture.
func (s store) change(c *Changes) {
	_ = c.Range(func(k, v []byte) error { // never fails
		if s[string(k)] = v; v == nil {
			delete(s, string(k))
		}
		return nil
	})
}

func (l *limited) copy(t *rapid.T) *Tree {
	s := make(store)
	s.change(l.tree.CaptureAll())
	again, err := Restore(Options{}, s.sorted)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// TestLimit_SessionsBelowATinyLimit: a client that wants to delete gets a session even if a server
// can hold nothing at all, as with a disk below its reserve: then the limit is 1 byte.
func TestLimit_SessionsBelowATinyLimit(t *testing.T) {
	tree := New(Options{})
	zxid := proto.Zxid(1)<<32 + 1
	body := SetLimitBody{Limit: Limit{Weight: 1, Cause: LimitedByDisk, Member: 1}, Epoch: 1}
	if res, _ := tree.Apply(Header{Zxid: zxid}, &Request{Op: proto.OpSetLimit, Body: body.Append(nil)}); res.Err != proto.OK {
		t.Fatal(res.Err)
	}
	s := CreateSessionBody{TimeoutMs: 1000, Passwd: [16]byte{}}
	res, _ := tree.Apply(Header{Zxid: zxid + 1}, &Request{Session: 0x100000000000001, Op: proto.OpCreateSession, Server: 1, Body: s.Append(nil)})
	if res.Err != proto.OK {
		t.Errorf("no session: %v %s", res.Err, res.Why)
	}
}
