package client

import (
	"context"

	"github.com/gozkd/gozkd/proto"
)

// configPath is the znode in which servers publish the membership.
const configPath = "/zookeeper/config"

// Config returns the members of the ensemble, from /zookeeper/config whatever the chroot, and the
// Stat of that znode, whose Mzxid is the version of the configuration. Watch events have the path
// /zookeeper/config.
func (c *Client) Config(ctx context.Context, watch bool) ([]byte, proto.Stat, error) {
	return c.get(ctx, configPath, configPath, watch)
}

// Reconfig changes the members of the ensemble: either by joining (server lines separated by
// commas) and leaving (numbers), or by a list of all members. An empty string is absent. version is
// the expected version of the configuration, or -1. Reconfig returns the new configuration and the
// Stat of its znode.
func (c *Client) Reconfig(ctx context.Context, joining, leaving, members string, version int64) ([]byte, proto.Stat, error) {
	req := proto.ReconfigRequest{Joining: nonEmpty(joining), Leaving: nonEmpty(leaving), NewMembers: nonEmpty(members), ConfigID: version}
	var resp proto.DataResponse
	if err := c.do(ctx, request{op: proto.OpReconfig, body: req.Append}, resp.Decode); err != nil {
		return nil, proto.Stat{}, err
	}
	return resp.Data, resp.Stat, nil
}

func nonEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
