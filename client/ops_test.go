package client_test

import (
	"errors"
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// zookeeper is the address of another server for TestOps_ZooKeeper.
var zookeeper = flag.String("zookeeper", "", "run TestOps_ZooKeeper against this server, which must be empty, know TTLs (extendedTypesEnabled) and have no /t")

// TestOps_ZooKeeper runs the same on another server.
func TestOps_ZooKeeper(t *testing.T) {
	if *zookeeper == "" {
		t.Skip("-zookeeper names no server")
	}
	c, err := client.Connect(t.Context(), client.Config{Servers: []string{*zookeeper}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	testOps(t, c)
	if err := c.Delete(t.Context(), "/t", client.AnyVersion); err != nil {
		t.Error(err)
	}
}

func TestOps(t *testing.T) {
	s := startServer(t, server.Config{})
	c, _, _ := connect(t, s)
	testOps(t, c)
}

// A request that a server would take for an attack is not sent, and the connection lasts.
func TestOps_TooLarge(t *testing.T) {
	c, _, _ := connect(t, startServer(t, server.Config{}), func(cfg *client.Config) { cfg.MaxRequest = server.DefaultMaxBuffer })
	var e *client.Error
	_, _, err := c.Create(t.Context(), "/t", make([]byte, server.DefaultMaxBuffer), client.CreateOptions{})
	if !errors.Is(err, client.ErrTooLarge) || !errors.As(err, &e) || e.Unknown {
		t.Error(err)
	}
	if _, _, err := c.Create(t.Context(), "/t", make([]byte, server.DefaultMaxBuffer-100), client.CreateOptions{}); err != nil {
		t.Error(err)
	}
}

// TestOps_Chroot runs the same below a chroot, and checks that a client without one sees it there.
func TestOps_Chroot(t *testing.T) {
	s := startServer(t, server.Config{})
	root, _, _ := connect(t, s)
	if _, _, err := root.Create(t.Context(), "/app", nil, client.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c, _, _ := connect(t, s, func(cfg *client.Config) { cfg.Chroot = "/app" })
	testOps(t, c)
	children, _, err := root.Children(t.Context(), "/app", false)
	if err != nil || !slices.Contains(children, "t") {
		t.Errorf("children of /app: %q, %v", children, err)
	}
}

func testOps(t *testing.T, c *client.Client) {
	t.Helper()
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	created, stat, err := c.Create(ctx, "/t", []byte("x"), client.CreateOptions{})
	check(err)
	if created != "/t" || stat.DataLength != 1 || stat.Czxid == 0 {
		t.Fatalf("created %q, %+v", created, stat)
	}
	if _, _, err = c.Create(ctx, "/t", nil, client.CreateOptions{}); !errors.Is(err, proto.ErrNodeExists) {
		t.Fatalf("created twice: %v", err)
	}
	data, stat, err := c.Get(ctx, "/t", false)
	check(err)
	if string(data) != "x" || stat.Version != 0 {
		t.Fatalf("got %q, %+v", data, stat)
	}
	stat, err = c.Set(ctx, "/t", []byte{}, 0)
	check(err)
	if data, _, err = c.Get(ctx, "/t", false); err != nil || data == nil || len(data) != 0 || stat.Version != 1 {
		t.Fatalf("empty data came back as %v, %v", data, err)
	}
	if _, err = c.Set(ctx, "/t", nil, 0); !errors.Is(err, proto.ErrBadVersion) {
		t.Fatalf("set with an old version: %v", err)
	}
	_, err = c.Set(ctx, "/t", nil, client.AnyVersion)
	check(err)
	if data, _, err = c.Get(ctx, "/t", false); err != nil || data != nil {
		t.Fatalf("null data came back as %v, %v", data, err)
	}
	for _, o := range []client.CreateOptions{
		{}, {Sequential: true}, {Ephemeral: true}, {Ephemeral: true, Sequential: true}, {Container: true},
	} {
		created, stat, err = c.Create(ctx, "/t/k", nil, o)
		check(err)
		owner := proto.SessionID(0)
		if o.Ephemeral { // containers have no owner
			owner = proto.SessionID(c.Session().ID)
		}
		if stat.EphemeralOwner != owner || (created != "/t/k") != o.Sequential {
			t.Errorf("%+v: %q, owner %v, want %v", o, created, stat.EphemeralOwner, owner)
		}
		if got, there, err := c.Exists(ctx, created, false); err != nil || !there || got != stat {
			t.Errorf("%+v: %+v, %v, %v; created %+v", o, got, there, err, stat)
		}
		if o.Ephemeral {
			if paths, err := c.Ephemerals(ctx, "/t"); err != nil || !slices.Contains(paths, created) {
				t.Errorf("ephemerals %q, %v", paths, err)
			}
		}
		check(c.Delete(ctx, created, 0))
	}
	if _, _, err := c.Create(ctx, "/t/k", nil, client.CreateOptions{Ephemeral: true, Container: true}); !errors.Is(err, proto.ErrBadArguments) {
		t.Errorf("an ephemeral container: %v", err)
	}
	if _, there, err := c.Exists(ctx, "/none", false); there || err != nil {
		t.Errorf("exists of nothing: %v, %v", there, err)
	}
	acl := []proto.ACL{{Perms: proto.PermRead | proto.PermAdmin, ID: proto.ID{Scheme: "world", ID: "anyone"}}}
	_, _, err = c.Create(ctx, "/t/acl", nil, client.CreateOptions{ACL: acl})
	check(err)
	if got, _, err := c.GetACL(ctx, "/t/acl"); err != nil || !slices.Equal(got, acl) {
		t.Errorf("acl %v, %v", got, err)
	}
	if _, err := c.Set(ctx, "/t/acl", nil, -1); !errors.Is(err, proto.ErrNoAuth) {
		t.Errorf("set without permission: %v", err)
	}
	stat, err = c.SetACL(ctx, "/t/acl", proto.OpenACL(), 0)
	check(err)
	if stat.Aversion != 1 {
		t.Errorf("aversion %d", stat.Aversion)
	}
	if names, stat, err := c.Children(ctx, "/t", false); err != nil || !slices.Equal(names, []string{"acl"}) || stat.NumChildren != 1 {
		t.Errorf("children %q, %+v, %v", names, stat, err)
	}
	if n, err := c.ChildrenCount(ctx, "/t"); err != nil || n != 1 {
		t.Errorf("children count %d, %v", n, err)
	}
	if path, err := c.Sync(ctx, "/t"); err != nil || path != "/t" {
		t.Errorf("sync %q, %v", path, err)
	}
	check(c.AddAuth(ctx, "digest", []byte("ann:secret")))
	who, err := c.WhoAmI(ctx)
	if err != nil || !slices.Contains(who, client.Identity{Scheme: "digest", User: "ann"}) {
		t.Errorf("who: %v, %v", who, err)
	}
	if _, _, err := c.Config(ctx, false); err != nil {
		t.Errorf("config: %v", err)
	}
	if _, _, err := c.Reconfig(ctx, "", "9", "", -1); err == nil {
		t.Error("a server alone was reconfigured")
	}
	testMulti(t, c)
	check(c.Delete(ctx, "/t/acl", -1))
	if err := c.Delete(ctx, "/t/acl", -1); !errors.Is(err, proto.ErrNoNode) {
		t.Errorf("deleted twice: %v", err)
	}
	if _, _, err := c.Get(ctx, "t", false); !errors.Is(err, proto.ErrInvalidPath) {
		t.Errorf("relative path: %v", err)
	}
}

func testMulti(t *testing.T, c *client.Client) {
	t.Helper()
	ctx := t.Context()
	results, err := c.Multi(ctx, client.CreateOp("/t/m", []byte("1"), client.CreateOptions{}), client.SetOp("/t/m", []byte("2"), 0),
		client.CheckOp("/t/m", 1), client.CreateOp("/t/m/s-", nil, client.CreateOptions{Sequential: true}))
	if err != nil || len(results) != 4 || results[3].Path != "/t/m/s-0000000000" || results[1].Stat.Version != 1 {
		t.Fatalf("multi: %+v, %v", results, err)
	}
	results, err = c.Multi(ctx, client.SetOp("/t/m", []byte("3"), -1), client.DeleteOp("/t/none", -1), client.DeleteOp("/t/m", -1))
	var e *client.Error
	if !errors.As(err, &e) || e.Code != proto.ErrNoNode || e.Path != "/t/none" || results[0].Err != nil ||
		!errors.Is(results[2].Err, proto.ErrRuntimeInconsistency) {
		t.Fatalf("failed multi: %+v, %v", results, err)
	}
	results, err = c.MultiRead(ctx, client.GetOp("/t/m"), client.ChildrenOp("/t/m"), client.GetOp("/t/none"))
	if err != nil || string(results[0].Data) != "2" || len(results[1].Children) != 1 || !errors.Is(results[2].Err, proto.ErrNoNode) {
		t.Fatalf("multiRead: %+v, %v", results, err)
	}
	if _, err = c.Multi(ctx, client.GetOp("/t/m")); !errors.Is(err, proto.ErrNotInMulti) {
		t.Fatalf("a read in a multi: %v", err)
	}
	if _, err = c.Multi(ctx, client.DeleteOp("/t/m/s-0000000000", 0), client.DeleteOp("/t/m", -1)); err != nil {
		t.Fatal(err)
	}
	created, _, err := c.Create(ctx, "/t/ttl", nil, client.CreateOptions{TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(ctx, created, -1); err != nil {
		t.Fatal(err)
	}
}
