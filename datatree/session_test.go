package datatree

import (
	"testing"

	"github.com/gozkd/gozkd/proto"
)

// The tree itself refuses every other password, also if the server that proposes does not.
func TestReattach_Passwords(t *testing.T) {
	l := &limited{tree: New(Options{})}
	right := CreateSessionBody{TimeoutMs: 5000, Passwd: [proto.PasswdBytes]byte{1, 2, proto.PasswdBytes - 1: 3}}
	id := l.apply(proto.OpCreateSession, right.Append(nil)).SessionID
	reattach := func(body CreateSessionBody) proto.ErrCode {
		r := Request{Op: proto.OpReattachSession, Session: id, Server: 2, Body: body.Append(nil)}
		res, _ := l.tree.Apply(Header{Zxid: l.tree.LastZxid() + 1}, &r)
		return res.Err
	}
	before, _ := l.tree.Session(id)
	for name, change := range map[string]func(*CreateSessionBody){
		"zeros":               func(b *CreateSessionBody) { clear(b.Passwd[:]) },
		"another first byte":  func(b *CreateSessionBody) { b.Passwd[0]++ },
		"another last byte":   func(b *CreateSessionBody) { b.Passwd[proto.PasswdBytes-1]++ },
		"its first half only": func(b *CreateSessionBody) { clear(b.Passwd[proto.PasswdBytes/2:]) },
	} {
		wrong := right
		if change(&wrong); reattach(wrong) != proto.ErrAuthFailed {
			t.Errorf("%s: not refused", name)
		}
		if after, _ := l.tree.Session(id); after != before {
			t.Errorf("%s: the session is now %+v", name, after)
		}
	}
	if code := reattach(right); code != proto.OK {
		t.Errorf("the right password: %v", code)
	}
}
