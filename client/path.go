package client

import (
	"fmt"
	"strings"

	"github.com/gozkd/gozkd/proto"
)

// full returns the server's path of a caller's path. A path that is not valid is refused here: with a chroot it could reach
// outside.
func (c *Client) full(op proto.OpCode, path string) (string, error) {
	return c.newPath(op, path, false)
}

// newPath is full of a znode to be created, whose name may be all digits of the server's.
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

// strip returns the caller's path of a server's path; what is not below the chroot stays as it is.
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

// refuse is the error of a request that is not sent.
func (c *Client) refuse(op proto.OpCode, path string, why error) error {
	return &Error{Op: op.String(), Path: path, Code: proto.ErrBadArguments, Cause: fmt.Errorf("not sent: %w", why)}
}
