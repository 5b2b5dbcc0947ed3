package recipes_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/zktest"
)

// TestWatch_Shared checks that repeated watches of one znode arm one watch.
func TestWatch_Shared(t *testing.T) {
	bubbles(t, func(t *testing.T, kind recipetest.Kind) {
		s := zktest.Start(t)
		s.Load(map[string]string{"/a": "1"})
		c := recipetest.Open(t, kind, s.Service, 10*time.Second)
		time.Sleep(time.Second) // until the event of the first connection is over, which counts as a reconnect
		var channels []<-chan client.Event
		for range 100 {
			ctx, cancel := context.WithCancel(t.Context())
			for _, path := range []string{"/a", "/none"} {
				_, ch, err := c.ExistsW(ctx, path)
				if err != nil {
					t.Fatal(err)
				}
				channels = append(channels, ch)
			}
			_, _, data, err := c.GetW(ctx, "/a")
			if err != nil {
				t.Fatal(err)
			}
			_, _, children, err := c.ChildrenW(ctx, "/a")
			if err != nil {
				t.Fatal(err)
			}
			channels = append(channels, data, children)
			cancel()
		}
		different := make(map[<-chan client.Event]bool)
		for _, ch := range channels {
			different[ch] = true
		}
		if len(different) != 3 { // data of /a, existence of /none, children of /a
			t.Errorf("%d different watches", len(different))
		}
		s.Load(map[string]string{"/a": "2", "/none": "", "/a/b": ""})
		time.Sleep(time.Second)
		for i, ch := range channels {
			select {
			case <-ch:
			default:
				t.Fatalf("watch %d has not fired", i)
			}
		}
		_, ch, err := c.ExistsW(t.Context(), "/a")
		if err != nil || different[ch] {
			t.Errorf("a watch that has fired is used again; error %v", err)
		}
	})
}

// TestWatch_MissesNothing checks that a change during a lost connection fires the watch, and so
// does the end of the session.
func TestWatch_MissesNothing(t *testing.T) {
	bubbles(t, func(t *testing.T, kind recipetest.Kind) {
		s := zktest.Start(t)
		s.Load(map[string]string{"/a": "1", "/b": ""})
		c := recipetest.Open(t, kind, s.Service, 10*time.Second)
		_, _, a, err := c.GetW(t.Context(), "/a")
		if err != nil {
			t.Fatal(err)
		}
		_, _, b, err := c.ChildrenW(t.Context(), "/b")
		if err != nil {
			t.Fatal(err)
		}
		s.Disconnect()
		s.Load(map[string]string{"/a": "2"})
		// see TestWatch_FiresAgain
		closed := func(e client.Event) bool { return kind == recipetest.Wrap && e == client.Event{} }
		if e := <-a; e.Type != proto.EventDataChanged && !closed(e) {
			t.Errorf("unexpected event %+v", e)
		}
		if len(b) > 0 {
			t.Error("a watch fired without a change")
		}
		s.ExpireSession(c.Session().ID())
		if e := <-b; e.Type != recipes.EventNotWatching && !closed(e) {
			t.Errorf("unexpected event %+v", e)
		}
	})
}

func TestNamespace(t *testing.T) {
	bubbles(t, func(t *testing.T, kind recipetest.Kind) {
		s := zktest.Start(t)
		c := recipetest.Open(t, kind, s.Service, 10*time.Second).Namespace("/apps").Namespace("/mine")
		ctx := t.Context()
		if _, _, err := c.Get(ctx, "/"); !errors.Is(err, proto.ErrNoNode) {
			t.Error(err)
		}
		if path, err := c.Create(ctx, "/a", []byte("x"), recipes.CreateOptions{}); err != nil || path != "/a" {
			t.Fatalf("create: %q, %v", path, err)
		}
		s.AssertData("/apps/mine/a", "x")
		if _, err := c.Create(ctx, "/b/c", nil, recipes.CreateOptions{}); !errors.Is(err, proto.ErrNoNode) {
			t.Error(err)
		}
		path, err := c.Create(ctx, "/q/n-", nil, recipes.CreateOptions{Ephemeral: true, Sequential: true, Protected: true, Parents: true})
		if err != nil {
			t.Fatal(err)
		}
		s.AssertOwner("/apps/mine"+path, c.Session().ID())
		names, _, err := c.Children(ctx, "/")
		if err != nil || len(names) != 2 {
			t.Errorf("children: %q, %v", names, err)
		}
		op := client.CreateOp("/m", nil, client.CreateOptions{ACL: proto.OpenACL()})
		if results, err := c.Multi(ctx, op); err != nil || results[0].Path != "/m" || op.Request.Path != "/m" {
			t.Errorf("multi: %+v, %v; the caller's op is %+v", results, err, op)
		}
		s.AssertExists("/apps/mine/m")
		if err := c.Delete(ctx, "/a", -1); err != nil {
			t.Error(err)
		}
		s.AssertMissing("/apps/mine/a")
	})
}

func TestParents_AreContainers(t *testing.T) {
	bubbles(t, func(t *testing.T, kind recipetest.Kind) {
		s := zktest.Start(t)
		c := recipetest.Open(t, kind, s.Service, 10*time.Second)
		if _, err := c.Create(t.Context(), "/a/b/c", nil, recipes.CreateOptions{Parents: true}); err != nil {
			t.Fatal(err)
		}
		if err := c.Delete(t.Context(), "/a/b/c", -1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Minute) // the server looks for empty containers once a minute
		s.AssertMissing("/a")
		// Containers may be deleted between their creation and their use.
		for range exhaustive.Or(7, 20) {
			if _, err := c.Create(t.Context(), "/a/b/c", nil, recipes.CreateOptions{Parents: true}); err != nil {
				t.Fatal(err)
			}
			if err := c.Delete(t.Context(), "/a/b/c", -1); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Second)
		}
	})
}

func TestHeld(t *testing.T) {
	bubbles(t, func(t *testing.T, kind recipetest.Kind) {
		s := zktest.Start(t)
		s.Load(map[string]string{"/data": "0"})
		c := recipetest.Open(t, kind, s.Service, 10*time.Second)
		ctx := t.Context()
		hold := func() *recipes.Hold {
			t.Helper()
			path, err := c.Create(ctx, "/lock/n-", nil, recipes.CreateOptions{Ephemeral: true, Sequential: true, Protected: true, Parents: true})
			if err != nil {
				t.Fatal(err)
			}
			h := c.NewHold(recipes.HoldSpec{Session: c.Session(), Path: path, Token: int64(s.Znode(path).Stat.Czxid)})
			if h.Path() != path || h.Context().Err() != nil {
				t.Errorf("hold %q: %v", h.Path(), h.Context().Err())
			}
			return h
		}
		set := client.SetOp("/data", []byte("1"), -1)

		h := hold()
		if results, err := h.Commit(ctx, set); err != nil || len(results) != 1 || results[0].Stat.Version != 1 {
			t.Errorf("commit: %+v, %v", results, err)
		}
		// Revoked is closed when the znode's data become Curator's request, and not before.
		for _, x := range []struct {
			data    string
			revoked bool
		}{{"x", false}, {"__REVOKE__", true}, {"y", true}, {"__REVOKE__", true}} {
			time.Sleep(time.Second)
			if _, err := c.Set(ctx, h.Path(), []byte(x.data), -1); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Second)
			revoked := false
			select {
			case <-h.Revoked():
				revoked = true
			default:
			}
			if revoked != x.revoked || h.Context().Err() != nil {
				t.Errorf("after %q: revoked %v, %v", x.data, revoked, h.Context().Err())
			}
		}
		// When the znode is deleted, the Hold ends.
		if err := c.Delete(ctx, h.Path(), -1); err != nil {
			t.Error(err)
		}
		if _, err := h.Commit(ctx, set); !errors.Is(err, recipes.ErrNotHeld) {
			t.Error(err)
		}
		<-h.Context().Done()
		if cause := context.Cause(h.Context()); !errors.Is(cause, recipes.ErrNotHeld) {
			t.Error(cause)
		}

		// The server knows before the client does: the guard refuses.
		next := hold()
		if next.Token() <= h.Token() {
			t.Errorf("token %d is not greater than %d", next.Token(), h.Token())
		}
		if _, err := c.Multi(ctx, client.DeleteOp(next.Path(), -1), set); err != nil {
			t.Error(err)
		}
		if _, err := c.Multi(ctx, next.Guard(set)...); !errors.Is(err, proto.ErrNoNode) {
			t.Error(err)
		}

		last := hold()
		if err := last.Release(ctx); err != nil || last.Context().Err() == nil {
			t.Errorf("release: %v; Context: %v", err, last.Context().Err())
		}
		s.AssertMissing(last.Path())
		// Nobody asks whether the Hold lasts, so only the watch can end it, also when somebody else
		// deletes the znode.
		none := c.NewHold(recipes.HoldSpec{Session: c.Session(), Path: last.Path(), Token: 0})
		gone := hold()
		time.Sleep(time.Second)
		if err := c.Delete(ctx, gone.Path(), -1); err != nil {
			t.Error(err)
		}
		for _, h := range []*recipes.Hold{none, gone} {
			<-h.Context().Done()
			if cause := context.Cause(h.Context()); !errors.Is(cause, recipes.ErrNotHeld) {
				t.Error(cause)
			}
		}

		lost := hold()
		s.ExpireSession(c.Session().ID())
		<-lost.Context().Done()
		if cause := context.Cause(lost.Context()); !errors.Is(cause, recipes.ErrSessionLost) {
			t.Error(cause)
		}
		if err := lost.Release(ctx); err != nil {
			t.Error(err)
		}
	})
}

// TestClose_Anytime closes a Client in every state of its connection. Close must return soon, and
// the bubble only ends if no goroutine is left.
func TestClose_Anytime(t *testing.T) {
	bubbles(t, func(t *testing.T, kind recipetest.Kind) {
		for _, state := range []string{"connected", "server gone", "silent", "silent for long", "working", "held"} {
			s := zktest.Start(t)
			s.Load(map[string]string{"/a": ""})
			c := recipetest.Open(t, kind, s.Service, 10*time.Second)
			switch state {
			case "server gone":
				s.Kill()
				time.Sleep(3 * time.Second)
			case "silent":
				s.Partition()
				c.Get(canceled(t), "/a") //nolint:errcheck // it stays under way
			case "silent for long":
				s.Partition()
				time.Sleep(15 * time.Second)
			case "working":
				s.DropReply(zktest.Create)
				c.Create(canceled(t), "/a/n", nil, recipes.CreateOptions{Sequential: true, Protected: true}) //nolint:errcheck // it is undone
			case "held":
				path, err := c.Create(t.Context(), "/h", nil, recipes.CreateOptions{Ephemeral: true})
				if err != nil {
					t.Fatal(err)
				}
				c.NewHold(recipes.HoldSpec{Session: c.Session(), Path: path, Token: 1})
				time.Sleep(time.Second)
			}
			begun := time.Now()
			err := c.Close()
			if took := time.Since(begun); took > 7*time.Second {
				t.Errorf("%s: close took %v", state, took)
			}
			if err != nil && (kind == "connect" || state != "silent" && state != "silent for long") {
				t.Errorf("%s: %v", state, err)
			}
			if state == "working" {
				s.AssertChildren("/a")
			}
			if state == "held" {
				s.AssertMissing("/h")
			}
			s.Heal()
			if s.Server() == nil {
				s.Start()
			}
		}
	})
}

// canceled returns a context that ends in a moment, when the request made with it is on its way.
func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	return ctx
}

// TestNamespace_Configured gives namespaces as they come from configurations.
func TestNamespace_Configured(t *testing.T) {
	bubbles(t, func(t *testing.T, kind recipetest.Kind) {
		s := zktest.Start(t)
		c := recipetest.Open(t, kind, s.Service, 10*time.Second)
		for namespace, want := range map[string]string{"": "/a", "/": "/b", "app": "/app/c", "/app/": "/app/d"} {
			name := want[strings.LastIndex(want, "/"):]
			if created, err := c.Namespace(namespace).Create(t.Context(), name, nil, recipes.CreateOptions{}); err != nil || created != name {
				t.Errorf("%q: %q, %v", namespace, created, err)
			}
			s.AssertExists(want)
		}
		if _, err := c.Namespace("a/../b").Exists(t.Context(), "/x"); err == nil {
			t.Error("an invalid namespace can be used")
		}
		n := c.Namespace("app")
		for _, invalid := range []string{"x", ""} { // must not be /appx and /app
			if created, err := n.Create(t.Context(), invalid, nil, recipes.CreateOptions{Parents: true}); err == nil {
				t.Errorf("created %q", created)
			}
			if _, err := n.Multi(t.Context(), client.CreateOp(invalid, nil, client.CreateOptions{})); err == nil {
				t.Errorf("a multi created %q", invalid)
			}
			if _, _, err := n.Children(t.Context(), invalid); !errors.Is(err, proto.ErrBadArguments) {
				t.Errorf("%q: %v", invalid, err)
			}
		}
		s.AssertMissing("/appx")
	})
}
