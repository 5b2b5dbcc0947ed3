package zkfiles

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/adler32"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/proto"
)

// content is a whole snapshot.
type content struct {
	sessions []Session
	acls     map[int64][]proto.ACL
	znodes   []Znode
	digest   *SnapshotDigest
}

func sample() content {
	stat := Stat{Czxid: 5, Mzxid: 6, Pzxid: 7, CtimeMs: 8, MtimeMs: 9, Version: 1, Cversion: 2, Aversion: 3}
	c := content{
		sessions: []Session{{1, 4000}, {-5, 30000}},
		acls:     map[int64][]proto.ACL{1: proto.ReadACL(), 2: {{Perms: 31, ID: proto.ID{Scheme: "sasl", ID: "bob"}}, {Perms: 1, ID: proto.ID{Scheme: "ip", ID: "::1"}}}},
		znodes: []Znode{
			{Path: "/", Data: []byte{}, ACL: OpenKey, Stat: stat}, {Path: "/null", ACL: 1, Stat: stat},
			{Path: "/ü", Data: []byte("text"), ACL: 2, Stat: stat},
			{Path: "/e", Data: bytes.Repeat([]byte("x"), 200_000), ACL: OpenKey, Stat: stat},
		},
		digest: &SnapshotDigest{Zxid: 9, Version: DigestVersion, Value: 1<<63 + 5},
	}
	return c
}

// appendSnapshot appends a snapshot with the first parts of a trailer: 0 none, 1 a digest, 2 also
// the last zxid.
func appendSnapshot(b []byte, c content, parts int) []byte {
	seal := func() { b = AppendSeal(b, adler32.Checksum(b)) }
	b = AppendSnapshotHeader(b, c.sessions, [][]proto.ACL{c.acls[1], c.acls[2]})
	for _, z := range c.znodes {
		b = z.Append(b)
	}
	b = AppendTreeEnd(b)
	// The end of the tree is part of what the first seal covers.
	seal()
	if parts > 0 {
		b = c.digest.Append(b)
		seal()
	}
	if parts > 1 {
		b = AppendLastZxid(b, c.digest.Zxid)
		seal()
	}
	return b
}

func readSnapshot(b []byte) (c content, err error) {
	r, err := NewSnapshotReader(bytes.NewReader(b))
	if err != nil {
		return c, err
	}
	c.sessions, c.acls = r.Sessions, r.ACLs
	for z, err := range r.Znodes() {
		if err != nil {
			return c, err
		}
		c.znodes = append(c.znodes, z)
	}
	c.digest, err = r.Trailer()
	return c, err
}

func TestSnapshot_RoundTrip(t *testing.T) {
	for parts := range 3 {
		want := sample()
		b := appendSnapshot(nil, want, parts)
		if parts < 1 {
			want.digest = nil
		}
		if got, err := readSnapshot(b); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("parts %d: %v\ngot  %.300v\nwant %.300v", parts, err, fmt.Sprint(got), fmt.Sprint(want))
		}
		if !bytes.HasSuffix(b, []byte(LastBytes)) {
			t.Error("a snapshot ends otherwise")
		}
	}
}

// A leader sends no header, and other messages follow the tree.
func TestTree_LeavesWhatFollows(t *testing.T) {
	want := sample()
	b := appendTables(nil, want.sessions, [][]proto.ACL{want.acls[1], want.acls[2]})
	for _, z := range want.znodes {
		b = z.Append(b)
	}
	in := bufio.NewReader(bytes.NewReader(append(AppendTreeEnd(b), "BenWasHere"...)))
	r, err := NewTreeReader(in)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range r.Znodes() {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	rest, _ := in.Peek(20)
	if _, err := r.Trailer(); err != nil || string(rest) != "BenWasHere" || n != len(want.znodes) {
		t.Errorf("%d znodes, then %q, %v", n, rest, err)
	}
}

// Each changed byte and each cut is found.
func TestSnapshot_DamageIsFound(t *testing.T) {
	c := sample()
	c.znodes[3].Data = []byte("short")
	for parts := range 3 {
		b := appendSnapshot(nil, c, parts)
		whole := map[int]bool{len(b): true}
		for earlier := range parts { // the trailer's parts may be missing
			whole[len(appendSnapshot(nil, c, earlier))] = true
		}
		for cut := range b {
			if _, err := readSnapshot(b[:cut]); (err == nil) != whole[cut] || err != nil && !errors.Is(err, ErrDamaged) {
				t.Errorf("parts %d, cut at %d of %d: %v", parts, cut, len(b), err)
			}
		}
		rng := rand.New(rand.NewPCG(3, 4))
		for range exhaustive.Or(400, 10_000) {
			at, change := rng.IntN(len(b)), byte(1+rng.IntN(255))
			b[at] ^= change
			if _, err := readSnapshot(b); !errors.Is(err, ErrDamaged) {
				t.Errorf("parts %d, byte %d of %d changed by %#x: %v", parts, at, len(b), change, err)
			}
			b[at] ^= change
		}
	}
}

// The password of a session as a ZooKeeper server computed it.
func TestPassword(t *testing.T) {
	// new java.util.Random(0x100000123L ^ 0xB3415C00L).nextBytes(new byte[16])
	const want = "28198969006ff3da97ca24cc38a8be9a"
	if got := fmt.Sprintf("%x", Password(0x100000123)); got != want {
		t.Errorf("%s, want %s", got, "28198969006ff3da97ca24cc38a8be9a")
	}
}

func TestKindOf(t *testing.T) {
	for _, c := range []struct {
		owner   uint64
		kind    Kind
		session proto.SessionID
		ttl     int64
	}{
		{0, Persistent, 0, 0},
		{0x8000000000000000, Container, 0, 0},
		{0xFF0000000000EA60, TTL, 0, 60000},
		{0x0100000000000001, Ephemeral, 0x0100000000000001, 0},
		{0xFF01234500000001, Ephemeral, -0xfedcbaffffffff, 0}, // of server 255
		{0x8000000000000001, Ephemeral, -0x7fffffffffffffff, 0},
	} {
		kind, session, ttl := KindOf(int64(c.owner))
		if kind != c.kind || session != c.session || ttl != c.ttl || OwnerOf(kind, session, ttl) != int64(c.owner) {
			t.Errorf("%#x: %v %v %d", c.owner, kind, session, ttl)
		}
	}
}

func FuzzSnapshot(f *testing.F) {
	c := sample()
	c.znodes = c.znodes[:3]
	for parts := range 3 {
		f.Add(appendSnapshot(nil, c, parts))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := readSnapshot(b); err != nil && !errors.Is(err, ErrDamaged) {
			t.Fatal(err)
		}
		r, err := NewTreeReader(bytes.NewReader(b)) // without checksums
		if err != nil {
			return
		}
		for z, err := range r.Znodes() {
			if err == nil {
				ZnodeDigest(z.Path, z.Data, &z.Stat)
				if kind, session, ttl := KindOf(z.Stat.Owner); OwnerOf(kind, session, ttl) != z.Stat.Owner {
					t.Fatalf("owner %#x is not that of kind %d", uint64(z.Stat.Owner), kind)
				}
			}
		}
	})
}
