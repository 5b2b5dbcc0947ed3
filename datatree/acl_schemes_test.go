package datatree_test

import (
	"testing"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
)

// answerer applies requests to a tree.
type answerer struct {
	t    *testing.T
	tree *datatree.Tree
	zxid proto.Zxid
}

func newAnswerer(t *testing.T) *answerer {
	return &answerer{t: t, tree: datatree.New(datatree.Options{})}
}

func (a *answerer) apply(r datatree.Request) proto.ErrCode {
	a.zxid++
	res, _ := a.tree.Apply(datatree.Header{Zxid: a.zxid, TimeMs: 1}, &r)
	return res.Err
}

func (a *answerer) create(path string, flags datatree.RequestFlags, id proto.ID, ids ...proto.ID) proto.ErrCode {
	body := (&proto.CreateRequest{Path: path, ACL: []proto.ACL{{Perms: proto.PermAll, ID: id}}}).Append(nil, proto.OpCreate)
	return a.apply(datatree.Request{Op: proto.OpCreate, Flags: flags, IDs: ids, Body: body})
}

// The verdicts are those of ZooKeeper 3.9.5: of KerberosName and of Java's X500Principal.
func TestACL_IDsOfSchemes(t *testing.T) {
	verdicts := map[string]map[string]bool{
		"sasl": {
			"bob": true, "a/b/c": true, "": true, "a b": true, "@R": true, "a/": true, "ü": true, "a/b@R": true, "/b@R": true, "a\nb@R": true,
			"a@b@c": false, "a/b/c@R": false, "a@b/c": false, "a@@": false,
		},
		"x509": {
			"": true, "CN=alice": true, "cn=alice, ou=x;o=y": true, "CN=m+UID=u1,O=Ex": true, "1.2.3=x": true, "OID.2.5.4.3=x": true,
			`O=Example\, Inc.`: true, `O="Example, Inc."`: true, "CN=": true, "CN=#0c0161": true, "CN=ü": true, " CN = a b ": true,
			`CN=\2C\2c`: true, "S=x": true, "T=Dr": true, "EMAILADDRESS=a@b": true, "CN=a=b": true, "\tCN=x": true, "1.2.99999999999=x": true,
			"garbage": false, "CN=alice,": false, "CN=alice,,O=x": false, "TITLE=Dr": false, "=x": false, "1=x": false, "3.1=x": false, "1.40=x": false,
			"CN=#": false, "CN=#0c02": false, "CN=#0": false, "CN=#0400\n": false, `CN=\x`: false, `CN=\`: false, "CN=a<b": false, `CN=a"b`: false, `CN="a`: false, `CN="a"b`: false,
		},
	}
	flags := map[string]datatree.RequestFlags{"sasl": datatree.FlagSASL, "x509": datatree.FlagX509}
	for scheme, ids := range verdicts {
		for id, valid := range ids {
			for _, set := range []bool{true, false} {
				f, want := datatree.FlagSASL|datatree.FlagX509, proto.ErrInvalidACL
				if !set {
					f &^= flags[scheme]
				} else if valid {
					want = proto.OK
				}
				if got := newAnswerer(t).create("/a", f, proto.ID{Scheme: scheme, ID: id}); got != want {
					t.Errorf("%s:%q, allowed %v: %v, want %v", scheme, id, set, got, want)
				}
			}
		}
	}
	// Other parts of certificates than the subject are no distinguished names.
	for _, id := range []string{"alice", "spiffe://x/alice", "alice@example.com", "CN=alice", ""} {
		for f, want := range map[datatree.RequestFlags]proto.ErrCode{datatree.FlagX509 | datatree.FlagX509Text: proto.OK, datatree.FlagX509Text: proto.ErrInvalidACL} {
			if got := newAnswerer(t).create("/a", f, proto.ID{Scheme: "x509", ID: id}); got != want {
				t.Errorf("x509:%q with the flags %b: %v, want %v", id, f, got, want)
			}
		}
	}
	for _, scheme := range []string{"super", "ensemble", "key", proto.SchemeSASLAll, proto.SchemeSASLAny} {
		if got := newAnswerer(t).create("/a", ^datatree.RequestFlags(0), proto.ID{Scheme: scheme, ID: "x"}); got != proto.ErrInvalidACL {
			t.Errorf("%s: %v", scheme, got)
		}
	}
}

// Source of the rules: SASLAuthenticationProvider.matches.
func TestACL_SASLMatches(t *testing.T) {
	id := func(scheme, id string) proto.ID { return proto.ID{Scheme: scheme, ID: id} }
	a := newAnswerer(t)
	for path, owner := range map[string]proto.ID{"/bob": id("sasl", "bob"), "/anyone": id("sasl", "X"), "/digest": id("digest", "bob:h"), "/x509": id("x509", "CN=bob")} {
		if code := a.create(path, datatree.FlagSASL|datatree.FlagX509, owner); code != proto.OK {
			t.Fatal(path, code)
		}
	}
	for _, c := range []struct {
		ids  []proto.ID
		want string
	}{
		{[]proto.ID{id("sasl", "bob")}, "/bob"},
		{[]proto.ID{id("sasl", "BOB")}, ""},
		{[]proto.ID{id("sasl", "eve"), id(proto.SchemeSASLAny, "X")}, "/anyone"},
		{[]proto.ID{id("sasl", "super"), id(proto.SchemeSASLAll, "")}, "/anyone/bob"},
		{[]proto.ID{id("sasl", "super")}, ""},
		{[]proto.ID{id("x509", "CN=bob")}, "/x509"},
		{[]proto.ID{id("super", "")}, "/anyone/bob/digest/x509"},
	} {
		got := ""
		for _, path := range []string{"/anyone", "/bob", "/digest", "/x509"} {
			if _, _, code := a.tree.GetData(path, datatree.Caller{IDs: c.ids}); code == proto.OK {
				got += path
			}
		}
		if got != c.want {
			t.Errorf("%v reads %s, want %s", c.ids, got, c.want)
		}
	}
	// The entries that auth stands for are the identities that others see.
	bob := []proto.ID{id("sasl", "bob"), id(proto.SchemeSASLAny, "X"), id(proto.SchemeSASLAll, "")}
	if code := a.create("/own", datatree.FlagSASL, id("auth", ""), bob...); code != proto.OK {
		t.Fatal(code)
	}
	if list, _, _ := a.tree.GetACL("/own", datatree.Caller{SkipACL: true}); len(list) != 1 || list[0].ID != bob[0] {
		t.Error(list)
	}
}

func TestCreateTTL_Refused(t *testing.T) {
	for _, c := range []struct {
		flags datatree.RequestFlags
		ttl   int64
		want  proto.ErrCode
	}{{0, 1000, proto.OK}, {0, -1, proto.ErrBadArguments}, {datatree.FlagRefuseTTL, 1000, proto.ErrUnimplemented}, {datatree.FlagRefuseTTL, -1, proto.ErrUnimplemented}} {
		create := proto.CreateRequest{Path: "/a", ACL: proto.OpenACL(), Mode: proto.ModePersistentTTL, TTL: c.ttl}
		if got := newAnswerer(t).apply(datatree.Request{Op: proto.OpCreateTTL, Flags: c.flags, Body: create.Append(nil, proto.OpCreateTTL)}); got != c.want {
			t.Errorf("%v: %v, want %v", c, got, c.want)
		}
	}
}
