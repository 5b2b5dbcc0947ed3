package client

import (
	"fmt"
	"strings"

	"github.com/gozkd/gozkd/proto"
)

// full returns the server's path for a caller's path. Invalid paths are refused: they could lead
// outside the chroot.
func (c *Client) full(op proto.OpCode, path string) (string, error) {
	return c.newPath(op, path, false)
}

// newPath is full for a znode to be created. The name of a sequential znode may consist of the
// server's digits alone.
func (c *Client) newPath(op proto.OpCode, path string, sequential bool) (string, error) {
	check := path
	if sequential {
		check += "1"
	}
	if err := proto.ValidatePath(check); err != nil {
		return "", c.refuse(op, path, err)
	}
	switch {
	case c.cfg.Chroot == "":
		return path, nil
	case path == "/" && !sequential:
		return c.cfg.Chroot, nil
	default:
		return c.cfg.Chroot + path, nil
	}
}

// strip returns the caller's path for a server's path. A path outside the chroot is returned
// unchanged.
func (c *Client) strip(full string) string {
	rest, ok := strings.CutPrefix(full, c.cfg.Chroot)
	switch {
	case !ok || c.cfg.Chroot == "":
		return full
	case rest == "":
		return "/"
	case rest[0] != '/':
		return full
	default:
		return rest
	}
}

// refuse returns the error of a request that is not sent.
func (c *Client) refuse(op proto.OpCode, path string, why error) error {
	return &Error{Op: op.String(), Path: path, Code: proto.ErrBadArguments, Cause: fmt.Errorf("not sent: %w", why)}
}
