package datatree

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
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
			early := l.tree.RefusesGrowth(&Request{Op: op, Body: body}, 0)
			res, want := l.apply(op, body), free.apply(op, body)
			code := res.Err
			for _, r := range res.Multi {
				if code == proto.OK && r.Err != proto.ErrRuntimeInconsistency {
					code = r.Err
				}
			}
			after := free.tree.Weight()
			if early && (code != proto.ErrQuotaExceeded || !was.Full && l.tree.Limit().Full) {
				t.Fatalf("refused before Apply, which says %v: %+v, then %+v", code, was, l.tree.Limit())
			} else if op == proto.OpCreate && code == proto.ErrQuotaExceeded && !l.tree.Limit().Full && !early &&
				before+int64(createdBytes(m.Ops[0].Path, len(m.Ops[0].Data), 0)) > was.Weight {
				t.Fatalf("%+v: a create for which there is no room goes through the log, and does not make the state full", was)
			}
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

func (l *limited) copy(t rapid.TB) *Tree {
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

// TestLimit_Sessions: there are as many sessions as have room in the state, and in a full state as
// many as are kept for them.
func TestLimit_Sessions(t *testing.T) {
	body := (&CreateSessionBody{TimeoutMs: 1000}).Append(nil)
	for _, c := range []struct{ limit, data, want int }{
		{1, 1000, 1000}, {2_000_000, 1000, (2_000_000 - 2000) / sessionCost}, {20_000_000, 20_000_000, 1_000_000 / sessionCost},
	} {
		l := &limited{tree: New(Options{})}
		l.createAt("/d", make([]byte, c.data))
		l.tree.replaceLimit(Limit{Weight: int64(c.limit), Cause: LimitedByDisk, Member: 1})
		n := 0
		for l.apply(proto.OpCreateSession, body).Err == proto.OK {
			n++
		}
		if res := l.apply(proto.OpCreateSession, body); n != c.want || res.Err != proto.ErrQuotaExceeded || !res.Full || len(l.tree.sessions) != n {
			t.Errorf("%+v: %d sessions, then %+v", c, len(l.tree.sessions), res)
		}
	}
}

// TestLimit_IsTheLastReason: what would be refused if there were room is refused for the same
// reason in a full state, and the server of the client leaves it to Apply.
func TestLimit_IsTheLastReason(t *testing.T) {
	const session, local = proto.SessionID(0x100000000000001), proto.SessionID(0)
	l := &limited{tree: New(Options{})}
	attach := CreateSessionBody{TimeoutMs: 1000}
	epoch := l.tree.LastZxid() + 1
	if res, _ := l.tree.Apply(Header{Zxid: epoch}, &Request{Session: session, Op: proto.OpCreateSession, Body: attach.Append(nil)}); res.Err != proto.OK {
		t.Fatal(res.Err)
	}
	create := func(c proto.CreateRequest, ops ...proto.OpCode) Request {
		op := append(ops, proto.OpCreate)[0]
		if c.ACL == nil {
			c.ACL = proto.OpenACL()
		}
		return Request{Session: session, ConnEpoch: epoch, Op: op, Body: c.Append(nil, op)}
	}
	with := func(r Request, change func(r *Request)) Request { change(&r); return r }
	set := func(path string, bytes int, version int32) Request {
		r := proto.SetDataRequest{Path: path, Data: make([]byte, bytes), Version: version}
		return Request{Session: session, ConnEpoch: epoch, Op: proto.OpSetData, Body: r.Append(nil)}
	}
	long := []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "ip", ID: "10.0.0.1"}}}
	for _, r := range []Request{
		create(proto.CreateRequest{Path: "/d", Data: []byte("data")}),
		create(proto.CreateRequest{Path: "/d/there"}),
		create(proto.CreateRequest{Path: "/locked", ACL: proto.ReadACL()}),
		create(proto.CreateRequest{Path: "/ephemeral", Mode: proto.ModeEphemeral}),
		create(proto.CreateRequest{Path: "/q"}),
		create(proto.CreateRequest{Path: "/zookeeper/quota/q"}),
		create(proto.CreateRequest{Path: "/zookeeper/quota/q/zookeeper_limits", Data: []byte("count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=1")}),
		create(proto.CreateRequest{Path: "/zookeeper/quota/q/zookeeper_stats"}),
	} {
		if res, _ := l.tree.Apply(Header{Zxid: l.tree.LastZxid() + 1}, &r); res.Err != proto.OK {
			t.Fatal(res)
		}
	}
	free := func(r *Request) Result {
		twin := &limited{tree: l.copy(t)}
		twin.tree.replaceLimit(Limit{})
		twin.tree.mostZnodes = l.tree.mostZnodes
		res, _ := twin.tree.Apply(Header{Zxid: twin.tree.LastZxid() + 1}, r)
		return res
	}
	for _, c := range []struct {
		name string
		r    Request
		want proto.ErrCode // without a limit
	}{
		{"create", create(proto.CreateRequest{Path: "/d/new"}), proto.OK},
		{"sequential", create(proto.CreateRequest{Path: "/d/new-", Mode: proto.ModePersistentSequential}), proto.OK},
		{"allowed where others are not", with(create(proto.CreateRequest{Path: "/locked/x"}), func(r *Request) { r.Flags = FlagSkipACL }), proto.OK},
		{"set", set("/d", 100, -1), proto.OK},
		{"no permission", create(proto.CreateRequest{Path: "/locked/x"}), proto.ErrNoAuth},
		{"no list", create(proto.CreateRequest{Path: "/d/new", ACL: []proto.ACL{}}), proto.ErrInvalidACL},
		{"no such scheme", create(proto.CreateRequest{Path: "/d/new", ACL: []proto.ACL{{ID: proto.ID{Scheme: "none"}}}}), proto.ErrInvalidACL},
		{"exists", create(proto.CreateRequest{Path: "/d/there"}), proto.ErrNodeExists},
		{"no parent", create(proto.CreateRequest{Path: "/none/x"}), proto.ErrNoNode},
		{"no path", create(proto.CreateRequest{Path: "/d/../x"}), proto.ErrNoNode},
		{"invalid path", create(proto.CreateRequest{Path: "/d/.."}), proto.ErrBadArguments},
		{"null path", create(proto.CreateRequest{NullPath: true}), proto.ErrMarshallingError},
		{"below an ephemeral", create(proto.CreateRequest{Path: "/ephemeral/x"}), proto.ErrNoChildrenForEphemerals},
		{"ephemeral of a local session", with(create(proto.CreateRequest{Path: "/d/new", Mode: proto.ModeEphemeral}), func(r *Request) { r.Session = local }), proto.ErrEphemeralOnLocalSession},
		{"unknown mode", create(proto.CreateRequest{Path: "/d/new", Mode: 99}), proto.ErrBadArguments},
		{"no time to live", create(proto.CreateRequest{Path: "/d/new", Mode: proto.ModePersistentTTL}, proto.OpCreateTTL), proto.ErrBadArguments},
		{"times to live are off", with(create(proto.CreateRequest{Path: "/d/new", Mode: proto.ModePersistentTTL, TTL: 1}, proto.OpCreateTTL), func(r *Request) { r.Flags = FlagRefuseTTL }), proto.ErrUnimplemented},
		{"data too long", with(create(proto.CreateRequest{Path: "/d/new", Data: make([]byte, 1000)}), func(r *Request) { r.MaxBuffer = 900 }), proto.ErrMarshallingError},
		{"list of children too long", with(create(proto.CreateRequest{Path: "/d/new"}), func(r *Request) { r.MaxBuffer = 100 }), proto.ErrMarshallingError},
		{"list of ACLs too long", with(create(proto.CreateRequest{Path: "/d/new", ACL: long}), func(r *Request) { r.MaxBuffer = 109 }), proto.ErrMarshallingError},
		{"set of too much", with(set("/d", 1000, -1), func(r *Request) { r.MaxBuffer = 900 }), proto.ErrMarshallingError},
		{"set of another version", set("/d", 1000, 7), proto.ErrBadVersion},
		{"session over", with(create(proto.CreateRequest{Path: "/d/new"}), func(r *Request) { r.Session++ }), proto.ErrSessionExpired},
		{"session elsewhere", with(create(proto.CreateRequest{Path: "/d/new"}), func(r *Request) { r.ConnEpoch++ }), proto.ErrSessionMoved},
		{"quota", with(create(proto.CreateRequest{Path: "/q/x"}), func(r *Request) { r.Flags = FlagEnforceQuota }), proto.ErrQuotaExceeded},
		{"most znodes", create(proto.CreateRequest{Path: "/d/new"}), proto.ErrSystemError},
	} {
		l.tree.mostZnodes = maxZnodes
		if c.want == proto.ErrSystemError {
			l.tree.mostZnodes = l.tree.index.len()
		}
		l.tree.replaceLimit(Limit{Weight: l.tree.Weight(), Cause: LimitedByMemory, Member: 1})
		if res := free(&c.r); res.Err != c.want || res.Full {
			t.Errorf("%s: %v without a limit, want %v", c.name, res.Err, c.want)
		}
		want := c.want
		if want == proto.OK {
			want = proto.ErrQuotaExceeded
		}
		for _, when := range []string{"first", "full"} {
			if when == "first" && l.tree.RefusesGrowth(&c.r, 0) {
				t.Errorf("%s: refused before Apply, and the state is not full yet", c.name)
			}
			if when == "full" {
				l.tree.replaceLimit(Limit{Weight: l.tree.Weight(), Cause: LimitedByMemory, Member: 1, Full: true})
				if early, may := l.tree.RefusesGrowth(&c.r, 0), c.r.Op != proto.OpSetData && c.want == proto.OK; early != may {
					t.Errorf("%s: refused before Apply: %v", c.name, early)
				}
				head := c.r
				d := jute.NewDecoder(head.Body)
				_, _ = d.String(), d.Int()
				missing := d.Remaining()
				head.Body = head.Body[:len(head.Body)-missing]
				unseen := []string{"no list", "no such scheme", "list of ACLs too long", "ephemeral of a local session", "unknown mode", "no time to live", "times to live are off"}
				if early, may := l.tree.RefusesGrowth(&head, missing), c.r.Op != proto.OpSetData && c.want == proto.OK || slices.Contains(unseen, c.name); early != may {
					t.Errorf("%s: refused by its head: %v", c.name, early)
				}
			}
			if res, _ := l.tree.Apply(Header{Zxid: l.tree.LastZxid() + 1}, &c.r); res.Err != want || res.Full != (c.want == proto.OK) {
				t.Errorf("%s: %v, want %v; because it is full: %v (%s)", c.name, res.Err, want, res.Full, when)
			}
		}
	}
}

// TestLimit_LeftToApply: a server refuses nothing but a whole create before Apply, however full the
// state is.
func TestLimit_LeftToApply(t *testing.T) {
	l := &limited{tree: New(Options{})}
	l.tree.replaceLimit(Limit{Weight: 1, Cause: LimitedByMemory, Member: 1, Full: true})
	create := (&proto.CreateRequest{Path: "/x", ACL: proto.OpenACL()}).Append(nil, proto.OpCreate)
	for name, c := range map[string]struct {
		r    Request
		want bool
	}{
		"a create":                 {Request{Op: proto.OpCreate, Body: create}, true},
		"a create that is cut off": {Request{Op: proto.OpCreate, Body: create[:len(create)-1]}, false},
		"another request":          {Request{Op: proto.OpSetData, Body: create}, false},
	} {
		if got := l.tree.RefusesGrowth(&c.r, 0); got != c.want {
			t.Errorf("%s is refused before Apply: %v", name, got)
		}
	}
	open := (&proto.SetACLRequest{Path: "/", ACL: append(proto.OpenACL(), proto.ACL{Perms: 1, ID: proto.ID{Scheme: "ip", ID: "127.0.0.1"}}), Version: -1}).Append(nil)
	if res := l.apply(proto.OpSetACL, open); res.Err != proto.ErrQuotaExceeded || !res.Full {
		t.Errorf("an ACL that grows: %+v", res)
	}
}

// TestLimit_Set: the leader of the present epoch sets the limit; a client, an earlier leader and a
// body that is no limit change nothing. The state is full if it weighs more than the limit, and
// remains full until it has shrunk.
func TestLimit_Set(t *testing.T) {
	l := &limited{tree: New(Options{})}
	l.createAt("/d", make([]byte, 100_000))
	client := l.apply(proto.OpCreateSession, (&CreateSessionBody{TimeoutMs: 1000}).Append(nil)).SessionID
	weight := l.tree.Weight()
	body := func(weight int64, epoch uint32) []byte {
		l := Limit{Weight: weight, Cause: LimitedByMemory, Member: 1}
		if weight == 0 {
			l = Limit{}
		}
		return SetLimitBody{Limit: l, Epoch: epoch}.Append(nil)
	}
	set := func(session proto.SessionID, body []byte) proto.ErrCode {
		r := Request{Op: proto.OpSetLimit, Session: session, Body: body}
		if session != 0 {
			r.ConnEpoch = l.tree.sessions[session].rec.connEpoch
		}
		res, _ := l.tree.Apply(Header{Zxid: l.tree.LastZxid() + 1}, &r)
		return res.Err
	}
	invalid := SetLimitBody{Limit: Limit{Weight: -1, Cause: LimitedByMemory, Member: 1}}.Append(nil)
	for name, c := range map[string]struct {
		session proto.SessionID
		body    []byte
		want    proto.ErrCode
	}{
		"a client": {client, body(1, 0), proto.ErrUnimplemented}, "another epoch": {0, body(1, 1), proto.ErrBadVersion},
		"cut off": {0, body(1, 0)[:2], proto.ErrMarshallingError}, "too long": {0, append(body(1, 0), 0), proto.ErrMarshallingError},
		"no limit": {0, invalid, proto.ErrMarshallingError},
	} {
		if code := set(c.session, c.body); code != c.want || l.tree.Limit() != (Limit{}) {
			t.Errorf("%s: %v, want %v; the limit is %+v", name, code, c.want, l.tree.Limit())
		}
	}
	for _, c := range []struct {
		limit int64
		full  bool
	}{{weight, false}, {weight - 1, true}, {weight + 1, true}, {2 * weight, false}, {0, false}} {
		if code := set(0, body(c.limit, 0)); code != proto.OK || l.tree.Limit().Weight != c.limit || l.tree.Limit().Full != c.full {
			t.Errorf("a limit of %d bytes for %d: %v, %+v", c.limit, weight, code, l.tree.Limit())
		}
	}
}

// TestLimit_StatsAreNoGrowth: versions and zxids take more bytes as they rise. That is no reason to
// refuse what adds no data, alone or in a multi.
func TestLimit_StatsAreNoGrowth(t *testing.T) {
	l := &limited{tree: New(Options{})}
	for _, path := range []string{"/a", "/b"} {
		if res := l.createAt(path, []byte("100")); res.Err != proto.OK {
			t.Fatal(res.Err)
		}
	}
	l.setLimit(Limit{Weight: 1, Cause: LimitedByMemory, Member: 1})
	set := func(path string) proto.MultiOp {
		return proto.MultiOp{Op: proto.OpSetData, Path: path, Data: []byte("100"), Version: -1}
	}
	for n := range 9000 {
		transfer := proto.MultiRequest{Ops: []proto.MultiOp{set("/a"), set("/b")}}
		replace := proto.MultiRequest{Ops: []proto.MultiOp{
			{Op: proto.OpDelete, Path: "/b", Version: -1}, {Op: proto.OpCreate, Path: "/b", Data: []byte("100"), ACL: proto.OpenACL()},
		}}
		for what, multi := range map[string]proto.MultiRequest{"two sets": transfer, "a replacement": replace} {
			if res := l.apply(proto.OpMulti, multi.Append(nil)); res.Err != proto.OK || res.MultiFailed {
				t.Fatalf("%d: %s: %v, failed: %v", n, what, res.Err, res.MultiFailed)
			}
		}
		if res := l.apply(proto.OpSetData, (&proto.SetDataRequest{Path: "/a", Data: []byte("100"), Version: -1}).Append(nil)); res.Err != proto.OK {
			t.Fatalf("%d: a set: %v", n, res.Err)
		}
	}
}
