package faultproxy

import (
	"strings"
	"testing"

	"github.com/gozkd/gozkd/proto"
)

// named are the Ops with a constant, except OpAny.
var named = []Op{
	OpConnect, "auth", "sasl", "ping", "close", "create", "delete", "exists", "get", "set", "getACL", "setACL", "children", "sync",
	"multi", "reconfig", "watch", "ephemerals", "childrenCount", "whoAmI",
}

func TestLookup(t *testing.T) {
	for _, want := range append(named, OpAny) {
		if m, err := lookup(want); m.op != want || err != nil {
			t.Errorf("lookup(%q): %q, %v", want, m.op, err)
		}
	}
	_, err := lookup("getdata")
	for _, name := range []string{`"getdata"`, "any", "connect", "create", "childrenCount", "whoAmI"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("the error does not name %s: %v", name, err)
		}
	}
}

// Every op code that clients send belongs to exactly one Op with a constant, and OpAny has those
// that programs send.
func TestOps_CoverTheProtocol(t *testing.T) {
	owner := make(map[proto.OpCode]Op)
	for _, op := range named {
		m, err := lookup(op)
		if err != nil {
			t.Fatal(err)
		}
		for _, code := range m.codes {
			if other, ok := owner[code]; ok {
				t.Errorf("%v is of %s and of %s", code, other, op)
			}
			owner[code] = op
		}
	}
	all, err := lookup(OpAny)
	if err != nil {
		t.Fatal(err)
	}
	own := map[proto.OpCode]bool{
		proto.OpPing: true, proto.OpAuth: true, proto.OpSASL: true, proto.OpCloseSession: true, proto.OpSetWatches: true, proto.OpSetWatches2: true,
	}
	for code := proto.OpCloseSession; code <= proto.OpWhoAmI; code++ {
		switch code {
		case proto.OpCreateSession, proto.OpError, proto.OpNotification, proto.OpCheck: // not sent by clients, or only within a multi
			continue
		}
		known := code.Info().Name != ""
		if _, ok := owner[code]; ok != known {
			t.Errorf("%v: belongs to an op: %v", code, ok)
		}
		if all.covers(code) != (known && !own[code]) {
			t.Errorf("%v: part of any: %v", code, all.covers(code))
		}
	}
}

func TestAdd_RefusesNonsense(t *testing.T) {
	for want, f := range map[string]Fault{
		`no op ""`:                       {Kind: DropReply},
		"unknown kind 0":                 {Op: "get"},
		"unknown kind 4":                 {Op: "get", Kind: 4},
		"connect can't be made":          {Kind: Fail, Op: OpConnect, Code: proto.ErrNoNode},
		"auth can't be made":             {Kind: Fail, Op: "auth", Code: proto.ErrNoNode},
		"sasl can't be made":             {Kind: Fail, Op: "sasl", Code: proto.ErrNoNode},
		"ping can't be made":             {Kind: Fail, Op: "ping", Code: proto.ErrNoNode},
		"close can't be made":            {Kind: Fail, Op: "close", Code: proto.ErrNoNode},
		"can't fail with code 0":         {Kind: Fail, Op: "get"},
		"can't fail with code 1":         {Kind: Fail, Op: "get", Code: 1},
		"code -101 of a fault":           {Kind: DropReply, Op: "get", Code: proto.ErrNoNode},
		"a delay of 0s":                  {Kind: Delay, Op: "get"},
		"a delay of -1ns":                {Kind: Delay, Op: "get", Delay: -1},
		"delay 1ns of a fault":           {Kind: DropReply, Op: "get", Delay: 1},
		`"a" does not begin`:             {Kind: DropReply, Op: "get", PathPrefix: "a"},
		"ping names no path":             {Kind: DropReply, Op: "ping", PathPrefix: "/"},
		"a delay of 0s\nfaultproxy: pat": {Kind: Delay, Op: "get", PathPrefix: "a"}, // all problems at once
	} {
		var rules Rules
		a, err := rules.Add(f)
		if a != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, %v; want an error with %q", f, a, err, want)
		}
		if len(rules.list) != 0 {
			t.Errorf("%+v is armed", f)
		}
	}
}

func TestArmed_String(t *testing.T) {
	for want, f := range map[string]Fault{
		"drop reply of create at /a, session 0x1, once; happened 0 times": {Kind: DropReply, Op: "create", PathPrefix: "/a", Session: 1},
		"delay of any by 1ns, until removed; happened 0 times":            {Kind: Delay, Op: OpAny, Delay: 1, Times: -1},
		"fail of set with bad version (-103), 3 times; happened 0 times":  {Kind: Fail, Op: "set", Code: proto.ErrBadVersion, Times: 3},
	} {
		var rules Rules
		a, err := rules.Add(f)
		if err != nil || a.String() != want {
			t.Errorf("%v, %v; want %s", a, err, want)
		}
	}
}

func TestPathPrefix(t *testing.T) {
	for _, c := range []struct {
		prefix, path string
		want         bool
	}{
		{"/a", "/a", true},
		{"/a", "/a/b", true},
		{"/a", "/ab", false},
		{"/a", "/", false},
		{"/a", "", false},
		{"/", "/", true},
		{"/", "/a", true},
		{"/", "a", false},
		{"/a/", "/a/", true}, // a sequential create without a name
		{"/a/", "/a/b", true},
		{"/a/", "/a", false},
		{"/q/item-", "/q/item-", true},
		{"/q/item-", "/q/item-0000000007", true},
		{"/q/item-", "/q/item--000000007", true},
		{"/q/item-", "/q/item-0000000007/x", true},
		{"/q/item-", "/q/item-00000000071", false},
		{"/q/item-", "/q/item-000000007", false},
		{"/q/item-", "/q/item-000000007x", false},
		{"/q/item-", "/q/item-0-00000007", false},
		{"/q/item-", "/q/item-x", false},
		{"/a", "/a0000000007", true},
	} {
		if got := pathHasPrefix(c.path, c.prefix); got != c.want {
			t.Errorf("%q at %q: %v", c.path, c.prefix, got)
		}
		// A rule decides as soon as it can, and never differently with fewer bytes.
		whole := requestFrame(1, proto.OpGetData, path(c.path))
		a := &Armed{fault: Fault{Kind: DropReply, Op: "get", PathPrefix: c.prefix}, meaning: meaning{codes: []proto.OpCode{proto.OpGetData}}}
		for n := requestBytes; n <= len(whole); n++ {
			r := request{seen: whole[:n], bytes: len(whole), header: proto.RequestHeader{Xid: 1, Op: proto.OpGetData}}
			if got := a.selects(&r); !r.more && got != c.want || r.more && (got || n == len(whole)) {
				t.Errorf("%q at %q, %d of %d bytes: %v, more %v", c.path, c.prefix, n, len(whole), got, r.more)
			}
		}
	}
}

// A false length matches nothing, and no bytes are held back for it.
func TestPath_LengthLies(t *testing.T) {
	a := &Armed{fault: Fault{Kind: Fail, Op: "get", PathPrefix: "/a", Code: -101}, meaning: meaning{codes: []proto.OpCode{proto.OpGetData}}}
	for name, body := range map[string][]byte{
		"null": {0xff, 0xff, 0xff, 0xff}, "negative": {0x80, 0, 0, 0, '/', 'a'}, "longer than the frame": {0, 0, 0, 9, '/', 'a'},
		"huge": {0x7f, 0xff, 0xff, 0xff, '/', 'a'}, "no length": {0, 0}, "none": {},
	} {
		f := requestFrame(1, proto.OpGetData, bare(body))
		r := request{seen: f, bytes: len(f), header: proto.RequestHeader{Xid: 1, Op: proto.OpGetData}}
		if got := a.selects(&r); got || r.more {
			t.Errorf("%s: %v, more %v", name, got, r.more)
		}
	}
}
