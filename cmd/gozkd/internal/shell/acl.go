package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

func runGetACL(ctx context.Context, c *call) error {
	path := c.args[0]
	if err := checkPath(path); err != nil {
		return err
	}
	acl, st, err := c.zk.GetACL(ctx, path)
	if err != nil {
		return err
	}
	r := aclResult{Path: path}
	for _, a := range acl {
		r.ACL = append(r.ACL, aclEntry{a.ID.Scheme, a.ID.ID, permString(a.Perms)})
	}
	if c.has("s") {
		r.Stat = c.stat(st)
	}
	return c.show(r)
}

type aclResult struct {
	Path string     `json:"path"`
	ACL  []aclEntry `json:"acl"`
	Stat *stat      `json:"stat,omitempty"`
}

type aclEntry struct {
	Scheme string `json:"scheme"`
	ID     string `json:"id"`
	Perms  string `json:"perms"`
}

// text writes each entry on two lines: the name of the first is in the CSV of ZooKeeper's records, newline and all.
func (r aclResult) text(out, err io.Writer) {
	for _, a := range r.ACL {
		_, _ = fmt.Fprintf(out, "'%s,'%s\n: %s\n", csv.Replace(a.Scheme), csv.Replace(a.ID), a.Perms)
	}
	r.Stat.text(out, err)
}

// csv escapes a string in the CSV of ZooKeeper's records.
var csv = strings.NewReplacer("\x00", "%00", "\n", "%0A", "\r", "%0D", ",", "%2C", "}", "%7D", "%", "%25")

// permLetters are the permissions in the order in which they are printed.
var permLetters = []struct {
	perm   proto.Perms
	letter byte
}{
	{proto.PermCreate, 'c'}, {proto.PermDelete, 'd'}, {proto.PermRead, 'r'}, {proto.PermWrite, 'w'}, {proto.PermAdmin, 'a'},
}

func permString(p proto.Perms) string {
	var b []byte
	for _, l := range permLetters {
		if p&l.perm != 0 {
			b = append(b, l.letter)
		}
	}
	return string(b)
}

func runSetACL(ctx context.Context, c *call) error {
	path := c.args[0]
	acl := c.parseACL(c.args[1])
	version, err := c.version()
	if err != nil {
		return err
	}
	if err := checkPath(path); err != nil {
		return err
	}
	if c.has("R") {
		return c.setACLBelow(ctx, path, acl, version)
	}
	if len(acl) == 0 {
		return noACL()
	}
	st, err := c.zk.SetACL(ctx, path, acl, version)
	if err != nil {
		return err
	}
	return c.showStat(path, st)
}

// setACLBelow sets the ACL of path and all below it. Where it could not it says so and goes on.
func (c *call) setACLBelow(ctx context.Context, path string, acl []proto.ACL, version int32) error {
	failed := false
	err := visit(ctx, c.zk, path, false, func(p string) error {
		var err error = noACL()
		if len(acl) > 0 {
			_, err = c.zk.SetACL(ctx, p, acl, version)
		}
		var e *client.Error
		if !errors.As(err, &e) {
			return err
		}
		failed = true
		if e.Path == noPath {
			e.Path = ""
		}
		_, err = io.WriteString(c.out, keeperMessage(e))
		return err
	})
	if err == nil && failed {
		return errFailed
	}
	return err
}

// noPath is how Java prints a path that is not there.
const noPath = "null"

// noACL is what ZooKeeper's client says of an ACL without entries, which it does not send.
func noACL() *client.Error {
	return &client.Error{Op: "setACL", Path: noPath, Code: proto.ErrInvalidACL}
}

// parseACL reads scheme:id:perms entries with commas between. As in ZooKeeper's shell, what makes no sense is told and
// left out; the result is not nil.
func (c *call) parseACL(s string) []proto.ACL {
	acl := []proto.ACL{}
	for _, entry := range splitJava(s, ",") {
		scheme, rest, ok := strings.Cut(entry, ":")
		i := strings.LastIndexByte(rest, ':')
		if !ok || i < 0 {
			c.say(c.err, entry+" does not have the form scheme:id:perm")
			continue
		}
		a := proto.ACL{ID: proto.ID{Scheme: scheme, ID: rest[:i]}}
		for _, letter := range rest[i+1:] {
			known := false
			for _, l := range permLetters {
				if rune(l.letter) == letter {
					a.Perms |= l.perm
					known = true
				}
			}
			if !known {
				c.say(c.err, "Unknown perm type: "+string(letter))
			}
		}
		acl = append(acl, a)
	}
	return acl
}

// splitJava splits as Java's String.split does: without the empty strings at the end.
func splitJava(s, sep string) []string {
	parts := strings.Split(s, sep)
	for len(parts) > 1 && parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	return parts
}

// showStat shows the new Stat of a znode if -s was given.
func (c *call) showStat(path string, st proto.Stat) error {
	if !c.has("s") {
		return nil
	}
	return c.show(statResult{path, c.stat(st)})
}
