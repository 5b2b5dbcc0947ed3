package server

import (
	"crypto/sha1" //nolint:gosec // the protocol's digest scheme is defined with SHA-1
	"crypto/subtle"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// superID passes every ACL check.
var superID = proto.ID{Scheme: "super"}

// authenticate adds an identity to the connection. It counts for requests that come after it.
func (c *conn) authenticate(d *jute.Decoder) proto.ErrCode {
	var r proto.AuthRequest
	r.Decode(d)
	if d.Err() != nil {
		return proto.ErrAuthFailed
	}
	switch {
	case r.Scheme == "ip": // everybody has it already
		return proto.OK
	case r.Scheme == "digest" && r.Auth != nil && !c.server.live.Load().DisableDigest && c.addDigest(jute.Text(r.Auth)):
		return proto.OK
	}
	c.server.stats.authFailed.Add(1)
	c.logger().Warn("authentication failed", "scheme", strings.Clone(r.Scheme))
	return proto.ErrAuthFailed
}

// maxIDBytes bounds the identities of a connection: they go into the log with each of its writes.
const maxIDBytes = 8 << 10

// addDigest reports whether the identity could be added.
func (c *conn) addDigest(userPassword string) bool {
	user, _, _ := strings.Cut(userPassword, ":")
	sum := sha1.Sum([]byte(userPassword)) //nolint:gosec // see the import
	id := user + ":" + base64.StdEncoding.EncodeToString(sum[:])
	ids := slices.Clone(c.ids) // requests under way keep the old one
	add := func(id proto.ID) {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	add(proto.ID{Scheme: "digest", ID: id})
	if s := c.server.live.Load().SuperDigest; s != "" && subtle.ConstantTimeCompare([]byte(s), []byte(id)) == 1 {
		add(superID)
	}
	size := 0
	for _, id := range ids {
		size += len(id.Scheme) + len(id.ID)
	}
	if size > maxIDBytes {
		return false
	}
	c.ids = ids
	return true
}
