package server

import (
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
)

// wholeTree is a tree of many batches.
func wholeTree(t *testing.T) *datatree.Tree {
	t.Helper()
	tree := datatree.New(datatree.Options{})
	for i := range 3000 {
		body := (&proto.CreateRequest{Path: fmt.Sprintf("/z%04d", i), ACL: proto.OpenACL()}).Append(nil, proto.OpCreate)
		if res, _ := tree.Apply(datatree.Header{Zxid: tree.LastZxid() + 1}, &datatree.Request{Op: proto.OpCreate, Body: body}); res.Err != proto.OK {
			t.Fatal(res.Err)
		}
	}
	return tree
}

// pairs ranges over the checkpoint of a tree, and calls at before each key with its number.
func pairs(tree *datatree.Tree, at func(i int, key, value []byte) (k, v []byte)) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		i := 0
		_ = tree.CaptureAll().Range(func(key, value []byte) error { // fails to stop it
			if i++; !yield(at(i, key, value)) {
				return errors.New("stop")
			}
			return nil
		})
	}
}

// TestRestoreTree_IsRestore compares restoreTree with datatree.Restore, for a good checkpoint and
// for bad ones.
func TestRestoreTree_IsRestore(t *testing.T) {
	tree := wholeTree(t)
	read := 0
	good := pairs(tree, func(_ int, key, value []byte) ([]byte, []byte) { return key, value })
	orphan := pairs(tree, func(i int, key, value []byte) ([]byte, []byte) {
		if read = i; i == 100 {
			key = []byte("z/none/x")
		}
		return key, value
	})
	spoilt := pairs(tree, func(i int, key, value []byte) ([]byte, []byte) {
		if i == 1500 {
			value = value[:3]
		}
		return key, value
	})
	short := func(yield func(key, value []byte) bool) {
		n := 0
		for key, value := range good {
			if n++; n > 2000 || !yield(key, value) {
				return
			}
		}
	}
	for name, kv := range map[string]iter.Seq2[[]byte, []byte]{"good": good, "orphan": orphan, "spoilt": spoilt, "short": short} {
		want, wantErr := datatree.Restore(datatree.Options{}, kv)
		got, err := restoreTree(datatree.Options{}, kv)
		if fmt.Sprint(err) != fmt.Sprint(wantErr) || (err == nil) != (name == "good") {
			t.Errorf("%s: %v, want %v", name, err, wantErr)
		}
		if err == nil && (got.Digest() != want.Digest() || got.Check() != nil) {
			t.Errorf("%s: %v", name, got.Check())
		}
	}
	if read > 2500 {
		t.Errorf("it went on reading behind a bad znode, until record %d", read)
	}
}

// TestRestoreTree_SurvivesPanic leaves no goroutine behind, which TestMain sees.
func TestRestoreTree_SurvivesPanic(t *testing.T) {
	defer func() {
		if p := recover(); p != "the disk is gone" {
			t.Errorf("recovered %v", p)
		}
	}()
	_, err := restoreTree(datatree.Options{}, pairs(wholeTree(t), func(i int, key, value []byte) ([]byte, []byte) {
		if i == 1500 {
			panic("the disk is gone")
		}
		return key, value
	}))
	t.Errorf("restoreTree returned %v", err)
}

func BenchmarkRestoreTree(b *testing.B) {
	tree := datatree.New(datatree.Options{})
	for i := range 1_000_000 {
		body := (&proto.CreateRequest{Path: fmt.Sprintf("/z%07d", i), Data: make([]byte, 100), ACL: proto.OpenACL()}).Append(nil, proto.OpCreate)
		tree.Apply(datatree.Header{Zxid: tree.LastZxid() + 1}, &datatree.Request{Op: proto.OpCreate, Body: body})
	}
	type pair struct{ key, value []byte }
	var all []pair
	_ = tree.CaptureAll().Range(func(key, value []byte) error { // never fails
		all = append(all, pair{key, value})
		return nil
	})
	kv := func(yield func(key, value []byte) bool) {
		for _, p := range all {
			if !yield(p.key, p.value) {
				return
			}
		}
	}
	for name, restore := range map[string]func(datatree.Options, iter.Seq2[[]byte, []byte]) (*datatree.Tree, error){
		"one goroutine": datatree.Restore, "two goroutines": restoreTree,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := restore(datatree.Options{}, kv); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
