package gozk

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/cases"
)

func (s *script) multis() []work {
	return []work{
		{"multi_commits", multiCommits},
		{"multi_rolls_back", multiRollsBack},
		{"multi_checks_a_version", multiChecks},
		{"multi_creates_every_kind", multiKinds},
	}
}

func multiCommits(_ context.Context, c *zk.Conn, root string) {
	r := must.Get(c.Multi(
		&zk.CreateRequest{Path: root + "/a", Data: []byte("1"), Acl: open()},
		&zk.SetDataRequest{Path: root + "/a", Data: []byte("2"), Version: 0},
		&zk.CreateRequest{Path: root + "/a/b-", Acl: open(), Flags: zk.FlagSequence},
		&zk.CheckVersionRequest{Path: root + "/a", Version: 1},
		&zk.CreateRequest{Path: root + "/gone", Acl: open()},
		&zk.DeleteRequest{Path: root + "/gone", Version: -1},
	))
	if len(r) != 6 || r[0].String != root+"/a" || r[1].Stat == nil || r[1].Stat.Version != 1 || r[2].String != root+"/a/b-0000000000" {
		must.Failf("got %+v", r)
	}
	data, stat := must.Get2(c.Get(root + "/a"))
	if string(data) != "2" || stat.NumChildren != 1 || stat.Czxid != stat.Mzxid || stat.Czxid != stat.Pzxid {
		must.Failf("got %q %+v", data, stat)
	}
}

func multiRollsBack(_ context.Context, c *zk.Conn, root string) {
	r, err := c.Multi(
		&zk.CreateRequest{Path: root + "/a", Acl: open()},
		&zk.DeleteRequest{Path: root + "/none", Version: -1},
		&zk.CreateRequest{Path: root + "/b", Acl: open()},
	)
	want("multi", err, zk.ErrNoNode)
	if len(r) != 3 || r[0].Error != nil || !errors.Is(r[1].Error, zk.ErrNoNode) || r[2].Error == nil {
		must.Failf("got %+v", r)
	}
	names, _ := must.Get2(c.Children(root))
	if len(names) != 0 {
		must.Failf("left behind: %q", names)
	}
}

func multiChecks(_ context.Context, c *zk.Conn, root string) {
	_, err := c.Multi(
		&zk.CheckVersionRequest{Path: root, Version: 9},
		&zk.CreateRequest{Path: root + "/a", Acl: open()},
	)
	want("multi", err, zk.ErrBadVersion)
	exists, _ := must.Get2(c.Exists(root + "/a"))
	cases.Expect("exists", exists, false)
}

func multiKinds(_ context.Context, c *zk.Conn, root string) {
	r := must.Get(c.Multi(
		&zk.CreateRequest{Path: root + "/e", Acl: open(), Flags: zk.FlagEphemeral},
		&zk.CreateRequest{Path: root + "/s-", Acl: open(), Flags: zk.FlagSequence},
		&zk.CreateRequest{Path: root + "/s-", Acl: open(), Flags: zk.FlagSequence | zk.FlagEphemeral},
	))
	if r[1].String != root+"/s-0000000001" || r[2].String != root+"/s-0000000002" {
		must.Failf("got %+v", r)
	}
	for path, ephemeral := range map[string]bool{r[0].String: true, r[1].String: false, r[2].String: true} {
		_, stat := must.Get2(c.Exists(path))
		if (stat.EphemeralOwner == c.SessionID()) != ephemeral {
			must.Failf("%s: %+v", path, stat)
		}
	}
}
