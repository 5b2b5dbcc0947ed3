package gozk

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"
)

func (s *script) multis() []work {
	return []work{
		{"multi_commits", multiCommits},
		{"multi_rolls_back", multiRollsBack},
		{"multi_checks_a_version", multiChecks},
		{"multi_creates_every_kind", multiKinds},
	}
}

func multiCommits(_ context.Context, c *zk.Conn, root string) error {
	r, err := c.Multi(
		&zk.CreateRequest{Path: root + "/a", Data: []byte("1"), Acl: open()},
		&zk.SetDataRequest{Path: root + "/a", Data: []byte("2"), Version: 0},
		&zk.CreateRequest{Path: root + "/a/b-", Acl: open(), Flags: zk.FlagSequence},
		&zk.CheckVersionRequest{Path: root + "/a", Version: 1},
		&zk.CreateRequest{Path: root + "/gone", Acl: open()},
		&zk.DeleteRequest{Path: root + "/gone", Version: -1},
	)
	if err != nil {
		return err
	}
	if len(r) != 6 || r[0].String != root+"/a" || r[1].Stat == nil || r[1].Stat.Version != 1 || r[2].String != root+"/a/b-0000000000" {
		return fmt.Errorf("got %+v", r)
	}
	data, stat, err := c.Get(root + "/a")
	if err != nil {
		return err
	}
	if string(data) != "2" || stat.NumChildren != 1 || stat.Czxid != stat.Mzxid || stat.Czxid != stat.Pzxid {
		return fmt.Errorf("got %q %+v", data, stat)
	}
	return nil
}

func multiRollsBack(_ context.Context, c *zk.Conn, root string) error {
	r, err := c.Multi(
		&zk.CreateRequest{Path: root + "/a", Acl: open()},
		&zk.DeleteRequest{Path: root + "/none", Version: -1},
		&zk.CreateRequest{Path: root + "/b", Acl: open()},
	)
	if err := want("multi", err, zk.ErrNoNode); err != nil {
		return err
	}
	if len(r) != 3 || r[0].Error != nil || !errors.Is(r[1].Error, zk.ErrNoNode) || r[2].Error == nil {
		return fmt.Errorf("got %+v", r)
	}
	names, _, err := c.Children(root)
	if err != nil {
		return err
	}
	if len(names) != 0 {
		return fmt.Errorf("left behind: %q", names)
	}
	return nil
}

func multiChecks(_ context.Context, c *zk.Conn, root string) error {
	_, err := c.Multi(
		&zk.CheckVersionRequest{Path: root, Version: 9},
		&zk.CreateRequest{Path: root + "/a", Acl: open()},
	)
	if err := want("multi", err, zk.ErrBadVersion); err != nil {
		return err
	}
	exists, _, err := c.Exists(root + "/a")
	if err == nil && exists {
		err = errNotGone
	}
	return err
}

func multiKinds(_ context.Context, c *zk.Conn, root string) error {
	r, err := c.Multi(
		&zk.CreateRequest{Path: root + "/e", Acl: open(), Flags: zk.FlagEphemeral},
		&zk.CreateRequest{Path: root + "/s-", Acl: open(), Flags: zk.FlagSequence},
		&zk.CreateRequest{Path: root + "/s-", Acl: open(), Flags: zk.FlagSequence | zk.FlagEphemeral},
	)
	if err != nil {
		return err
	}
	if r[1].String != root+"/s-0000000001" || r[2].String != root+"/s-0000000002" {
		return fmt.Errorf("got %+v", r)
	}
	for path, ephemeral := range map[string]bool{r[0].String: true, r[1].String: false, r[2].String: true} {
		_, stat, err := c.Exists(path)
		if err != nil {
			return err
		}
		if (stat.EphemeralOwner == c.SessionID()) != ephemeral {
			return fmt.Errorf("%s: %+v", path, stat)
		}
	}
	return nil
}
