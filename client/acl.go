package client

import (
	"context"
	"strings"

	"github.com/gozkd/gozkd/proto"
)

// Identity is who the server takes the connection for, under one scheme.
type Identity struct {
	Scheme string
	User   string // for digest the part before the colon
}

// GetACL returns a znode's access control list and its Stat.
func (c *Client) GetACL(ctx context.Context, path string) ([]proto.ACL, proto.Stat, error) {
	full, err := c.full(proto.OpGetACL, path)
	if err != nil {
		return nil, proto.Stat{}, err
	}
	req := proto.PathRequest{Path: &full}
	var resp proto.ACLResponse
	if err := c.do(ctx, request{op: proto.OpGetACL, path: path, body: req.Append}, resp.Decode); err != nil {
		return nil, proto.Stat{}, err
	}
	return resp.ACL, resp.Stat, nil
}

// SetACL replaces a znode's access control list if that has the version (Stat.Aversion), and returns the new Stat.
func (c *Client) SetACL(ctx context.Context, path string, acl []proto.ACL, version int32) (proto.Stat, error) {
	full, err := c.full(proto.OpSetACL, path)
	if err != nil {
		return proto.Stat{}, err
	}
	req := proto.SetACLRequest{Path: full, ACL: acl, Version: version}
	var stat proto.Stat
	err = c.do(ctx, request{op: proto.OpSetACL, path: path, body: req.Append}, stat.Decode)
	return stat, err
}

// WhoAmI returns whom the server takes the connection for, in no order. Every connection has its address, scheme "ip".
func (c *Client) WhoAmI(ctx context.Context) ([]Identity, error) {
	var resp proto.WhoAmIResponse
	if err := c.do(ctx, request{op: proto.OpWhoAmI}, resp.Decode); err != nil {
		return nil, err
	}
	ids := make([]Identity, 0, len(resp.IDs))
	for _, id := range resp.IDs {
		ids = append(ids, Identity{Scheme: id.Scheme, User: id.ID})
	}
	return ids, nil
}

// Ephemerals returns the paths of the session's own ephemeral znodes that begin with prefix, in no order.
func (c *Client) Ephemerals(ctx context.Context, prefix string) ([]string, error) {
	full, err := c.full(proto.OpGetEphemerals, prefix)
	if err != nil {
		return nil, err
	}
	req := proto.PathRequest{Path: &full}
	var resp proto.StringsResponse
	if err := c.do(ctx, request{op: proto.OpGetEphemerals, path: prefix, body: req.Append}, resp.Decode); err != nil {
		return nil, err
	}
	paths := make([]string, 0, len(resp.Strings))
	for _, p := range resp.Strings {
		// The server compares strings: for it /app2 begins with the chroot /app.
		if c.cfg.Chroot == "" || strings.HasPrefix(p, c.cfg.Chroot+"/") {
			paths = append(paths, c.strip(p))
		}
	}
	return paths, nil
}
