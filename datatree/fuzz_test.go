package datatree

import (
	"bytes"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/gozkd/gozkd/proto"
)

// FuzzDecodeRequest: arbitrary bytes never cause a panic, neither in DecodeRequest nor in Apply,
// and leave a sound tree.
func FuzzDecodeRequest(f *testing.F) {
	create := (&proto.CreateRequest{Path: "/fuzz/x", Data: []byte("d"), ACL: proto.OpenACL(), Mode: 3}).Append(nil, proto.OpCreate)
	multi := (&proto.MultiRequest{Ops: []proto.MultiOp{
		{Op: proto.OpCreate2, Path: "/fuzz/y", ACL: proto.ReadACL()},
		{Op: proto.OpSetData, Path: "/fuzz", Version: 3},
		{Op: proto.OpDelete, Path: "/fuzz/x", Version: -1},
	}}).Append(nil)
	setACL := (&proto.SetACLRequest{Path: "/fuzz", ACL: proto.OpenACL(), Version: -1}).Append(nil)
	for op, body := range map[proto.OpCode][]byte{
		proto.OpCreate: create, proto.OpMulti: multi, proto.OpSetACL: setACL, proto.OpCloseSession: nil,
		proto.OpExpireSession: ExpireSessionBody{}.Append(nil), proto.OpReconfig: (&proto.ReconfigRequest{Joining: &fuzzMember, ConfigID: -1}).Append(nil),
		proto.OpCreateSession: (&CreateSessionBody{TimeoutMs: 1}).Append(nil),
	} {
		r := Request{Op: op, Session: fuzzSession, ConnEpoch: 1, IDs: []proto.ID{{Scheme: "digest", ID: "u:h"}}, Body: body}
		f.Add(r.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeRequest(b, Identities{})
		if refused := ValidateRequest(b); err != nil && refused == nil || err == nil && (refused == nil) != r.Op.Info().Write {
			t.Fatalf("ValidateRequest returns %v, DecodeRequest returns %+v, %v", refused, r, err)
		}
		if err != nil {
			return
		}
		again, err := decodeRequest(r.Append(nil), Identities{})
		if err != nil || again.Op != r.Op || again.Session != r.Session || again.ConnEpoch != r.ConnEpoch ||
			again.MaxBuffer != r.MaxBuffer || len(again.IDs) != len(r.IDs) || !bytes.Equal(again.Body, r.Body) {
			t.Fatalf("%+v, again %+v: %v", r, again, err)
		}
		tree := fuzzTree(t)
		applyTwice(t, tree, &r)
	})
}

// ValidateRequest knows the operations that Apply knows, and allocates nothing.
func TestValidateRequest_KnowsTheOperations(t *testing.T) {
	for op := proto.OpCode(-200); op < 300; op++ {
		r := Request{Op: op, IDs: []proto.ID{{Scheme: "digest", ID: "u:h"}}}
		b := r.Append(nil)
		tree := New(Options{})
		res, _ := tree.Apply(Header{tree.LastZxid() + 1, 1}, &r)
		if err := ValidateRequest(b); (err == nil) != (res.Err != proto.ErrUnimplemented) {
			t.Errorf("operation %d: Apply returns %v, ValidateRequest %v", op, res.Err, err)
		}
	}
	r := Request{Op: proto.OpCreate, IDs: []proto.ID{{Scheme: "digest", ID: "u:h"}}, Body: make([]byte, 100)}
	b := r.Append(nil)
	if n := testing.AllocsPerRun(10, func() { _ = ValidateRequest(b) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	short := Request{Op: proto.OpCreate, IDs: make([]proto.ID, 9)} // two bytes each
	if again, err := decodeRequest(short.Append(nil), Identities{}); err != nil || len(again.IDs) != len(short.IDs) {
		t.Errorf("identities without text: %+v, %v", again, err)
	}
	zero := CommittedRequest([]byte{0xff}, nil)
	tree := New(Options{})
	if res, _ := tree.Apply(Header{tree.LastZxid() + 1, 1}, &zero); res.Err != proto.ErrUnimplemented {
		t.Errorf("a record that cannot be decoded: %v", res.Err)
	}
}

// FuzzApply is the same for the part that clients send: the body of each operation.
func FuzzApply(f *testing.F) {
	f.Add(int32(proto.OpCreate), (&proto.CreateRequest{Path: "/fuzz/x", ACL: proto.OpenACL()}).Append(nil, proto.OpCreate))
	f.Add(int32(proto.OpSetData), (&proto.SetDataRequest{Path: "/fuzz", Version: -1}).Append(nil))
	f.Add(int32(proto.OpReconfig), (&proto.ReconfigRequest{Joining: &fuzzMember, ConfigID: -1}).Append(nil))
	f.Add(int32(proto.OpReconfig), (&proto.ReconfigRequest{NewMembers: &fuzzMember, ConfigID: 5}).Append(nil))
	f.Fuzz(func(t *testing.T, op int32, body []byte) {
		tree := fuzzTree(t)
		applyTwice(t, tree, &Request{Op: proto.OpCode(op), Session: fuzzSession, ConnEpoch: 1, Body: body})
	})
}

// FuzzReconfig is the same for arbitrary lists of members, those of initConfig and those of a
// client's reconfig. What is accepted survives a checkpoint, both while it is pending and after.
func FuzzReconfig(f *testing.F) {
	f.Add("server.1=h1:1:2\nserver.2=h2:1:2", "server.3=h3:1:2;3", "1", "")
	f.Add("server.1=h1:1:2", "", "", "server.1=[::1]:1:2:observer,server.254=h:1:2;h:3,server.2=h2:1:2")
	f.Fuzz(func(t *testing.T, first, joining, leaving, full string) {
		tree, s := fuzzTree(t), make(store)
		s.merge(t, tree.Capture())
		apply := func(op proto.OpCode, body []byte) {
			tree.Apply(Header{tree.LastZxid() + 1, 1}, &Request{Op: op, Flags: FlagSkipACL, Body: body})
			s.verify(t, tree)
			if p, ok := tree.PendingConfig(); ok {
				tree.Apply(Header{tree.LastZxid() + 1, 1}, &Request{Op: proto.OpConfigDone, Body: ConfigDoneBody{Serial: p.Serial}.Append(nil)})
				s.verify(t, tree)
			}
		}
		apply(proto.OpInitConfig, []byte(first))
		apply(proto.OpInitConfig, []byte("server.1=h1:1:2\nserver.2=h2:1:2"))
		apply(proto.OpReconfig, (&proto.ReconfigRequest{Joining: &joining, Leaving: &leaving, ConfigID: -1}).Append(nil))
		apply(proto.OpReconfig, (&proto.ReconfigRequest{NewMembers: &full, ConfigID: -1}).Append(nil))
	})
}

// FuzzRestore: a checkpoint with any value at any key either restores to a sound tree or is
// refused, also if the meta record agrees with it: whoever can compute the digest can forge it.
func FuzzRestore(f *testing.F) {
	s := make(store)
	tree := fuzzEnsemble(f)
	s.merge(f, tree.Capture())
	for key, value := range s.sorted {
		f.Add(bytes.Clone(key), bytes.Clone(value))
	}
	f.Add([]byte("z/fuzz/e/x"), bytes.Clone(s["z/fuzz"]))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		s := make(store)
		tree := fuzzEnsemble(t)
		s.merge(t, tree.Capture())
		s[string(key)] = value
		for range 2 {
			restored, err := Restore(Options{}, s.sorted)
			if err == nil {
				if err := restored.Check(); err != nil {
					t.Fatal(err)
				}
				applyTwice(t, restored, &Request{Op: proto.OpCloseSession, Session: fuzzSession, ConnEpoch: 1})
			}
			s.agree()
		}
	})
}

// agree updates the meta record, if there is a valid one, to the other records.
func (s store) agree() {
	m, err := decodeMeta(s["m"])
	if err != nil {
		return
	}
	m.digest, m.numZnodes, m.numSessions = 0, 0, 0
	for key, value := range s {
		if key == "m" {
			continue
		}
		m.digest += recordDigest(key, value)
		switch {
		case len(key) > 1 && key[0] == znodePrefix:
			m.numZnodes++
		case len(key) == 9 && key[0] == sessionPrefix:
			m.numSessions++
		}
	}
	s["m"] = appendMeta(nil, m)
}

// recordDigest returns the hash of a key and its value as docs/reference/formats.md defines it.
func recordDigest(key string, value []byte) uint64 {
	return xxhash.Sum64(append(appendText(nil, key), value...))
}

const fuzzSession = 1<<56 | 1

var fuzzMember = "server.3=h3:1:2;3"

// fuzzEnsemble is a fuzzTree with two members, and a third that is pending since zxid 6.
func fuzzEnsemble(t testing.TB) *Tree {
	t.Helper()
	tree := fuzzTree(t)
	for _, r := range []Request{
		{Op: proto.OpInitConfig, Body: []byte("server.1=h1:1:2\nserver.2=h2:1:2")},
		{Op: proto.OpConfigDone, Body: ConfigDoneBody{Serial: 4}.Append(nil)},
		{Op: proto.OpReconfig, Flags: FlagSkipACL, Body: (&proto.ReconfigRequest{Joining: &fuzzMember, ConfigID: -1}).Append(nil)},
	} {
		if res, _ := tree.Apply(Header{tree.LastZxid() + 1, 0}, &r); res.Err != proto.OK {
			t.Fatalf("%v: %v", r.Op, res.Err)
		}
	}
	return tree
}

// fuzzTree has a session, a znode /fuzz and an ephemeral child of it.
func fuzzTree(t testing.TB) *Tree {
	t.Helper()
	tree := New(Options{TrackDirty: true})
	for i, r := range []Request{
		{Op: proto.OpCreateSession, Server: 1, Body: (&CreateSessionBody{TimeoutMs: 1}).Append(nil)},
		{Op: proto.OpCreate, Body: (&proto.CreateRequest{Path: "/fuzz", ACL: proto.OpenACL()}).Append(nil, proto.OpCreate)},
		{Op: proto.OpCreate, Session: fuzzSession, ConnEpoch: 1, IDs: []proto.ID{{Scheme: "digest", ID: "u:h"}},
			Body: (&proto.CreateRequest{Path: "/fuzz/e", Mode: 1, ACL: []proto.ACL{{Perms: 31, ID: proto.ID{Scheme: "auth"}}}}).Append(nil, proto.OpCreate)},
	} {
		if res, _ := tree.Apply(Header{proto.Zxid(i + 1), 0}, &r); res.Err != proto.OK {
			t.Fatalf("%v: %v", r.Op, res.Err)
		}
	}
	return tree
}

func applyTwice(t *testing.T, tree *Tree, r *Request) {
	t.Helper()
	for range 2 {
		tree.Apply(Header{tree.LastZxid() + 1, 1}, r)
		if err := tree.Check(); err != nil {
			t.Fatal(err)
		}
	}
}
