package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/server"
)

// pagesOf returns what an iteration yields, and its error.
func pagesOf(t *testing.T, c *client.Client, path string, o client.PageOptions) (got []client.Child, err error) {
	t.Helper()
	for child, err := range c.ChildrenPages(t.Context(), path, o) {
		if err != nil {
			return got, err
		}
		got = append(got, child)
	}
	return got, nil
}

// TestChildrenPages_SameWithoutPages: a client finds the same children with listPage and, on a
// server that does not know /zookeeper/features, without it.
func TestChildrenPages_SameWithoutPages(t *testing.T) {
	s := startServer(t, server.Config{})
	for _, chroot := range []string{"", "/app"} {
		c, _, _ := connect(t, s, func(cfg *client.Config) { cfg.Chroot = chroot })
		without, _, _ := connect(t, s, func(cfg *client.Config) { cfg.Chroot = chroot })
		if chroot == "" {
			for _, path := range []string{"/app", "/app/p", "/p"} {
				if _, _, err := c.Create(t.Context(), path, nil, client.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
		}
		hidden := []proto.ACL{{Perms: proto.PermWrite, ID: proto.ID{Scheme: "world", ID: "anyone"}}}
		for i, o := range []client.CreateOptions{{}, {Ephemeral: true}, {ACL: hidden}, {Container: true}, {Ephemeral: true, ACL: hidden}} {
			if _, _, err := c.Create(t.Context(), fmt.Sprintf("/p/%d", i), fmt.Append(nil, i), o); err != nil {
				t.Fatal(err)
			}
		}
		client.SetFeatures(without, &proto.Features{})
		for flags := range proto.PageFlags(32) {
			for limit := range 3 {
				for _, names := range [][2]string{{"", ""}, {"1", ""}, {"15", ""}, {"9", ""}, {"", "1"}, {"0", "1"}, {"1", "1"}, {"2", "1"}, {"", "15"}, {"", "x"}} {
					var stats [2]proto.Stat
					o := client.PageOptions{StartAfter: names[0], Prefix: names[1], Limit: limit, Flags: flags, Parent: &stats[0]}
					got, err1 := pagesOf(t, c, "/p", o)
					o.Parent = &stats[1]
					want, err2 := pagesOf(t, without, "/p", o)
					for i := range want {
						if flags&proto.PageData == 0 {
							want[i].Data = nil
						}
						if flags&proto.PageStat == 0 {
							want[i].Stat = proto.Stat{}
						}
					}
					if err := errors.Join(err1, err2); err != nil || fmt.Sprint(got) != fmt.Sprint(want) || stats[0] != stats[1] {
						t.Errorf("%q, %+v: %v\n%+v\nwithout pages\n%+v", chroot, o, err, got, want)
					}
				}
			}
		}
		for _, zk := range []*client.Client{c, without} {
			if got, err := pagesOf(t, zk, "/none", client.PageOptions{}); !errors.Is(err, proto.ErrNoNode) || got != nil {
				t.Errorf("no znode: %v, %v", got, err)
			}
			for _, err := range zk.ChildrenPages(t.Context(), "/p", client.PageOptions{}) {
				if err != nil {
					t.Error(err)
				}
				break
			}
		}
	}
}

// TestChildrenPages_AsksEachConnection: a client that moves to a server without listPage during an
// iteration goes on without it, and never sends the operation there.
func TestChildrenPages_AsksEachConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var features atomic.Bool // of the present connection
		features.Store(true)
		var pages atomic.Int32 // that were asked for
		var c *client.Client
		moved := make(chan struct{})
		f := &fake{answer: polite(func(h proto.RequestHeader, _ []byte) []byte {
			switch {
			case h.Op == proto.OpGetData && features.Load():
				return reply(h.Xid, 1, proto.OK, (&proto.DataResponse{Data: []byte(`{"server":"gozkd","ops":{"listPage":2601},"later":1}`)}).Append(nil))
			case h.Op == proto.OpGetData:
				return reply(h.Xid, 1, proto.ErrNoNode, nil)
			case h.Op == proto.OpListPage && features.Load():
				page := proto.ListPageResponse{Entries: []proto.PageEntry{{Name: "a"}, {Name: "b"}}, Next: new("b")}
				return reply(h.Xid, 1, proto.OK, page.Append(nil, 0))
			case h.Op == proto.OpListPage:
				t.Error("the second server got listPage")
				return nil
			}
			return reply(h.Xid, 1, proto.OK, (&proto.ChildrenResponse{Children: []string{"d", "b", "a", "c"}}).Append(nil, proto.OpGetChildren2))
		})}
		// The client moves between the answer about the features and the page.
		moves := func(_ context.Context, op, _ string) func(int, error) {
			if op == proto.OpListPage.String() && pages.Add(1) == 2 {
				features.Store(false)
				c.Reconnect()
				<-moved
			}
			return nil
		}
		var e events
		c, e = connectFake(t, f, func(cfg *client.Config) { cfg.Hooks.Request = moves })
		go func() {
			for ev := range e {
				if ev.State == client.Connected && !features.Load() {
					close(moved)
					return
				}
			}
		}()
		var names []string
		for child, err := range c.ChildrenPages(t.Context(), "/p", client.PageOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, child.Name)
		}
		if want := []string{"a", "b", "c", "d"}; !slices.Equal(names, want) {
			t.Errorf("%q, want %q", names, want)
		}
	})
}

// TestChildrenPages_Odd: a client's own znode in the place of the features is no ability, and a
// page that leads to itself is asked for again.
func TestChildrenPages_Odd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for data, want := range map[string]string{`{"ops":{"listPage":71}}`: "[x]", `no JSON`: "[x]", `{"ops":{"listPage":2601}}`: "[y]"} {
			asked := 0
			c, _ := connectFake(t, &fake{answer: polite(func(h proto.RequestHeader, body []byte) []byte {
				switch h.Op {
				case proto.OpGetData:
					return reply(h.Xid, 1, proto.OK, (&proto.DataResponse{Data: []byte(data)}).Append(nil))
				case proto.OpListPage:
					var r proto.ListPageRequest
					d := jute.NewDecoder(body)
					r.Decode(&d)
					page := proto.ListPageResponse{Next: &r.StartAfter}
					if asked++; asked == 3 {
						page = proto.ListPageResponse{Entries: []proto.PageEntry{{Name: "y"}}}
					}
					return reply(h.Xid, 1, proto.OK, page.Append(nil, r.Flags))
				}
				return reply(h.Xid, 1, proto.OK, (&proto.ChildrenResponse{Children: []string{"x"}}).Append(nil, proto.OpGetChildren2))
			})})
			got, err := pagesOf(t, c, "/p", client.PageOptions{})
			names := []string{}
			for _, child := range got {
				names = append(names, child.Name)
			}
			if fmt.Sprint(names) != want || err != nil {
				t.Errorf("%s: %q, %v", data, names, err)
			}
		}
	})
}

// TestChildrenPages_EndsAfterThePrefix: pages of a filter may be empty. The next one is not asked
// for if it begins after all names with the prefix.
func TestChildrenPages_EndsAfterThePrefix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		nexts := []string{"a", "b", "b7", "c", "d"}
		c, _ := connectFake(t, &fake{answer: polite(func(h proto.RequestHeader, body []byte) []byte {
			if h.Op == proto.OpGetData {
				return reply(h.Xid, 1, proto.OK, (&proto.DataResponse{Data: []byte(`{"ops":{"listPage":2601}}`)}).Append(nil))
			}
			var r proto.ListPageRequest
			d := jute.NewDecoder(body)
			r.Decode(&d)
			page := proto.ListPageResponse{}
			if len(asked) < len(nexts) {
				page.Next = &nexts[len(asked)]
			}
			asked = append(asked, r.StartAfter)
			return reply(h.Xid, 1, proto.OK, page.Append(nil, r.Flags))
		})})
		got, err := pagesOf(t, c, "/p", client.PageOptions{Prefix: "b", Flags: proto.PageEphemeral})
		if want := []string{"b", "a", "b", "b7"}; !slices.Equal(asked, want) || len(got) > 0 || err != nil {
			t.Errorf("asked for pages after %q, want %q; %v, %v", asked, want, got, err)
		}
	})
}

// Iterations that begin at once ask for the features of the server at once. The race detector fails
// without a lock.
func TestChildrenPages_AtOnce(t *testing.T) {
	s := startServer(t, server.Config{})
	for range 10 {
		c, _, _ := connect(t, s)
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { // ends with its iteration; awaited below
				if got, err := pagesOf(t, c, "/", client.PageOptions{}); err != nil || len(got) != 1 {
					t.Errorf("%v, %v", got, err)
				}
			})
		}
		all.Wait()
	}
}
