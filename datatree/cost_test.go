package datatree

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/proto"
)

// longACL returns a list with n entries that do not match, and READ for id.
func longACL(n int, id proto.ID) []proto.ACL {
	list := make([]proto.ACL, 0, n+1)
	for i := range n {
		list = append(list, proto.ACL{Perms: proto.PermAll, ID: proto.ID{Scheme: "ip", ID: fmt.Sprintf("10.%d.%d.1", i>>8, i&255)}})
	}
	return append(list, proto.ACL{Perms: proto.PermRead, ID: id})
}

// put creates a znode whatever the length of its list, as an old log or checkpoint can hold it.
func put(t *testing.T, tree *Tree, path string, data []byte, list []proto.ACL) {
	t.Helper()
	r := Request{Op: proto.OpCreate, Body: (&proto.CreateRequest{Path: path, Data: data, ACL: list}).Append(nil, proto.OpCreate)}
	if res, _ := tree.Apply(Header{Zxid: tree.LastZxid() + 1}, &r); res.Err != proto.OK {
		t.Fatal(res.Err)
	}
}

// A request evaluates each list once for its caller, however often it meets the list.
func TestCost_ListIsEvaluatedOnce(t *testing.T) {
	me := proto.ID{Scheme: "digest", ID: "me:hash"}
	tree := New(Options{})
	paths := []string{"/a", "/b", "/c"}
	for i, path := range paths {
		put(t, tree, path, nil, longACL(2000+i, me))
	}
	var m proto.MultiRequest
	for i := range 3000 {
		m.Ops = append(m.Ops, proto.MultiOp{Op: proto.OpCheck, Path: paths[i%3], Version: 0})
	}
	r := Request{Op: proto.OpMulti, IDs: []proto.ID{{Scheme: "ip", ID: "192.0.2.1"}, me}, Body: m.Append(nil)}
	before := tree.known.evaluated
	if res, _ := tree.Apply(Header{Zxid: tree.LastZxid() + 1}, &r); res.Err != proto.OK || res.MultiFailed {
		t.Fatal(res)
	}
	if n := tree.known.evaluated - before; n != 3 {
		t.Errorf("a multi evaluated 3 lists %d times", n)
	}

	for i, path := range paths {
		paths[i] = path + "2"
		put(t, tree, paths[i], nil, longACL(100+i, me))
	}
	var known Decisions
	c := Caller{IDs: r.IDs, Known: &known}
	for i := range 3000 {
		if _, _, code := tree.GetData(paths[i%3], c); code != proto.OK {
			t.Fatal(code)
		}
	}
	if known.evaluated != 3 {
		t.Errorf("3000 reads evaluated 3 lists %d times", known.evaluated)
	}
	c.IDs = []proto.ID{{Scheme: "ip", ID: "192.0.2.1"}} // another client
	if _, _, code := tree.GetData("/a", c); code != proto.ErrNoAuth {
		t.Errorf("other identities get the decision of the first: %v", code)
	}
}

// What a connection remembers is small, however many lists it meets: it keeps them after the tree
// has dropped them.
func TestCost_DecisionsAreBounded(t *testing.T) {
	me := proto.ID{Scheme: "digest", ID: "me:hash"}
	for _, most := range []int{0, 100} {
		tree, known := New(Options{}), Decisions{most: most}
		c := Caller{IDs: []proto.ID{me}, Known: &known}
		for i := range 200 {
			path := fmt.Sprintf("/%d", i)
			put(t, tree, path, nil, longACL(5*i, me))
			if _, _, code := tree.GetData(path, c); code != proto.OK {
				t.Fatal(code)
			}
			kept := 0
			for list := range known.older {
				kept += len(list.key)
			}
			if kept != known.bytes || most == 0 && kept > maxDecisionBytes+MaxACLBytes || len(known.older) > max(most, fewDecisions) {
				t.Fatalf("after %d lists %d with %d bytes are kept, counted are %d", i+1, len(known.older), kept, known.bytes)
			}
		}
	}
}

// TestACL_IdentitiesInReusedMemory: requests are decoded into the same memory, so the identities of
// the next request may be where those of the last one were.
func TestACL_IdentitiesInReusedMemory(t *testing.T) {
	l := &limited{tree: New(Options{})}
	owner := proto.ID{Scheme: "digest", ID: "owner:hash"}
	l.apply(proto.OpCreate, (&proto.CreateRequest{Path: "/a", ACL: []proto.ACL{{Perms: proto.PermAll, ID: owner}}}).Append(nil, proto.OpCreate))
	ids := make([]proto.ID, 1)
	for _, c := range []struct {
		id   proto.ID
		want proto.ErrCode
	}{{owner, proto.OK}, {proto.ID{Scheme: "digest", ID: "other:hash"}, proto.ErrNoAuth}, {owner, proto.OK}} {
		ids[0] = c.id
		r := Request{Op: proto.OpSetData, IDs: ids, Body: (&proto.SetDataRequest{Path: "/a", Version: -1}).Append(nil)}
		if res, _ := l.tree.Apply(Header{Zxid: l.tree.LastZxid() + 1}, &r); res.Err != c.want {
			t.Errorf("%v writes: %v, want %v", c.id, res.Err, c.want)
		}
	}
}

// A list grants the same with and without an index, in one call and remembered, and to IPv4
// addresses in both notations.
func TestCost_DecisionsAgree(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		id := rapid.Custom(func(rt *rapid.T) proto.ID {
			switch rapid.IntRange(0, 4).Draw(rt, "kind") {
			case 0:
				return proto.ID{Scheme: "world", ID: "anyone"}
			case 1, 2:
				return proto.ID{Scheme: "digest", ID: fmt.Sprintf("u%d:h", rapid.IntRange(0, 40).Draw(rt, "user"))}
			}
			return proto.ID{Scheme: "ip", ID: fmt.Sprintf("10.0.0.%d/%d", rapid.IntRange(0, 40).Draw(rt, "host"), rapid.IntRange(26, 32).Draw(rt, "bits"))}
		})
		var list []proto.ACL
		for range rapid.IntRange(1, 3*shortACL).Draw(rt, "entries") {
			entry := proto.ACL{Perms: proto.Perms(rapid.IntRange(1, 31).Draw(rt, "perms")), ID: id.Draw(rt, "id")}
			if entry.ID.Scheme != "world" || rapid.IntRange(0, 9).Draw(rt, "world") == 0 {
				list = append(list, entry)
			}
		}
		a := newACL(string(appendACL(nil, append(list, proto.ACL{Perms: 1, ID: proto.ID{Scheme: "digest", ID: "x:x"}}))))
		none := newACL(string(appendACL(nil, []proto.ACL{{Perms: 1, ID: proto.ID{Scheme: "digest", ID: "x:x"}}})))
		var known Decisions
		for range 4 {
			ids := []proto.ID{{Scheme: "ip", ID: fmt.Sprintf(rapid.SampledFrom([]string{"10.0.0.%d", "::ffff:10.0.0.%d", "nonsense%d"}).Draw(rt, "form"), rapid.IntRange(0, 40).Draw(rt, "addr"))}}
			for range rapid.IntRange(0, 3).Draw(rt, "users") {
				ids = append(ids, proto.ID{Scheme: "digest", ID: fmt.Sprintf("u%d:h", rapid.IntRange(0, 40).Draw(rt, "who"))})
			}
			var want proto.Perms
			for _, entry := range a.list {
				for _, id := range ids {
					p, isNet := parseNet(entry.ID.ID)
					addr, isAddr := parseAddr(strings.TrimPrefix(id.ID, "::ffff:"))
					if entry.ID.Scheme == "world" || entry.ID == id || entry.ID.Scheme == "ip" && id.Scheme == "ip" && isNet && isAddr && p.Contains(addr) {
						want |= entry.Perms
					}
				}
			}
			for range 2 {
				if got := known.granted(a, ids); got != want {
					rt.Fatalf("%v to %v: %b, want %b", a.list, ids, got, want)
				}
				if got := known.granted(none, ids); got != 0 {
					rt.Fatalf("%v to %v: %b, want nothing", none.list, ids, got)
				}
			}
		}
	})
}

// Changes of a znode's children hash its large data once per request, and the digest is right
// whether the request fails or not, and if the znode is deleted by it.
func TestCost_LargeDataIsHashedOnce(t *testing.T) {
	tree := New(Options{})
	put(t, tree, "/large", make([]byte, 4*largeBytes), proto.OpenACL())
	multi := func(ops ...proto.MultiOp) (hashed int) {
		t.Helper()
		before := tree.nHashed
		r := Request{Op: proto.OpMulti, Body: (&proto.MultiRequest{Ops: ops}).Append(nil)}
		if res, _ := tree.Apply(Header{Zxid: tree.LastZxid() + 1}, &r); res.Err != proto.OK {
			t.Fatal(res.Err)
		}
		if err := tree.Check(); err != nil {
			t.Fatal(err)
		}
		return tree.nHashed - before
	}
	var creates, deletes []proto.MultiOp
	for i := range 100 {
		path := fmt.Sprintf("/large/%d", i)
		creates = append(creates, proto.MultiOp{Op: proto.OpCreate, Path: path, ACL: proto.OpenACL()})
		deletes = append(deletes, proto.MultiOp{Op: proto.OpDelete, Path: path, Version: -1})
	}
	fails := proto.MultiOp{Op: proto.OpCheck, Path: "/none"}
	remove := proto.MultiOp{Op: proto.OpDelete, Path: "/large", Version: -1}
	again := proto.MultiOp{Op: proto.OpCreate, Path: "/large", Data: make([]byte, 3*largeBytes), ACL: proto.OpenACL()}
	small := proto.MultiOp{Op: proto.OpSetData, Path: "/large", Version: -1}
	if n := multi(append(append(creates, deletes...), remove, again, fails)...); n != 0 {
		t.Errorf("a multi that failed hashed %d blobs", n)
	}
	if n := multi(creates...); n != 1 {
		t.Errorf("%d creates hashed the data of the parent %d times", len(creates), n)
	}
	multi(append(deletes, small, remove, again)...)
	multi(append(creates, deletes...)...)
	multi(append(creates, small)...)
}

// What is too expensive is refused before the log, and only that. Apply accepts the same, because
// an old log may hold it.
func TestCost_Refusal(t *testing.T) {
	users := func(n int) (ids []proto.ID) {
		for i := range n {
			ids = append(ids, proto.ID{Scheme: "digest", ID: fmt.Sprintf("user%d:hash", i)})
		}
		return ids
	}
	list := func(n int) []proto.ACL { return longACL(n-1, proto.ID{Scheme: "world", ID: "anyone"}) }
	create := func(list []proto.ACL) Request {
		return Request{Op: proto.OpCreate, Body: (&proto.CreateRequest{Path: "/a", ACL: list}).Append(nil, proto.OpCreate)}
	}
	multi := func(n int, op proto.MultiOp) Request {
		var m proto.MultiRequest
		for range n {
			m.Ops = append(m.Ops, op)
		}
		return Request{Op: proto.OpMulti, Body: m.Append(nil)}
	}
	ownList := func(n int) Request {
		m := proto.MultiRequest{Ops: []proto.MultiOp{{Op: proto.OpCreate, Path: "/own", ACL: list(MaxACLEntries)}}}
		for range n {
			m.Ops = append(m.Ops, proto.MultiOp{Op: proto.OpSetData, Path: "/own", Version: -1})
		}
		return Request{Op: proto.OpMulti, Body: m.Append(nil)}
	}
	auth := create([]proto.ACL{{Perms: 1, ID: proto.ID{Scheme: "auth"}}, {Perms: 2, ID: proto.ID{Scheme: "auth"}}})
	withUsers := func(r Request, n int) Request { r.IDs = users(n); return r }
	tree := New(Options{})
	put(t, tree, "/plain", nil, proto.OpenACL())
	put(t, tree, "/old", nil, list(36_000))
	child := func(parent string) proto.MultiOp {
		return proto.MultiOp{Op: proto.OpCreate, Path: parent + "/child-", Mode: proto.ModePersistentSequential, ACL: proto.OpenACL()}
	}
	for _, c := range []struct {
		what string
		r    Request
		want proto.ErrCode
	}{
		{"as many entries as allowed", create(list(MaxACLEntries)), proto.OK},
		{"an entry too many", create(list(MaxACLEntries + 1)), proto.ErrInvalidACL},
		{"a long id", create([]proto.ACL{{Perms: 1, ID: proto.ID{Scheme: "digest", ID: strings.Repeat("u", MaxACLBytes) + ":h"}}}), proto.ErrInvalidACL},
		{"an entry too many in a setACL", Request{Op: proto.OpSetACL, Body: (&proto.SetACLRequest{Path: "/a", ACL: list(MaxACLEntries + 1)}).Append(nil)}, proto.ErrInvalidACL},
		{"an entry too many in a multi", multi(1, proto.MultiOp{Op: proto.OpCreate, Path: "/a", ACL: list(MaxACLEntries + 1)}), proto.ErrInvalidACL},
		{"auth for few users", withUsers(auth, MaxACLEntries/2), proto.OK},
		{"auth for many users", withUsers(auth, MaxACLEntries/2+1), proto.ErrInvalidACL},
		{"large data", Request{Op: proto.OpCreate, Body: (&proto.CreateRequest{Path: "/a", Data: make([]byte, 900_000), ACL: proto.OpenACL()}).Append(nil, proto.OpCreate)}, proto.OK},
		{"as many checks as a frame holds", multi(50_000, proto.MultiOp{Op: proto.OpCheck, Path: "/old"}), proto.OK},
		{"as many creates as a frame holds", multi(17_000, child("/plain")), proto.OK},
		{"many creates below a long list", multi(17_000, child("/old")), proto.ErrMarshallingError},
		{"some creates below a long list", multi(50, child("/old")), proto.OK},
		{"many changes of a znode that the multi makes", ownList(30_000), proto.ErrMarshallingError},
		{"no multi", Request{Op: proto.OpMulti, Body: make([]byte, 20_000)}, proto.OK},
	} {
		if code, why := tree.Refusal(&c.r, 1<<20-1); code != c.want || (code == proto.OK) != (why == "") {
			t.Errorf("%s: %v %q, want %v", c.what, code, why, c.want)
		}
	}
	for _, r := range []Request{create(list(MaxACLEntries + 1)), multi(50, child("/old"))} {
		r.Flags = FlagSkipACL
		if res, _ := tree.Apply(Header{Zxid: tree.LastZxid() + 1}, &r); res.Err != proto.OK || res.MultiFailed {
			t.Errorf("Apply refuses a %v: %v", r.Op, res.Err)
		}
	}
}
