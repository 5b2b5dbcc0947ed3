package datatree

import (
	"testing"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// TestApply_KnowsEveryWrite: Apply has a case for exactly the operations that the table of proto
// calls writes.
func TestApply_KnowsEveryWrite(t *testing.T) {
	for info := range proto.Ops() {
		tree := fuzzTree(t)
		r := Request{Op: info.Code, Session: fuzzSession, ConnEpoch: 1}
		switch info.Code {
		case proto.OpExpireSession, proto.OpConfigDone, proto.OpInitConfig, proto.OpDeleteContainer, proto.OpSetLimit: // proposed by servers
			r.Session = 0
		}
		res, _ := tree.Apply(Header{Zxid: tree.LastZxid() + 1}, &r)
		if known := res.Err != proto.ErrUnimplemented; known != info.Write {
			t.Errorf("%s: applied with %v, and Write is %v", info.Name, res.Err, info.Write)
		}
	}
}

// A request of a server that nobody can carry out is refused: a panic would stop all members.
func TestDeleteContainer_Bodies(t *testing.T) {
	l := &limited{tree: New(Options{})}
	path := "/c"
	l.apply(proto.OpCreateContainer, (&proto.CreateRequest{Path: path, ACL: proto.OpenACL()}).Append(nil, proto.OpCreateContainer))
	whole := DeleteContainerBody{path, l.tree.LastZxid()}.Append(nil)
	for name, c := range map[string]struct {
		body []byte
		want proto.ErrCode
	}{
		"no body":            {nil, proto.ErrMarshallingError},
		"a part of a path":   {whole[:5], proto.ErrMarshallingError},
		"a part of the zxid": {whole[:7], proto.ErrMarshallingError},
		"no path":            {append((&proto.PathRequest{}).Append(nil), make([]byte, 8)...), proto.ErrBadArguments},
		"no zxid":            {whole[:6], proto.ErrMarshallingError},
		"a path after a NUL": {DeleteContainerBody{Path: "\x00/c"}.Append(nil), proto.ErrBadArguments},
	} {
		if res := l.apply(proto.OpDeleteContainer, c.body); res.Err != c.want {
			t.Errorf("%s: %v, want %v", name, res.Err, c.want)
		}
	}
	if res := l.apply(proto.OpDeleteContainer, whole); res.Err != proto.OK {
		t.Errorf("the whole body: %v", res.Err)
	}
}

// A client with a local session gets a global one for the creates that need it, alone and in a
// multi.
func TestCreatesEphemeral(t *testing.T) {
	for _, c := range []struct {
		op   proto.OpCode
		mode proto.CreateMode
		want bool
	}{
		{proto.OpCreate, proto.ModeEphemeral, true}, {proto.OpCreate2, proto.ModeEphemeralSequential, true},
		{proto.OpCreate, proto.ModePersistent, false}, {proto.OpCreate2, 99, false},
		{proto.OpCreateContainer, proto.ModeEphemeral, false},
	} {
		create := proto.CreateRequest{Path: "/a", Mode: c.mode}
		body := create.Append(nil, c.op)
		multi := (&proto.MultiRequest{Ops: []proto.MultiOp{
			{Op: proto.OpCheck, Path: "/", Version: -1}, {Op: c.op, Path: "/a", Mode: c.mode},
		}}).Append(nil)
		if alone, inMulti := CreatesEphemeral(c.op, body), CreatesEphemeral(proto.OpMulti, multi); alone != c.want || inMulti != c.want {
			t.Errorf("%v with mode %v: %v, in a multi %v", c.op, c.mode, alone, inMulti)
		}
		if CreatesEphemeral(c.op, body[:len(body)-1]) || CreatesEphemeral(proto.OpMulti, multi[:len(multi)-1]) {
			t.Errorf("%v with mode %v, cut off", c.op, c.mode)
		}
	}
	check := (&proto.MultiRequest{Ops: []proto.MultiOp{{Op: proto.OpDelete, Path: "/a"}}}).Append(nil)
	if CreatesEphemeral(proto.OpMulti, check) || CreatesEphemeral(proto.OpSetData, nil) {
		t.Error("a request without a create")
	}
}

// A session id in use is refused, and so is a password of another length, whatever it begins with.
func TestCreateSession_Refused(t *testing.T) {
	const id = proto.SessionID(7)<<56 | 1
	tree, zxid := New(Options{}), proto.Zxid(0)
	apply := func(op proto.OpCode, body []byte) Result {
		zxid++
		res, _ := tree.Apply(Header{Zxid: zxid}, &Request{Op: op, Session: id, ConnEpoch: 1, Body: body})
		return res
	}
	own, other := CreateSessionBody{TimeoutMs: 1000, Passwd: [16]byte{1}}, CreateSessionBody{TimeoutMs: 1000, Passwd: [16]byte{2}}
	if res := apply(proto.OpCreateSession, own.Append(nil)); res.Err != proto.OK {
		t.Fatal(res.Err)
	}
	if res := apply(proto.OpCreateSession, other.Append(nil)); res.Err != proto.ErrSessionExpired || res.Why == "" {
		t.Errorf("a second session of the same id: %+v", res)
	}
	for _, bytes := range []int{0, 15, 17} {
		body := jute.AppendBuffer(jute.AppendInt(nil, 1000), append(own.Passwd[:], 0)[:bytes])
		if res := apply(proto.OpReattachSession, body); res.Err != proto.ErrMarshallingError {
			t.Errorf("a password of %d bytes: %v", bytes, res.Err)
		}
	}
	if res := apply(proto.OpReattachSession, other.Append(nil)); res.Err != proto.ErrAuthFailed {
		t.Errorf("the password of the refused session: %v", res.Err)
	}
	if res := apply(proto.OpReattachSession, own.Append(nil)); res.Err != proto.OK {
		t.Errorf("the password: %v", res.Err)
	}
}

// TestReconfig_Order: ZooKeeper refuses wrong arguments before it asks for permission. What only
// gozkd refuses, it refuses afterwards. The log says why, unless a stranger asks.
func TestReconfig_Order(t *testing.T) {
	for _, c := range []struct {
		what, joining string
		flags         RequestFlags
		want          proto.ErrCode
	}{
		{"wrong arguments without permission", "server.4=", 0, proto.ErrBadArguments},
		{"a number that is too high, without permission", "server.999=h4:1:2;4", 0, proto.ErrNoAuth},
		{"a number that is too high", "server.999=h4:1:2;4", FlagSkipACL, proto.ErrBadArguments},
		{"no permission", "server.4=h4:1:2;4", 0, proto.ErrNoAuth},
		{"a member", "server.4=h4:1:2;4", FlagSkipACL, proto.OK},
		{"no line", "4", FlagSkipACL, proto.ErrBadArguments},
		{"an address of another", fuzzMember + ",server.4=h3:1:2;3", FlagSkipACL, proto.ErrBadArguments},
		{"two addresses", "server.4=h4:1:2|h5:1:2;4", FlagSkipACL, proto.ErrBadArguments},
		{"two addresses, which are enabled", "server.4=h4:1:2|h5:1:2;4", FlagSkipACL | FlagMultiAddress, proto.OK},
	} {
		tree := fuzzEnsemble(t)
		pending, _ := tree.PendingConfig()
		for _, r := range []Request{
			{Op: proto.OpConfigDone, Body: ConfigDoneBody{Serial: pending.Serial}.Append(nil)},
			{Op: proto.OpReconfig, Flags: c.flags, Body: (&proto.ReconfigRequest{Joining: &c.joining, ConfigID: -1}).Append(nil)},
		} {
			res, _ := tree.Apply(Header{tree.LastZxid() + 1, 0}, &r)
			if _, pending := tree.PendingConfig(); r.Op == proto.OpReconfig && (res.Err != c.want || pending != (res.Err == proto.OK)) {
				t.Errorf("%s: %v, pending %v, want %v", c.what, res.Err, pending, c.want)
			}
			if said, want := res.Why != "", c.flags != 0 && c.want != proto.OK; r.Op == proto.OpReconfig && said != want {
				t.Errorf("%s: the reason is %q", c.what, res.Why)
			}
		}
	}
}
