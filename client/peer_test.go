package client_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// TestAgreesWithGoZookeeper: what one client writes, the other reads, and both get the same errors.
func TestAgreesWithGoZookeeper(t *testing.T) {
	s := startServer(t, server.Config{})
	c, e, _ := connect(t, s)
	theirs, _, err := zk.Connect([]string{s.ConnectString()}, 10*time.Second, zk.WithDialer(s.Dialer()), zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	ctx := t.Context()
	open := zk.WorldACL(zk.PermAll)
	same := func(what string, ours error, theirs error, want proto.ErrCode, zkWant error) {
		t.Helper()
		if !errors.Is(ours, want) || !errors.Is(theirs, zkWant) {
			t.Errorf("%s: %v; go-zookeeper: %v", what, ours, theirs)
		}
	}
	if _, _, err := c.Create(ctx, "/ours", []byte("1"), client.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := theirs.Create("/theirs", []byte("2"), 0, open); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"/ours", "/theirs"} {
		a, stat, err := c.Get(ctx, p, true)
		b, zkStat, zkErr := theirs.Get(p)
		if err != nil || zkErr != nil || !slices.Equal(a, b) || !sameStat(stat, zkStat) {
			t.Errorf("%s: %q %+v %v; go-zookeeper: %q %+v %v", p, a, stat, err, b, zkStat, zkErr)
		}
		acl, _, err := c.GetACL(ctx, p)
		zkACL, _, zkErr := theirs.GetACL(p)
		if err != nil || zkErr != nil || len(acl) != 1 || len(zkACL) != 1 || acl[0].ID.ID != zkACL[0].ID || int32(acl[0].Perms) != zkACL[0].Perms {
			t.Errorf("%s: %+v %v; go-zookeeper: %+v %v", p, acl, err, zkACL, zkErr)
		}
	}
	kids, _, err := c.Children(ctx, "/", false)
	zkKids, _, zkErr := theirs.Children("/")
	slices.Sort(kids)
	slices.Sort(zkKids)
	if err != nil || zkErr != nil || !slices.Equal(kids, zkKids) {
		t.Errorf("%q, %v; go-zookeeper: %q, %v", kids, err, zkKids, zkErr)
	}
	_, _, err = c.Create(ctx, "/ours", nil, client.CreateOptions{})
	_, zkErr = theirs.Create("/ours", nil, 0, open)
	same("create twice", err, zkErr, proto.ErrNodeExists, zk.ErrNodeExists)
	_, err = c.Set(ctx, "/ours", nil, 5)
	_, zkErr = theirs.Set("/ours", nil, 5)
	same("bad version", err, zkErr, proto.ErrBadVersion, zk.ErrBadVersion)
	same("no node", c.Delete(ctx, "/x", -1), theirs.Delete("/x", -1), proto.ErrNoNode, zk.ErrNoNode)
	_, err = c.Multi(ctx, client.CheckOp("/ours", 0), client.DeleteOp("/x", 0))
	_, zkErr = theirs.Multi(&zk.CheckVersionRequest{Path: "/ours"}, &zk.DeleteRequest{Path: "/x"})
	same("multi", err, zkErr, proto.ErrNoNode, zk.ErrNoNode)

	if _, err := theirs.Set("/ours", []byte("3"), -1); err != nil {
		t.Fatal(err)
	}
	if got := e.await(t); got.Path != "/ours" || got.Type != proto.EventDataChanged {
		t.Errorf("%+v", got)
	}
}

func sameStat(a proto.Stat, b *zk.Stat) bool {
	return a == proto.Stat{
		Czxid: proto.Zxid(b.Czxid), Mzxid: proto.Zxid(b.Mzxid), CtimeMs: b.Ctime, MtimeMs: b.Mtime, Version: b.Version, Cversion: b.Cversion,
		Aversion: b.Aversion, EphemeralOwner: proto.SessionID(b.EphemeralOwner), DataLength: b.DataLength, NumChildren: b.NumChildren,
		Pzxid: proto.Zxid(b.Pzxid),
	}
}
