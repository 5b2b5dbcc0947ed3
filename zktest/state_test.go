package zktest_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/zktest"
)

// large returns a tree of n znodes with data.
func large(n int, data string) map[string]string {
	tree := make(map[string]string, n)
	for i := range n {
		tree[fmt.Sprintf("/big/%d/%d", i%100, i)] = data
	}
	return tree
}

// A large tree is loaded, saved and restored while clients watch.
func TestRewind_Large(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		for _, members := range []int{1, 3} {
			e := zktest.StartEnsemble(t, members)
			want := large(scaled(10_000), strings.Repeat("x", 200))
			e.Load(want)
			c, owner := e.Connect(t), e.ConnectTimeout(t, 20*time.Second)
			must[string](t)(owner.Create("/e", nil, zk.FlagEphemeral, open))
			must[string](t)(owner.Create("/q", nil, 0, open))
			first := must[string](t)(owner.Create("/q/n-", nil, zk.FlagSequence, open))
			snapshot, before := e.Snapshot(), e.Tree("/")
			for path, data := range want {
				if before[path] != data {
					t.Fatalf("%s = %q", path, before[path])
				}
			}
			_, _, gone, err := c.ExistsW("/new")
			if err != nil {
				t.Fatal(err)
			}
			must[string](t)(owner.Create("/new", nil, 0, open))
			if ev := <-gone; ev.Type != zk.EventNodeCreated {
				t.Errorf("%+v", ev)
			}
			_, _, gone, err = c.ExistsW("/new")
			if err != nil {
				t.Fatal(err)
			}
			must[string](t)(owner.Create("/q/n-", nil, zk.FlagSequence, open))
			if err := owner.Delete("/e", -1); err != nil {
				t.Fatal(err)
			}
			e.Rewind(snapshot)
			if ev := <-gone; ev.Type != zk.EventNodeDeleted || ev.Path != "/new" {
				t.Errorf("%+v", ev)
			}
			if after := e.Tree("/"); !maps.Equal(after, before) {
				t.Errorf("%d znodes before, %d after", len(before), len(after))
			}
			e.AssertOwner("/e", owner.SessionID())
			if next := must[string](t)(owner.Create("/q/n-", nil, zk.FlagSequence, open)); next <= first {
				t.Errorf("%s after %s", next, first)
			}
			e.ExpireSession(owner.SessionID())
			e.Rewind(snapshot)
			e.AssertMissing("/e")
		}
	})
}

// ACLs of every scheme that clients may name are restored.
func TestRewind_ACLSchemes(t *testing.T) {
	s := zktest.Start(t, zktest.WithConfig(func(_ int, c *server.Config) { c.Auth.ACLSchemes = []string{"x509", "sasl"} }))
	c := s.Client(t)
	acl := []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "x509", ID: "CN=alice"}}, {Perms: proto.PermAll, ID: proto.ID{Scheme: "sasl", ID: "bob"}}}
	for _, path := range []string{"/gone", "/opened"} {
		if _, _, err := c.Create(t.Context(), path, nil, client.CreateOptions{ACL: acl}); err != nil {
			t.Fatal(err)
		}
	}
	snapshot := s.Snapshot()
	if err := c.Delete(t.Context(), "/gone", client.AnyVersion); err != nil {
		t.Fatal(err)
	}
	if err := s.Server().SetACL(t.Context(), "/opened", proto.OpenACL()); err != nil {
		t.Fatal(err)
	}
	s.Rewind(snapshot)
	for _, path := range []string{"/gone", "/opened"} {
		if z := s.Znode(path); z == nil || !slices.Equal(z.ACL, acl) {
			t.Errorf("%s: %+v", path, z)
		}
	}
}

// A container that had no children is not deleted after a rewind because of those it had since.
func TestRewind_UnusedContainer(t *testing.T) {
	s := zktest.Start(t, zktest.WithConfig(func(_ int, c *server.Config) { c.ContainerNeverUsed = -1 }))
	c := s.Client(t)
	if _, _, err := c.Create(t.Context(), "/c", []byte("x"), client.CreateOptions{Container: true}); err != nil {
		t.Fatal(err)
	}
	snapshot := s.Snapshot()
	for range 2 {
		s.Advance(time.Hour)
		s.AssertData("/c", "x")
		s.Load(map[string]string{"/c/a/b": ""})
		s.Rewind(snapshot)
		s.AssertChildren("/c")
	}
}

// A refused Load names the znode and the reason, and changes nothing.
func TestLoad_Refused(t *testing.T) {
	s := zktest.Start(t)
	c := s.Connect(t)
	must[string](t)(c.Create("/e", nil, zk.FlagEphemeral, open))
	for path, why := range map[string]string{
		"":                  `load "": `,
		"relative":          `load "relative": `,
		"/a//b":             `load "/a//b": `,
		"/a/../b":           `load "/a/../b": `,
		"/e/child":          `load "/e/child": `,
		"/zookeeper/config": "", // allowed for a superuser: the members are stored elsewhere
		"/zookeeper/x":      "",
		"/big":              `multi of "/big" refused`,
	} {
		data := ""
		if path == "/big" {
			data = strings.Repeat("x", 2<<20)
		}
		before := fmt.Sprint(s.Tree("/"))
		r := record(t, func(t testing.TB) { s.With(t).Load(map[string]string{"/other": "", path: data}) })
		if r.Failed() != (why != "") || !strings.Contains(r.text(), why) {
			t.Errorf("%q: %s", path, r.text())
		}
		if r.Failed() && fmt.Sprint(s.Tree("/")) != before {
			t.Errorf("%q was refused, and changed something:\n%s", path, s.Dump())
		}
	}
	s.Load(map[string]string{"/": "root", "/e": "mine"})
	s.AssertData("/", "root")
	s.AssertOwner("/e", c.SessionID())
	s.Load(nil)
}

// The waits for a znode that comes, and for one that goes.
func TestAwait_ExistsAndMissing(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		s := zktest.Start(t)
		c := s.Connect(t)
		change := make(chan error, 1)
		go func() { // ends with the request; change shows that
			_, err := c.Create("/a", nil, 0, open)
			change <- err
		}()
		s.AwaitExists("/a")
		if err := <-change; err != nil {
			t.Fatal(err)
		}
		go func() { change <- c.Delete("/a", -1) }() // as above
		s.AwaitMissing("/a")
		if err := <-change; err != nil {
			t.Fatal(err)
		}
	})
}
