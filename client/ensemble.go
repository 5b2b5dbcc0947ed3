package client

import (
	"context"

	"github.com/gozkd/gozkd/proto"
)

// configPath is where servers keep their membership.
const configPath = "/zookeeper/config"

// Config returns the members of the ensemble as /zookeeper/config has them, whatever the chroot, and the Stat of that
// znode, whose Mzxid is the version of the configuration. The event of a watch has the path /zookeeper/config.
func (c *Client) Config(ctx context.Context, watch bool) ([]byte, proto.Stat, error) {
	return c.get(ctx, configPath, configPath, watch)
}

// Reconfig changes the members of the ensemble: either joining (server lines with commas between) and leaving (numbers), or
// all members at once. An empty string is absent. version is the one that the configuration must have, or -1. It returns the
// new configuration and the Stat of its znode.
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
