package client

import (
	"context"
	"strings"

	"github.com/gozkd/gozkd/proto"
)

// Identity is an identity that the server has assigned to the connection.
type Identity struct {
	Scheme string
	User   string // for digest the part before the colon
}

// GetACL returns a znode's access control list and its Stat.
func (c *Client) GetACL(ctx context.Context, path string) ([]proto.ACL, proto.Stat, error) {
	var resp proto.ACLResponse
	if err := c.doPath(ctx, proto.OpGetACL, path, pathOf, resp.Decode); err != nil {
		return nil, proto.Stat{}, err
	}
	return resp.ACL, resp.Stat, nil
}

// SetACL replaces a znode's access control list if the list has that version (Stat.Aversion), and
// returns the new Stat.
func (c *Client) SetACL(ctx context.Context, path string, acl []proto.ACL, version int32) (stat proto.Stat, err error) {
	err = c.doPath(ctx, proto.OpSetACL, path, func(full string) request {
		return request{body: (&proto.SetACLRequest{Path: full, ACL: acl, Version: version}).Append}
	}, stat.Decode)
	return stat, err
}

// WhoAmI returns the identities of the connection, unsorted. Every connection has at least its
// address, with the scheme "ip".
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

// Ephemerals returns the paths of the session's ephemeral znodes that begin with prefix, unsorted.
func (c *Client) Ephemerals(ctx context.Context, prefix string) ([]string, error) {
	var resp proto.StringsResponse
	if err := c.doPath(ctx, proto.OpGetEphemerals, prefix, pathOf, resp.Decode); err != nil {
		return nil, err
	}
	paths := make([]string, 0, len(resp.Strings))
	for _, p := range resp.Strings {
		// The server compares strings: /app2 matches the chroot /app.
		if c.cfg.Chroot == "" || strings.HasPrefix(p, c.cfg.Chroot+"/") {
			paths = append(paths, c.strip(p))
		}
	}
	return paths, nil
}
