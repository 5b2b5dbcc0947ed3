package recipes_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/tcpport"
	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
)

// TestEssentials loses the answer to each frame in turn, and checks that every operation is done
// once.
func TestEssentials(t *testing.T) {
	address := recipetest.Servers(t)
	cut := &recipetest.Cutter{}
	ctx := watchdog.Context(t, time.Minute)
	c, err := recipes.Connect(ctx, address, recipes.SessionTimeout(10*time.Second), recipes.Dialer(cut.Dial), recipes.Logger(recipetest.NewLogger(t)))
	if err != nil {
		t.Fatal(err)
	}
	root, err := c.Create(ctx, "/gozkd-recipes-", nil, recipes.CreateOptions{Sequential: true})
	if err != nil {
		t.Fatal(err)
	}
	n := c.Namespace(root)
	session := c.Session()
	for k := 1; k <= 6; k++ {
		cut.Arm(k)
		created, err := n.Create(ctx, "/q/n-", []byte("x"), recipes.CreateOptions{Ephemeral: true, Sequential: true, Protected: true, Parents: true})
		if err != nil {
			t.Fatal(err)
		}
		stat, err := n.Idempotent().Set(ctx, created, []byte("y"), 0)
		if err != nil || stat.Version != 1 {
			t.Fatalf("set: %+v, %v", stat, err)
		}
		names, _, err := n.Children(ctx, "/q")
		if err != nil || len(names) != 1 {
			t.Fatalf("children: %q, %v", names, err)
		}
		h := n.NewHold(recipes.HoldSpec{Session: session, Path: created, Token: int64(stat.Czxid)})
		if _, err := h.Commit(ctx, client.SetOp("/q", []byte("z"), -1)); err != nil && !errors.Is(err, recipes.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		if err := h.Release(ctx); err != nil {
			t.Fatal(err)
		}
		cut.Arm(0)
		recipetest.AssertEmpty(ctx, t, n, "/q")
	}
	if c.Session() != session || session.Context().Err() != nil {
		t.Error("the session was lost")
	}
	for _, path := range []string{root + "/q", root} {
		if err := c.DeleteGuaranteed(ctx, path); err != nil {
			t.Error(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestConnect_Auth(t *testing.T) {
	address := recipetest.Servers(t)
	c, err := recipes.Connect(t.Context(), address, recipes.Auth("digest", []byte("anna:secret")), recipes.ACL(proto.ACL{Perms: proto.PermAll, ID: proto.ID{Scheme: "auth"}}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	path, err := c.Create(t.Context(), "/gozkd-recipes-", nil, recipes.CreateOptions{Ephemeral: true, Sequential: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Get(t.Context(), path); err != nil {
		t.Error(err)
	}
	other, err := recipes.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.Sync(t.Context(), path); err != nil {
		t.Error(err)
	}
	if _, _, err := other.Get(t.Context(), path); !errors.Is(err, proto.ErrNoAuth) {
		t.Error(err)
	}
}

func TestConnect_Fails(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // accepts connections and never answers
	gone, err := tcpport.Reserve("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Release()
	for _, address := range []string{l.Addr().String(), gone.Address()} {
		soon := watchdog.Context(t, 5*time.Second)
		if _, err := recipes.Connect(ctx, []string{address}); !errors.Is(err, context.DeadlineExceeded) || soon.Err() != nil {
			t.Errorf("Connect returned late (%v), or %v", soon.Err(), err)
		}
	}
	if _, err := recipes.Connect(t.Context(), nil); err == nil {
		t.Error("Connect succeeded without servers")
	}
	if _, err := recipes.Connect(t.Context(), []string{"x"}, recipes.SessionTimeout(0), recipes.Retry(nil), recipes.ACL()); err == nil {
		t.Error("Connect accepted invalid options")
	}
}

// A refused credential ends Connect with its reason.
func TestConnect_AuthRefused(t *testing.T) {
	_, err := recipes.Connect(watchdog.Context(t, 20*time.Second), recipetest.Servers(t), recipes.Auth("nonsense", []byte("a:b")))
	if !errors.Is(err, proto.ErrAuthFailed) {
		t.Error(err)
	}
}

// A result of an operation that creates nothing has no path.
func TestMulti_Paths(t *testing.T) {
	whole, err := recipes.Connect(t.Context(), recipetest.Servers(t))
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	c := whole.Namespace("/gozkd-multi-paths")
	if err := c.Ensure(t.Context(), "/"); err != nil {
		t.Fatal(err)
	}
	results, err := c.Multi(t.Context(), client.CreateOp("/a", nil, client.CreateOptions{}), client.SetOp("/a", nil, -1), client.DeleteOp("/a", -1))
	if err != nil || len(results) != 3 || results[0].Path != "/a" || results[1].Path+results[2].Path != "" {
		t.Errorf("%v, %+v", err, results)
	}
}
