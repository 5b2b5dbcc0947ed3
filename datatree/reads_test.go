package datatree_test

import (
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
		" /e": 0, "e": 0, "/f": 0, "\u00a0": 0, "\u2003": 0, "\u00a0/": 0, "\x7f": 0,
	} {
		if got := tree.Ephemerals(session.SessionID, &prefix); len(got) != want {
			t.Errorf("prefix %q: %q, want %d", prefix, got, want)
		}
	}
}
