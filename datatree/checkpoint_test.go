package datatree

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/proto"
)

// goldenTree has every kind of znode, ACLs, null and empty data, a quota and two sessions.
func goldenTree(t *testing.T) *Tree {
	t.Helper()
	s := newScript()
	var out strings.Builder
	for line := range strings.Lines(`open a
set time=1700000000000
open b server=254
a ids digest=user:hash ip=10.0.0.1
a create /plain data=text
a create /null
a create /empty data=
a create /empty/s- mode=2 acl=31,auth,+1,ip,10.0.0.0/8
b create /empty/e- mode=3
a container /container
a ttl /ttl mode=5 ttl=86400000
a create /zookeeper/quota/plain
a create /zookeeper/quota/plain/zookeeper_limits data=count=1,bytes=-1
a create /zookeeper/quota/plain/zookeeper_stats
set time=1700000001234
a set /plain data=changed
a setacl /null acl=1,world,anyone
a set /zookeeper data=x
counter /empty -5
`) {
		s.line(t, &out, strings.TrimSpace(line))
	}
	s.tree.SetLastZxid(proto.MakeZxid(7, 0))
	if err := s.tree.Check(); err != nil {
		t.Fatal(err)
	}
	return s.tree
}

// TestCheckpoint_Golden reads files written by version 1 and writes them again. Never regenerate
// the files: if this test fails, the format has changed and needs a new version. The first file is
// older than ensembles.
func TestCheckpoint_Golden(t *testing.T) {
	full := fuzzTree(t)
	full.replaceLimit(Limit{Weight: 1000, Cause: LimitedByDisk, Member: 255, Full: true})
	for name, tree := range map[string]*Tree{
		"checkpoint-v1.txt": goldenTree(t), "checkpoint-v1-ensemble.txt": fuzzEnsemble(t), "checkpoint-v1-limit.txt": full,
	} {
		t.Run(name, func(t *testing.T) { testGolden(t, name, tree) })
	}
}

func testGolden(t *testing.T, name string, want *Tree) {
	f, err := os.Open(filepath.Join("testdata/golden", name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // only read
	golden := make(store)
	var lines []string
	for scan := bufio.NewScanner(f); scan.Scan(); {
		var key string
		var value string
		if _, err := fmt.Sscanf(scan.Text(), "%q %s", &key, &value); err != nil {
			t.Fatalf("%s: %v", scan.Text(), err)
		}
		if golden[key], err = hex.DecodeString(value); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, scan.Text())
	}
	restored := golden.restore(t)
	if err := restored.Check(); err != nil {
		t.Fatal(err)
	}
	if restored.meta() != want.meta() {
		t.Errorf("restored %+v, want %+v", restored.meta(), want.meta())
	}
	var got []string
	err = want.Capture().Range(func(key, value []byte) error {
		got = append(got, fmt.Sprintf("%q %x", key, value))
		return nil
	})
	if err != nil || !slices.Equal(got, lines) {
		t.Errorf("%v, written now:\n%s", err, strings.Join(got, "\n"))
	}
}

// TestRequest_Golden is TestCheckpoint_Golden for a request.
func TestRequest_Golden(t *testing.T) {
	r := Request{
		Session: 0x0100_0007_0000_0001, ConnEpoch: proto.MakeZxid(7, 300), Op: proto.OpCloseSession,
		Flags: FlagEnforceQuota | FlagSkipACL, MaxBuffer: 1048575, Server: 254, Body: []byte("body"),
		IDs: []proto.ID{{Scheme: "ip", ID: "10.0.0.1"}, {Scheme: "super"}},
	}
	const want = "01" + "03" + "fe" + "15" + "0100000700000001" + "ac82808070" + "ffff3f" +
		"02" + "026970" + "0831302e302e302e31" + "057375706572" + "00" + "04626f6479"
	if got := hex.EncodeToString(r.Append(nil)); got != want {
		t.Errorf("written is %s, want %s", got, want)
	}
	b, _ := hex.DecodeString(want)
	got, err := decodeRequest(b, Identities{})
	if err != nil || fmt.Sprint(got) != fmt.Sprint(r) {
		t.Errorf("read is %+v, %v", got, err)
	}
	for i := range b {
		if _, err := decodeRequest(b[:i], Identities{}); !errors.Is(err, ErrRequest) {
			t.Errorf("the first %d bytes: %v", i, err)
		}
	}
	if _, err := decodeRequest(append(b, 0), Identities{}); !errors.Is(err, ErrRequest) {
		t.Errorf("a byte too many: %v", err)
	}
	b[0] = 2
	if _, err := decodeRequest(b, Identities{}); !errors.Is(err, ErrRequest) {
		t.Errorf("another version: %v", err)
	}
}

// TestRestore_Refuses damages one thing in a good checkpoint.
func TestRestore_Refuses(t *testing.T) {
	for _, c := range []struct {
		name, want string
		do         func(s store)
	}{
		{"nothing", "meta record is missing", func(s store) { clear(s) }},
		{"no meta", "meta record is missing before", func(s store) { delete(s, "m") }},
		{"no meta before znodes", "meta record is missing before", func(s store) {
			maps.DeleteFunc(s, func(key string, _ []byte) bool { return key[0] != znodePrefix })
		}},
		{"an empty meta", "truncated", func(s store) { s["m"] = nil }},
		{"another version", "format version 2", func(s store) { s["m"][0] = 2 }},
		{"a bit of meta", "its hash is", func(s store) { s["m"][3] ^= 1 }},
		{"a short meta", "truncated", func(s store) { s["m"] = s["m"][:9] }},
		{"an unknown key", "unknown kind of key", func(s store) { s["z"] = nil }},
		{"a key of the future", "unknown kind of key", func(s store) { s["n"] = nil }},
		{"missing members", "digest", func(s store) { delete(s, "p") }},
		{"other members", "digest", func(s store) { s["p"][len("\x00server.1=")] ^= 1 }},
		{"members without a member", "no members", func(s store) { s["p"] = []byte{0, 0} }},
		{"members that are none", "members: ", func(s store) { s["p"] = []byte{1, 'x', 0} }},
		{"short members", "bytes are left", func(s store) { s["p"] = s["p"][:1] }},
		{"more than members", "too many", func(s store) { s["p"] = append(s["p"], 0) }},
		{"a rewind, which earlier releases knew", "unknown kind of key", func(s store) { s["r"] = []byte{1} }},
		{"a missing znode", "the meta record says", func(s store) { delete(s, "z/fuzz/e") }},
		{"a missing parent", "its parent is missing", func(s store) { delete(s, "z/fuzz") }},
		{"a missing session", "its owner", func(s store) { delete(s, "s"+string([]byte{1, 0, 0, 0, 0, 0, 0, 1})) }},
		{"a bit of a znode", "digest", func(s store) { s["z/fuzz"][1] ^= 1 }},
		{"a kind", "first byte", func(s store) { s["z/fuzz"][0] = 0x08 }},
		{"a short znode", "truncated", func(s store) { s["z/fuzz/e"] = s["z/fuzz/e"][:12] }},
		{"a path", "invalid path", func(s store) { s["zfuzz"] = s["z/fuzz"] }},
		{"null data", "null data of 1 bytes", func(s store) { s["z/fuzz"] = append(s["z/fuzz"], 'x'); s["z/fuzz"][0] |= nullData }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := make(store)
			s.merge(t, fuzzEnsemble(t).Capture())
			c.do(s)
			if _, err := Restore(Options{}, s.sorted); !errors.Is(err, ErrCheckpoint) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Restore: %v, want %q", err, c.want)
			}
		})
	}
}

// TestRestore_RefusesWhatAgrees damages records and makes the meta record agree, so that the digest
// detects nothing: Restore must still refuse what would break later.
func TestRestore_RefusesWhatAgrees(t *testing.T) {
	zxids := func(czxid, mzxid, pzxid proto.Zxid) []byte {
		return appendRecord(nil, &record{czxid: czxid, mzxid: mzxid, pzxid: pzxid})
	}
	config := func(version, pending proto.Zxid) []byte {
		var e ensembleRecord
		e.current, _, _ = serverlist.ParseConfig("server.1=h1:1:2") // valid
		e.version, e.pending = version, Pending{pending, e.current}
		return appendEnsemble(nil, &e)
	}
	for _, c := range []struct{ name, want, key, value string }{
		{"a child of an ephemeral", "its parent is ephemeral", "z/fuzz/e/x", string(zxids(1, 1, 1))},
		{"an ephemeral of no session", "belongs to no session", "z/x", string(appendRecord(nil, &record{kind: ephemeral}))},
		{"a time to live of nothing", "it lives for 0 ms", "z/x", string(appendRecord(nil, &record{kind: ttl}))},
		{"a time to live of too much", "it lives for 1099511627776 ms", "z/x", string(appendRecord(nil, &record{kind: ttl, owner: maxTTLMs + 1}))},
		{"a zxid below 0", "zxids", "z/x", string(zxids(-1, 1, 1))},
		{"written before it was made", "zxids", "z/x", string(zxids(2, 1, 2))},
		{"children before it was made", "zxids", "z/x", string(zxids(2, 2, 1))},
		{"made later", "zxids", "z/x", string(zxids(7, 7, 7))},
		{"a session of later", "attached at zxid 0x7", "s" + string([]byte{2, 0, 0, 0, 0, 0, 0, 1}), string(appendSession(nil, &sessionRecord{connEpoch: 7}))},
		{"a session in another form", "digest", "s" + string([]byte{1, 0, 0, 0, 0, 0, 0, 1}), "\x82\x00" + string(appendSession(nil, &sessionRecord{connEpoch: 1})[1:])},
		{"the open list in another form", "digest", "z/x", string(appendRecord(nil, &record{acl: string(appendACL(nil, proto.OpenACL()))}))},
		{"members in another form", "digest", "p", string(appendText(appendText(nil, "server.1=h1:1:2\n\nversion=1"), ""))},
		{"members of later", "zxids 0x7", "p", string(config(7, 0))},
		{"pending members of later", "zxids 0x1 0x7", "p", string(config(1, 7))},
		{"members of no zxid", "the members of zxid 0x0", "p", string(appendText(appendText(nil, "server.1=h1:1:2"), "server.1=h1:1:2\nversion=1"))},
		{"pending members of before", "zxids 0x2 0x1", "p", string(config(2, 1))},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := make(store)
			s.merge(t, fuzzEnsemble(t).Capture())
			s[c.key] = []byte(c.value)
			s.agree()
			if _, err := Restore(Options{}, s.sorted); !errors.Is(err, ErrCheckpoint) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Restore: %v, want %q", err, c.want)
			}
		})
	}
}

// TestRestore_RefusesTwice repeats each key.
func TestRestore_RefusesTwice(t *testing.T) {
	s := make(store)
	tree := fuzzEnsemble(t)
	s.merge(t, tree.Capture())
	for twice := range s {
		_, err := Restore(Options{}, func(yield func(key, value []byte) bool) {
			for key, value := range s.sorted {
				if !yield(key, value) || string(key) == twice && !yield(key, value) {
					return
				}
			}
		})
		if !errors.Is(err, ErrCheckpoint) || !strings.Contains(err.Error(), "comes twice") {
			t.Errorf("%q twice: %v", twice, err)
		}
	}
}

// TestRace_CaptureIsReadWhileTheTreeMovesOn checks that a capture does not change.
func TestRace_CaptureIsReadWhileTheTreeMovesOn(t *testing.T) {
	tree := goldenTree(t)
	session := slices.Collect(tree.Sessions())[0]
	c := tree.Capture()
	want := make(store)
	want.merge(t, c)
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for range 50 {
				s := make(store)
				s.merge(t, c)
				for key, value := range want {
					if string(s[key]) != string(value) {
						t.Errorf("%q changed", key)
					}
				}
			}
		})
	}
	var live sync.RWMutex // as in the server
	for range 2 {
		readers.Go(func() {
			for range 200 {
				live.RLock()
				_, _, _ = tree.GetACL("/empty/s-0000000000", Caller{})
				_, _, _ = tree.AppendChildren(nil, "/empty", Caller{})
				_ = tree.Collectable(0, 0, 10)
				_, _ = tree.Config()
				_, _ = tree.PendingConfig()
				all := tree.CaptureAll()
				live.RUnlock()
				if err := all.Range(func(_, _ []byte) error { return nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 200 {
		acl := []proto.ACL{{Perms: proto.Perms(i + 1), ID: proto.ID{Scheme: "world", ID: "anyone"}}}
		for _, r := range []*Request{
			{Op: proto.OpSetACL, Body: (&proto.SetACLRequest{Path: "/empty/s-0000000000", ACL: acl, Version: -1}).Append(nil)},
			{Op: proto.OpCreate, Body: (&proto.CreateRequest{Path: "/empty/x", ACL: acl, Mode: 2}).Append(nil, proto.OpCreate)},
		} {
			r.Session, r.ConnEpoch, r.Flags = session.ID, session.ConnEpoch, FlagSkipACL
			live.Lock()
			res, _ := tree.Apply(Header{Zxid: tree.LastZxid() + 1}, r)
			live.Unlock()
			if res.Err != proto.OK {
				t.Error(res.Err)
			}
		}
	}
	readers.Wait()
	if err := tree.Check(); err != nil {
		t.Error(err)
	}
}

// appendRecord appends the value of a znode's record.
func appendRecord(b []byte, r *record) []byte { return append(appendHead(b, r), r.data...) }
