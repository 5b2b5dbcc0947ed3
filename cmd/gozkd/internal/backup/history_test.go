package backup

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/history"
	"github.com/gozkd/gozkd/proto"
)

// connect opens a session, which must be closed.
func (s *shipping) connect() *zk.Conn {
	s.t.Helper()
	dial := func(_, address string, _ time.Duration) (net.Conn, error) {
		return s.cluster.Dial(context.Background(), address)
	}
	c, _, err := zk.Connect(strings.Split(s.cluster.ConnectString(), ","), 20*time.Second, zk.WithDialer(dial), zk.WithLogger(quiet{}))
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// history returns the History of the archive.
func (s *shipping) history() *History {
	return NewHistory(s.memory.Client(), func() uint64 { return s.open().Ensemble })
}

// Pages of any size have all changes of a znode, across bases, and At has the state after each of
// them.
func TestHistory_Changes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShipping(t, 1, 1)
		s.kill(1)
		s.config.BaseInterval = 20 * time.Second
		s.start(1)
		c := s.connect()
		time.Sleep(10 * time.Second) // the first base lacks /x
		var want []string            // kind, data, version
		var zxids []int64
		did := func(kind, data string, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			version := int32(-1)
			if kind != history.Deleted {
				_, stat, err := c.Get("/x")
				if err != nil {
					t.Fatal(err)
				}
				version = stat.Version
			}
			zxid, _ := s.member(1).Server().Facts().Digest()
			want, zxids = append(want, fmt.Sprint(kind, " ", data, " ", version)), append(zxids, zxid)
			if _, err := c.Create("/other-", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(11 * time.Second)
		}
		open := zk.WorldACL(zk.PermAll)
		create := func(data string) error { _, err := c.Create("/x", []byte(data), 0, open); return err }
		set := func(data string) error { _, err := c.Set("/x", []byte(data), -1); return err }
		for round := range 3 {
			did(history.Created, "a", create("a"))
			did(history.Changed, "b", set("b"))
			_, err := c.Set("/x", []byte("no"), 77)
			if !errors.Is(err, zk.ErrBadVersion) {
				t.Fatal(err)
			}
			_, err = c.Multi(&zk.SetDataRequest{Path: "/x", Data: []byte("m"), Version: -1}, &zk.CreateRequest{Path: "/other-", Flags: zk.FlagSequence, Acl: open})
			did(history.Changed, "m", err)
			_, err = c.SetACL("/x", zk.WorldACL(zk.PermAll&^zk.PermCreate), -1)
			did(history.ACL, "m", err)
			_, err = c.Multi(&zk.DeleteRequest{Path: "/x", Version: -1}, &zk.CreateRequest{Path: "/x", Data: []byte("again"), Acl: open})
			did(history.Created, "again", err)
			time.Sleep(time.Minute) // bases without a change
			if round < 2 {
				did(history.Deleted, "", c.Delete("/x", -1))
			}
		}
		secret := zk.DigestACL(zk.PermAll, "u", "p")
		if _, err := c.Create("/secret", []byte("s"), 0, secret); err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			if _, err := c.Create(fmt.Sprint("/large", i), make([]byte, 100<<10), 0, open); err != nil {
				t.Fatal(err)
			}
		}
		large, _ := s.member(1).Server().Facts().Digest()
		if err := create("exists"); !errors.Is(err, zk.ErrNodeExists) { // a zxid after those
			t.Fatal(err)
		}
		c.Close()
		s.settle()
		if n := s.open().Spans()[0].NumBases(); n < 5 {
			t.Fatalf("only %d bases", n)
		}
		h := s.history()
		slices.Reverse(want)
		for _, limit := range []int{1, 2, 5, 100} {
			var got []string
			q := history.Query{Path: "/x", Limit: limit, MaxData: 3}
			for pages := 0; pages == 0 || q.Before != 0; pages++ {
				page, err := h.Changes(t.Context(), q)
				if err != nil || len(page.Changes) > limit || page.Hidden > 0 || pages > 100 {
					t.Fatalf("%+v %v", page, err)
				}
				for _, c := range page.Changes {
					data, version := "", int32(-1)
					if c.Znode != nil {
						data, version = string(c.Znode.Data), c.Znode.Stat.Version
					}
					if c.Zxid != proto.Zxid(zxids[len(want)-1-len(got)]) || c.Session == 0 || c.Time.IsZero() {
						t.Errorf("%+v", c)
					}
					if data == "aga" { // MaxData
						data = "again"
					}
					got = append(got, fmt.Sprint(c.Kind, " ", data, " ", version))
				}
				q.Before = page.Next
			}
			if !slices.Equal(got, want) {
				t.Errorf("limit %d: %q, want %q", limit, got, want)
			}
		}
		for _, before := range []proto.Zxid{1, 2, 3} {
			if page, err := h.Changes(t.Context(), history.Query{Path: "/x", Limit: 1, Before: before}); err == nil && len(page.Changes) > 0 || err != nil && !errors.Is(err, history.ErrNotCovered) {
				t.Errorf("before %v: %+v %v", before, page, err)
			}
		}
		for i, zxid := range zxids {
			kind := want[len(want)-1-i]
			state, err := h.At(t.Context(), history.Query{Path: "/x"}, history.Moment{Zxid: proto.Zxid(zxid)})
			if strings.HasPrefix(kind, history.Deleted) {
				if !errors.Is(err, proto.ErrNoNode) {
					t.Error(kind, err)
				}
			} else if err != nil || !strings.Contains(kind, " "+string(state.Data)+" ") || state.Zxid != proto.Zxid(zxid) {
				t.Errorf("%s: %+v %v", kind, state, err)
			}
		}
		root, err := h.At(t.Context(), history.Query{Path: "/"}, history.Moment{Time: time.Now()})
		if err != nil || len(root.Children) != 2+3+17+1+5 || int(root.Stat.NumChildren) != len(root.Children) {
			t.Errorf("%d children %+v %v", len(root.Children), root, err)
		}
		if _, err := h.At(t.Context(), history.Query{Path: "/x"}, history.Moment{Zxid: 0x7f00000000}); !errors.Is(err, history.ErrNotCovered) {
			t.Error(err)
		}
		for _, ids := range [][]proto.ID{nil, {{Scheme: secret[0].Scheme, ID: secret[0].ID}}} {
			page, err := h.Changes(t.Context(), history.Query{Path: "/secret", Limit: 5, IDs: ids})
			if err != nil || len(page.Changes) != len(ids) || page.Hidden != 1-len(ids) {
				t.Errorf("%+v %v", page, err)
			}
			if _, err := h.At(t.Context(), history.Query{Path: "/secret", IDs: ids}, history.Moment{}); errors.Is(err, proto.ErrNoAuth) != (ids == nil) {
				t.Error(err)
			}
		}
		// A state that was just read is kept for a while: not for another moment, nor for one that
		// may still change.
		first := history.Moment{Zxid: proto.Zxid(zxids[0])}
		for _, c := range []struct {
			moment history.Moment
			wait   time.Duration
			kept   bool
		}{{first, 0, true}, {first, keepTime, false}, {history.Moment{}, 0, false}, {history.Moment{Time: time.Now().Add(time.Hour)}, 0, false}} {
			if _, err := h.At(t.Context(), history.Query{Path: "/x"}, c.moment); err != nil && !errors.Is(err, history.ErrNotCovered) {
				t.Fatal(err)
			}
			time.Sleep(c.wait)
			synctest.Wait()
			if kept := h.kept != nil && h.kept.moment == c.moment; kept != c.kept {
				t.Errorf("%+v after %v: kept is %t", c.moment, c.wait, kept)
			}
		}
		h.maxBase = 300 << 10
		for _, at := range []proto.Zxid{proto.Zxid(large) - 3, proto.Zxid(large)} {
			if _, err := h.At(t.Context(), history.Query{Path: "/x"}, history.Moment{Zxid: at}); errors.Is(err, history.ErrTooLarge) != (at == proto.Zxid(large)) {
				t.Error(at, err)
			}
		}
		h.maxBase = 10
		if _, err := h.Changes(t.Context(), history.Query{Path: "/x", Limit: 1}); !errors.Is(err, history.ErrTooLarge) {
			t.Error(err)
		}
		if err := h.take(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Changes(t.Context(), history.Query{Path: "/x", Limit: 1}); !errors.Is(err, history.ErrBusy) {
			t.Error(err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := h.At(short, history.Query{Path: "/x"}, history.Moment{Zxid: proto.Zxid(zxids[0])}); !errors.Is(err, history.ErrBusy) {
			t.Error(err)
		}
		h.done()
		s.end()
	})
}

// The changes of a subtree since a moment: pages of any size have whole transactions, across bases,
// and only what the caller may read and list.
func TestHistory_Below(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShipping(t, 1, 1)
		s.kill(1)
		s.config.BaseInterval = 20 * time.Second
		s.start(1)
		c, lost := s.connect(), s.connect()
		time.Sleep(21 * time.Second) // the first base lacks /a
		open, secret := zk.WorldACL(zk.PermAll), zk.DigestACL(zk.PermAll, "u", "p")
		do := func(ops ...any) {
			t.Helper()
			if _, err := c.Multi(ops...); err != nil {
				t.Fatal(err)
			}
			time.Sleep(21 * time.Second)
		}
		create := func(path string) *zk.CreateRequest { return &zk.CreateRequest{Path: path, Acl: open} }
		remove := func(path string) *zk.DeleteRequest { return &zk.DeleteRequest{Path: path, Version: -1} }
		set := func(path string) *zk.SetDataRequest { return &zk.SetDataRequest{Path: path, Version: -1} }
		do(create("/a"), create("/ab"), create("/a/b"))
		since := time.Now().Add(-time.Second)
		do(remove("/a/b"), create("/a/c"), create("/ab/outside"))
		do(create("/a/d"), create("/a/d/x"), create("/a/d/brief"), remove("/a/d/brief"))
		if _, err := lost.Create("/a/e", nil, zk.FlagEphemeral, open); err != nil {
			t.Fatal(err)
		}
		gone := lost.SessionID()
		lost.Close()
		time.Sleep(21 * time.Second)
		do(remove("/a/d/x"), remove("/a/d"))
		do(&zk.CreateRequest{Path: "/a/secret", Acl: secret})
		do(&zk.CreateRequest{Path: "/a/shut", Acl: append(zk.WorldACL(zk.PermCreate), secret...)}, create("/a/shut/open"))
		do(remove("/a/secret"))
		if _, err := c.SetACL("/a/c", zk.WorldACL(zk.PermAll&^zk.PermCreate), -1); err != nil {
			t.Fatal(err)
		}
		do(set("/a/c"), set("/ab"), set("/a"))
		owner := c.SessionID()
		c.Close()
		s.settle()
		if n := s.open().Spans()[0].NumBases(); n < 3 {
			t.Fatalf("only %d bases", n)
		}
		h := s.history()
		recent := []string{"changed /a", "changed /a/c", "acl /a/c", "deleted /a/d", "deleted /a/e", "created /a/e", "deleted /a/d/brief", "created /a/d/brief", "created /a/d/x", "created /a/d", "created /a/c", "deleted /a/b"}
		all := append(slices.Clone(recent), "created /a/b", "created /a", "earlier ")
		readable := slices.Insert(slices.Clone(recent), 3, "deleted /a/secret", "created /a/shut/open", "created /a/shut", "created /a/secret")
		for _, query := range []struct {
			history.Query
			want   []string
			hidden bool
		}{
			{history.Query{Path: "/a", Since: since}, recent, true},
			{history.Query{Path: "/a", Since: since, IDs: []proto.ID{{Scheme: secret[0].Scheme, ID: secret[0].ID}}}, readable, false},
			{history.Query{Path: "/a", Since: time.Unix(1, 0)}, all, true},
			{history.Query{Path: "/a/d", Since: since}, []string{"deleted /a/d", "deleted /a/d/brief", "created /a/d/brief", "created /a/d/x", "created /a/d"}, false},
			{history.Query{Path: "/a", Since: time.Now()}, nil, false},
		} {
			for _, limit := range []int{1, 2, 5, 100} {
				q, got, hidden := query.Query, []string(nil), false
				q.Limit = limit
				for pages := 0; pages == 0 || q.Before != 0; pages++ {
					page, err := h.Changes(t.Context(), q)
					if err != nil || pages > 100 {
						t.Fatalf("%+v %v", page, err)
					}
					for i, c := range page.Changes {
						by := owner
						if c.Path == "/a/e" {
							by = gone
						}
						if c.Kind != history.Earlier && (int64(c.Session) != by || c.Time.Before(q.Since)) || i >= limit && c.Kind != history.Earlier && c.Zxid != page.Changes[i-1].Zxid {
							t.Errorf("limit %d: %+v", limit, c)
						}
						got = append(got, c.Kind+" "+c.Path)
					}
					q.Before, hidden = page.Next, hidden || page.Hidden > 0
				}
				if !slices.Equal(got, query.want) || hidden != query.hidden {
					t.Errorf("%+v: %q, hidden %t, want %q", q, got, hidden, query.want)
				}
			}
		}
		s.end()
	})
}
