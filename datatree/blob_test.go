package datatree

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/proto"
)

// TestBlob_IsARecord encodes any record as a blob and decodes it again.
func TestBlob_IsARecord(t *testing.T) {
	tree := empty(Options{})
	rapid.Check(t, func(rt *rapid.T) {
		zxid := rapid.Custom(func(rt *rapid.T) proto.Zxid {
			return proto.Zxid(rapid.OneOf(rapid.Int64Range(0, 1000), rapid.Int64Range(0, math.MaxInt64)).Draw(rt, "zxid"))
		})
		want := record{
			czxid: zxid.Draw(rt, "czxid"), mzxid: zxid.Draw(rt, "mzxid"), pzxid: zxid.Draw(rt, "pzxid"),
			ctimeMs: rapid.Int64().Draw(rt, "ctime"), mtimeMs: rapid.Int64().Draw(rt, "mtime"),
			version: rapid.Int32().Draw(rt, "version"), cversion: rapid.Int32().Draw(rt, "cversion"), aversion: rapid.Int32().Draw(rt, "aversion"),
			kind: kind(rapid.IntRange(int(persistent), int(ttl)).Draw(rt, "kind")), null: rapid.Bool().Draw(rt, "null"),
		}
		if want.kind == ephemeral || want.kind == ttl {
			want.owner = rapid.Uint64().Draw(rt, "owner")
		}
		if !want.null {
			data := rapid.OneOf(rapid.StringN(-1, 300, -1), rapid.Map(rapid.IntRange(largeBytes-1, 2*largeBytes), func(n int) string { return strings.Repeat("d", n) }))
			want.data = data.Draw(rt, "data")
		}
		var list []proto.ACL
		for range rapid.IntRange(0, 3).Draw(rt, "entries") {
			id := proto.ID{Scheme: rapid.StringN(0, 8, -1).Draw(rt, "scheme"), ID: rapid.StringN(-1, 200, -1).Draw(rt, "id")}
			list = append(list, proto.ACL{Perms: proto.Perms(rapid.Int32().Draw(rt, "perms")), ID: id})
		}
		if len(list) > 0 {
			want.acl = tree.aclKey(list)
		}
		path := "/" + rapid.StringN(-1, 300, -1).Draw(rt, "path")
		b := tree.seal(path, &want)
		got := b.record()
		if large := len(want.data) >= largeBytes; got.sealed != large || large != (b.large != nil) {
			rt.Fatalf("%d bytes of data are kept apart: %v %v", len(want.data), got.sealed, b.large != nil)
		}
		if again := tree.seal(path, &got); string(again.value()) != string(b.value()) || again.hash() != b.hash() {
			rt.Fatalf("%q has hash %#x, sealed again %q has %#x", b.value(), b.hash(), again.value(), again.hash())
		}
		if got.sealed = false; got != want || b.kind() != want.kind || b.path() != path {
			rt.Fatalf("%q of kind %d: %+v, want %q: %+v", b.path(), b.kind(), got, path, want)
		}
		if size := int64(len(path) + len(want.data)); b.dataSize() != size {
			rt.Fatalf("%d bytes of path and data, want %d", b.dataSize(), size)
		}
		if got := string(b.key()); got != "z"+path {
			rt.Fatalf("key %q, want %q", got, "z"+path)
		}
		if got, value := string(b.value()), string(appendRecord(nil, &want)); got != value {
			rt.Fatalf("value %q, want %q", got, value)
		}
		if digest := recordDigest(string(b.key()), b.value()); b.hash() != digest {
			rt.Fatalf("hash %#x, want %#x", b.hash(), digest)
		}
		again, err := decodeRecord(b.value(), tree.aclKey)
		if err != nil || again != want {
			rt.Fatalf("decoded: %+v, %v, want %+v", again, err, want)
		}
	})
}

// TestUvarintAt_IsBinarys decodes each length, with and without bytes after it.
func TestUvarintAt_IsBinarys(t *testing.T) {
	for shift := range 64 {
		for _, want := range []uint64{1 << shift, 1<<shift - 1, 1<<shift | 1, math.MaxUint64 >> shift} {
			b := binary.AppendUvarint([]byte{0xff}, want)
			end := len(b)
			for _, tail := range []string{"", "\x80", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "\x00\x00\x00\x00\x00\x00\x00\x00"} {
				if got, at := uvarintAt(string(b)+tail, 1); got != want || at != end {
					t.Errorf("%#x to %d before %q, want %#x to %d", got, at, tail, want, end)
				}
			}
		}
	}
}
