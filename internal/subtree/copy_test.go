package subtree_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/subtree"
	"github.com/gozkd/gozkd/proto"
)

func TestCopyAndMove(t *testing.T) {
	c, _ := start(t)
	other, _ := start(t)
	for _, size := range []int{50, 1200} { // within and above one transaction
		root := fmt.Sprintf("/t%d", size)
		paths := growWith(t, c, root, size, 10_000, uint64(size))
		n := int64(len(paths))
		for i, work := range []subtree.Copy{
			{From: subtree.Side{ZK: c, Path: root}, To: subtree.Side{ZK: c, Path: root + "-copy"}, Recursive: true},
			{From: subtree.Side{ZK: c, Path: root}, To: subtree.Side{ZK: other, Path: root}, Recursive: true},
			{From: subtree.Side{ZK: c, Path: root}, To: subtree.Side{ZK: c, Path: root + "-moved"}, Move: true},
		} {
			done, err := work.Run(t.Context())
			if err != nil || done.Created != n || done.Atomic != (size == 50 && i != 1) {
				t.Fatalf("%d, %d: %+v, %v", size, i, done, err)
			}
			if work.Move && done.Deleted != n {
				t.Errorf("%d: deleted %d", size, done.Deleted)
			}
		}
		for _, to := range []subtree.Side{{ZK: c, Path: root + "-moved"}, {ZK: other, Path: root}} {
			if d := diff(t, subtree.Side{ZK: c, Path: root + "-copy"}, to); d != nil {
				t.Errorf("%d: %q", size, d[:min(len(d), 5)])
			}
		}
		if _, there, err := c.Exists(t.Context(), root, false); there || err != nil {
			t.Errorf("%d: the source is there: %v", size, err)
		}
	}
}

func TestCopy_Refuses(t *testing.T) {
	c, _ := start(t)
	create(t, c, client.CreateOptions{}, "/a", "/a/b", "/x", "/there")
	create(t, c, client.CreateOptions{Ephemeral: true}, "/x/e")
	run := func(from, to string, move bool) error {
		_, err := (&subtree.Copy{
			From: subtree.Side{ZK: c, Path: from}, To: subtree.Side{ZK: c, Path: to}, Recursive: true, Move: move,
		}).Run(t.Context())
		return err
	}
	for _, r := range []struct {
		from, to string
		move     bool
		want     string
	}{
		{"/a", "/a/b/c", false, "or below it"},
		{"/a", "/a", true, "or below it"},
		{"/", "/a/c", false, "or below it"},
		{"/none", "/n", false, "no node"},
		{"/a", "/there", false, "node exists"},
		{"/a", "/none/b", false, "no node"},
		{"/x", "/y", true, "/x/e is ephemeral"},
	} {
		if err := run(r.from, r.to, r.move); err == nil || !strings.Contains(err.Error(), r.want) {
			t.Errorf("%+v: %v", r, err)
		}
	}
	if err := run("/x", "/y", false); err != nil { // the ephemeral znode is not copied
		t.Error(err)
	}
	if got := walk(t, c, "/y", subtree.Options{Below: subtree.All}); !slices.Equal(got, []string{"/y"}) {
		t.Errorf("%q", got)
	}
}

// TestMove_Changed: concurrent changes during a move of a large subtree are not lost.
func TestMove_Changed(t *testing.T) {
	c, w := start(t)
	other := connect(t, w)
	paths := growWith(t, c, "/t", 1200, 10_000, 5)
	changed := false
	_, err := (&subtree.Copy{
		From: subtree.Side{ZK: c, Path: "/t"}, To: subtree.Side{ZK: c, Path: "/moved"}, Move: true,
		Seen: func(*subtree.Copied) {
			if !changed {
				changed = true
				if _, err := other.Set(t.Context(), paths[1000], []byte("new"), -1); err != nil {
					t.Error(err)
				}
			}
		},
	}).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), paths[1000]+" changed during the move") {
		t.Errorf("%v", err)
	}
	if data, _, err := c.Get(t.Context(), paths[1000], false); err != nil || string(data) != "new" {
		t.Errorf("%q, %v", data, err)
	}
}

// TestMove_ACLChanged: a move in parts keeps a znode whose ACL is set meanwhile.
func TestMove_ACLChanged(t *testing.T) {
	c, w := start(t)
	other := connect(t, w)
	growWith(t, c, "/t", 1200, 10_000, 5)
	var err error
	set := sync.OnceFunc(func() { _, err = other.SetACL(t.Context(), "/t", proto.OpenACL(), -1) })
	_, moved := (&subtree.Copy{
		From: subtree.Side{ZK: c, Path: "/t"}, To: subtree.Side{ZK: c, Path: "/moved"}, Move: true,
		Seen: func(*subtree.Copied) { set() },
	}).Run(t.Context())
	if err != nil || moved == nil || !strings.Contains(moved.Error(), "/t changed during the move") {
		t.Errorf("%v, %v", err, moved)
	}
}

// TestCopy_ACLChanged: a copy or move in one transaction fails if an ACL is set after it was read.
func TestCopy_ACLChanged(t *testing.T) {
	c, w := start(t)
	create(t, c, client.CreateOptions{}, "/t", "/t/a")
	var err error
	hooked := &wire{s: w.s, sends: func(b []byte) {
		// The ACL of /t was read before those of its children.
		if bytes.Contains(b, append([]byte{0, 0, 0, byte(proto.OpGetACL), 0, 0, 0, 4}, "/t/a"...)) {
			_, err = c.SetACL(t.Context(), "/t", proto.OpenACL(), -1)
		}
	}}
	from := connect(t, hooked)
	for _, move := range []bool{false, true} {
		done, copied := (&subtree.Copy{
			From: subtree.Side{ZK: from, Path: "/t"}, To: subtree.Side{ZK: from, Path: "/copy"}, Recursive: true, Move: move,
		}).Run(t.Context())
		if err != nil || copied == nil || !strings.Contains(copied.Error(), "the ACL of /t has changed") || done.Created != 0 {
			t.Errorf("move %v: %v, %v, %+v", move, err, copied, done)
		}
	}
}

// beginsCopy is in the request of a copy in one transaction, whose first operation is a check.
var beginsCopy = []byte{0, 0, 0, byte(proto.OpMulti), 0, 0, 0, byte(proto.OpCheck)}

// TestCopy_ACLSetLater: a copy says so if an ACL is set after it was read, or after the last look
// before the transaction.
func TestCopy_ACLSetLater(t *testing.T) {
	c, w := start(t)
	create(t, c, client.CreateOptions{}, "/t", "/t/a")
	growWith(t, c, "/large", 1200, 10_000, 5)
	var set func()
	hooked := &wire{s: w.s, sends: func(b []byte) {
		if bytes.Contains(b, beginsCopy) {
			set()
		}
	}}
	from := connect(t, hooked)
	for _, path := range []string{"/t", "/large"} {
		var err error
		set = sync.OnceFunc(func() { _, err = c.SetACL(t.Context(), path, proto.OpenACL(), -1) })
		done, copied := (&subtree.Copy{
			From: subtree.Side{ZK: from, Path: path}, To: subtree.Side{ZK: from, Path: path + "-copy"}, Recursive: true,
			Seen: func(*subtree.Copied) { set() },
		}).Run(t.Context())
		if err != nil || copied == nil || !strings.Contains(copied.Error(), "the ACL of "+path+" was set during the copy") {
			t.Errorf("%s: %v, %v, %+v", path, err, copied, done)
		}
	}
}

// TestCopy_EphemeralWithACL: a copy leaves an ephemeral znode out, whenever its ACL was set.
func TestCopy_EphemeralWithACL(t *testing.T) {
	c, w := start(t)
	setACL := func() {
		if _, err := c.SetACL(t.Context(), "/t/e", proto.OpenACL(), -1); err != nil {
			t.Error(err)
		}
	}
	create(t, c, client.CreateOptions{}, "/t", "/t/a")
	create(t, c, client.CreateOptions{Ephemeral: true}, "/t/e")
	setACL()
	from := connect(t, &wire{s: w.s, sends: func(b []byte) {
		if bytes.Contains(b, beginsCopy) {
			setACL()
		}
	}})
	done, err := (&subtree.Copy{
		From: subtree.Side{ZK: from, Path: "/t"}, To: subtree.Side{ZK: from, Path: "/copy"}, Recursive: true,
	}).Run(t.Context())
	if err != nil || done.Created != 2 || done.Skipped != 1 {
		t.Errorf("%+v, %v", done, err)
	}
}

// TestCopy_SourceDeleted: a copy is complete although its source is deleted right after it.
func TestCopy_SourceDeleted(t *testing.T) {
	c, w := start(t)
	create(t, c, client.CreateOptions{}, "/t", "/t/a")
	written := false
	from := connect(t, &wire{s: w.s, sends: func(b []byte) {
		if bytes.Contains(b, beginsCopy) {
			written = true
		} else if written && bytes.Contains(b, []byte("/t")) { // the look at the ACLs begins
			written = false
			if err := errors.Join(c.Delete(t.Context(), "/t/a", -1), c.Delete(t.Context(), "/t", -1)); err != nil {
				t.Error(err)
			}
		}
	}})
	done, err := (&subtree.Copy{
		From: subtree.Side{ZK: from, Path: "/t"}, To: subtree.Side{ZK: from, Path: "/copy"}, Recursive: true,
	}).Run(t.Context())
	if err != nil || done.Created != 2 {
		t.Errorf("%+v, %v", done, err)
	}
	if _, there, err := c.Exists(t.Context(), "/t", false); there || err != nil {
		t.Errorf("the source is there: %v, %v", there, err)
	}
}

// TestCopy_ToRoot: the root of another ensemble exists always, and gets what is below the source.
// Within one ensemble it is a target that exists.
func TestCopy_ToRoot(t *testing.T) {
	c, _ := start(t)
	other, _ := start(t)
	growWith(t, c, "/t", 1200, 10_000, 5)
	root := func(zk *client.Client, path string) subtree.Side { return subtree.Side{ZK: zk, Path: path} }
	for _, from := range []string{"/", "/t"} {
		if _, err := (&subtree.Copy{From: root(c, from), To: root(other, "/"), Recursive: true}).Run(t.Context()); err != nil {
			t.Errorf("%s: %v", from, err)
		}
	}
	children, _, err := c.Children(t.Context(), "/t", false)
	if err != nil || len(children) == 0 {
		t.Fatal(children, err)
	}
	pairs := map[string]string{"/t": "/t"}
	for _, name := range children {
		pairs["/t/"+name] = "/" + name
	}
	for from, to := range pairs {
		if d := diff(t, root(c, from), root(other, to)); d != nil {
			t.Errorf("%s: %q", from, d[:min(len(d), 5)])
		}
	}
	_, err = (&subtree.Copy{From: root(c, "/t"), To: root(c, "/"), Recursive: true}).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "node exists") {
		t.Errorf("within one ensemble: %v", err)
	}
}
