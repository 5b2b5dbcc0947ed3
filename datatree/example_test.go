package datatree_test

import (
	"fmt"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
)

// A request is applied, returns events for watches, and the tree is restored from a checkpoint.
func Example() {
	tree := datatree.New(datatree.Options{TrackDirty: true})

	body := (&proto.CreateRequest{Path: "/app", Data: []byte("v1"), ACL: proto.OpenACL()}).Append(nil, proto.OpCreate)
	result, events := tree.Apply(
		datatree.Header{Zxid: tree.LastZxid().Next(), TimeMs: 1700000000000},
		&datatree.Request{Op: proto.OpCreate, Body: body},
	)
	fmt.Println(result.Path, result.Zxid, result.Err == proto.OK)
	for _, e := range events {
		fmt.Println(e.Type, e.Path)
	}

	changes := tree.Capture()
	restored, err := datatree.Restore(datatree.Options{}, func(yield func(key, value []byte) bool) {
		_ = changes.Range(func(key, value []byte) error { // its only errors are ours
			yield(key, value)
			return nil
		})
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	data, stat, _ := restored.GetData("/app", datatree.Caller{})
	fmt.Printf("%s %d %v\n", data, stat.CtimeMs, restored.Digest() == tree.Digest())

	// Output:
	// /app 0x1 true
	// NodeCreated /app
	// NodeChildrenChanged /
	// v1 1700000000000 true
}
