package datatree

import (
	"fmt"
	"hash/maphash"
	"testing"

	"github.com/gozkd/gozkd/proto"
)

// TestPrefetch: any paths, before, between and after creates and deletes; nothing changes.
func TestPrefetch(t *testing.T) {
	tree := New(Options{})
	apply := func(op proto.OpCode, body []byte) {
		t.Helper()
		if res, _ := tree.Apply(Header{tree.LastZxid() + 1, 1}, &Request{Op: op, Body: body}); res.Err != proto.OK {
			t.Fatal(res.Err)
		}
	}
	paths := make([]string, 500)
	for i := range paths {
		paths[i] = fmt.Sprintf("/z%d", i)
	}
	check := func() {
		t.Helper()
		before := tree.Digest()
		for i := range paths {
			tree.Prefetch(paths[i:]) // from one to more than it takes
		}
		tree.Prefetch(nil)
		tree.Prefetch([]string{"", "/", "no path", "/z1/", "/zookeeper/config"})
		if err := tree.Check(); err != nil || tree.Digest() != before {
			t.Fatalf("%v, digest %x, before %x", err, tree.Digest(), before)
		}
	}
	check()
	for i, path := range paths {
		data := make([]byte, i*10) // with and without large data
		apply(proto.OpCreate, (&proto.CreateRequest{Path: path, Data: data, ACL: proto.OpenACL()}).Append(nil, proto.OpCreate))
		if i%100 == 0 {
			check()
		}
	}
	check()
	for _, path := range paths[:450] { // pages of znodes are released
		apply(proto.OpDelete, (&proto.PathVersionRequest{Path: path, Version: -1}).Append(nil))
	}
	check()
}

// TestPrefetch_Guesses: most znodes are found by the first slots of their hash.
func TestPrefetch_Guesses(t *testing.T) {
	tree := New(Options{})
	const n = 20_000
	found := 0
	for i := range n {
		path := fmt.Sprintf("/z%d", i)
		body := (&proto.CreateRequest{Path: path, ACL: proto.OpenACL()}).Append(nil, proto.OpCreate)
		if res, _ := tree.Apply(Header{tree.LastZxid() + 1, 1}, &Request{Op: proto.OpCreate, Body: body}); res.Err != proto.OK {
			t.Fatal(res.Err)
		}
	}
	for i := range n {
		path := fmt.Sprintf("/z%d", i)
		if id := tree.index.guess(maphash.String(tree.index.seed, path)); id != 0 && tree.at(id).path() == path {
			found++
		}
	}
	if found < n*8/10 {
		t.Errorf("found %d of %d", found, n)
	}
}
