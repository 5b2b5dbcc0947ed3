package datatree_test

import (
	"strings"
	"testing"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
)

// All ephemerals are returned for a prefix that Java's trim makes empty or "/": it removes the
// characters up to the space, and no other blanks.
func TestEphemerals_Prefix(t *testing.T) {
	tree := datatree.New(datatree.Options{})
	apply := func(r datatree.Request) datatree.Result {
		t.Helper()
		res, _ := tree.Apply(datatree.Header{Zxid: tree.LastZxid().Next(), TimeMs: 1}, &r)
		if res.Err != proto.OK {
			t.Fatal(res.Err)
		}
		return res
	}
	session := apply(datatree.Request{Op: proto.OpCreateSession, Server: 1, Body: (&datatree.CreateSessionBody{TimeoutMs: 1}).Append(nil)})
	body := (&proto.CreateRequest{Path: "/e", ACL: proto.OpenACL(), Mode: proto.ModeEphemeral}).Append(nil, proto.OpCreate)
	apply(datatree.Request{Op: proto.OpCreate, Session: session.SessionID, ConnEpoch: session.Zxid, Body: body})
	for prefix, want := range map[string]int{
		"": 1, " \t\r\n": 1, "\x00\x1f": 1, "/": 1, " /\n": 1, "\x00/": 1, "/e": 1,
		" /e": 0, "e": 0, "/f": 0, "\u00a0": 0, "\u2003": 0, "\u00a0/": 0, "\x7f": 0, "!": 0, "!/": 0,
	} {
		if got := tree.Ephemerals(session.SessionID, &prefix); len(got) != want {
			t.Errorf("prefix %q: %q, want %d", prefix, got, want)
		}
	}
}

// Reads of the same znodes agree with each other.
func TestReads(t *testing.T) {
	secret := []proto.ACL{{Perms: proto.PermAdmin, ID: proto.ID{Scheme: "digest", ID: "me:h"}}}
	me := datatree.Caller{IDs: []proto.ID{secret[0].ID}}
	tree := datatree.New(datatree.Options{})
	for _, r := range []proto.CreateRequest{
		{Path: "/a", Data: []byte("data"), ACL: proto.OpenACL()}, {Path: "/a/b", ACL: proto.OpenACL()}, {Path: "/a/b/name", ACL: proto.OpenACL()}, {Path: "/s", ACL: secret},
	} {
		body := r.Append(nil, proto.OpCreate)
		if res, _ := tree.Apply(datatree.Header{Zxid: tree.LastZxid().Next(), TimeMs: 1}, &datatree.Request{Op: proto.OpCreate, Body: body}); res.Err != proto.OK {
			t.Fatal(res.Err)
		}
	}
	for _, c := range []struct {
		op     proto.OpCode
		path   string
		caller datatree.Caller
		want   int
	}{
		{proto.OpGetData, "/a", me, len("data")}, {proto.OpGetData, "/s", me, 0}, {proto.OpGetData, "/x", me, 0},
		{proto.OpGetChildren, "/a", me, 4 + len("b")}, {proto.OpGetChildren, "/", me, 3*4 + len("zookeeper") + 2}, {proto.OpGetChildren, "/a/b/name", me, 0}, {proto.OpGetChildren, "/s", me, 0},
		{proto.OpGetACL, "/a", me, 0}, {proto.OpGetACL, "/s", me, 1 + 1 + 7 + 5}, {proto.OpGetACL, "/s", datatree.Caller{}, 0},
	} {
		if got := tree.ReplyBytes(c.op, c.path, c.caller); got != c.want {
			t.Errorf("%v of %s: %d bytes, want %d", c.op, c.path, got, c.want)
		}
	}
	for path, want := range map[string]int32{"": 8, "/": 7, "/a": 2, "/a/b": 1, "/a/b/name": 0} {
		if got, code := tree.AllChildrenNumber(path, me); got != want || code != proto.OK {
			t.Errorf("%q has %d descendants, want %d; %v", path, got, want, code)
		}
	}
	for _, path := range []string{"\x00", "/a\x00"} {
		if _, code := tree.Exists(path, me); code != proto.ErrBadArguments {
			t.Errorf("%q exists: %v", path, code)
		}
	}
	// A Stat is overwritten as a whole.
	_, want, _ := tree.GetData("/a", me)
	used := proto.Stat{EphemeralOwner: 1, Czxid: 2, Mzxid: 3, Pzxid: 4, CtimeMs: 5, MtimeMs: 6, Version: 7, Cversion: 8, Aversion: 9, DataLength: 10, NumChildren: 11}
	if _, code := tree.ReadData("/a", &me, &used); code != proto.OK || used != want {
		t.Errorf("%+v, want %+v; %v", used, want, code)
	}
	// The memory for a list is allocated at once, with room for the Stat.
	for i := range 300 {
		path := "/a/" + strings.Repeat("x", i+10)
		body := (&proto.CreateRequest{Path: path, ACL: proto.OpenACL()}).Append(nil, proto.OpCreate)
		tree.Apply(datatree.Header{Zxid: tree.LastZxid().Next(), TimeMs: 1}, &datatree.Request{Op: proto.OpCreate, Body: body})
	}
	if b, _, _ := tree.AppendChildren(nil, "/a", me); cap(b) < len(b)+proto.StatBytes || cap(b) > len(b)*9/8 {
		t.Errorf("%d bytes for a list of %d", cap(b), len(b))
	}
}
