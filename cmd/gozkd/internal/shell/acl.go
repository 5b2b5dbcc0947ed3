package shell

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

func runGetACL(ctx context.Context, c *call) error {
	path := c.args[0]
	acl, st, err := c.zk.GetACL(ctx, path)
	if err != nil {
		return err
	}
	r := struct {
		Path string          `json:"path"`
		ACL  []proto.ACLJSON `json:"acl"`
		Stat *stat           `json:"stat,omitempty"`
	}{path, proto.ACLToJSON(acl), c.wantedStat(st)}
	var text strings.Builder
	for _, a := range r.ACL { // two lines per entry: zkCli.sh prints a CSV record that contains a newline
		fmt.Fprintf(&text, "'%s,'%s\n: %s\n", csv.Replace(a.Scheme), csv.Replace(a.ID), a.Perms)
	}
	return c.print(r, text.String()+r.Stat.String())
}

// csv escapes a string as the CSV form of ZooKeeper's records does.
var csv = strings.NewReplacer("\x00", "%00", "\n", "%0A", "\r", "%0D", ",", "%2C", "}", "%7D", "%", "%25")

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
		return emptyACL()
	}
	st, err := c.zk.SetACL(ctx, path, acl, version)
	if err != nil {
		return err
	}
	return c.showStat(path, st)
}

// setACLBelow sets the ACL of path and all znodes below it. It prints errors, and continues.
func (c *call) setACLBelow(ctx context.Context, path string, acl []proto.ACL, version int32) error {
	failed := false
	err := visit(ctx, c.zk, path, false, func(p string) error {
		var err error = emptyACL()
		if len(acl) > 0 {
			_, err = c.zk.SetACL(ctx, p, acl, version)
		}
		e, ok := errors.AsType[*client.Error](err)
		if !ok {
			return err
		}
		failed = true
		return writeText(c.out, keeperMessage(e))
	})
	if err == nil && failed {
		return errFailed
	}
	return err
}

// javaNull is how Java prints a missing path.
const javaNull = "null"

// emptyACL is the error of ZooKeeper's client, which does not send an ACL without entries.
func emptyACL() *client.Error {
	return &client.Error{Op: "setACL", Path: javaNull, Code: proto.ErrInvalidACL}
}

// parseACL reads scheme:id:perms entries separated by commas. Like zkCli.sh, parseACL reports and
// skips invalid entries and letters. The result is not nil.
func (c *call) parseACL(s string) []proto.ACL {
	acl := []proto.ACL{}
	for _, entry := range aclEntries(s) {
		scheme, rest, ok := strings.Cut(entry, ":")
		i := strings.LastIndexByte(rest, ':')
		if !ok || i < 0 {
			c.say(c.err, entry+" does not have the form scheme:id:perm")
			continue
		}
		a := proto.ACL{ID: proto.ID{Scheme: scheme, ID: rest[:i]}}
		for _, letter := range rest[i+1:] {
			perm, err := proto.ParsePerms(string(letter))
			if err != nil {
				c.say(c.err, "Unknown perm type: "+string(letter))
			}
			a.Perms |= perm
		}
		acl = append(acl, a)
	}
	return acl
}

// aclEntries splits an ACL at its commas, and like Java's String.split drops empty entries at the
// end. An entry of scheme x509 may have commas in its subject, as in x509:CN=alice,OU=Eng:r.
// zkCli.sh has no way to write such an entry: to it each part is an invalid one.
func aclEntries(s string) (entries []string) {
	parts := strings.Split(strings.TrimRight(s, ","), ",")
	for i := 0; i < len(parts); i++ {
		n := 1
		if strings.HasPrefix(parts[i], "x509:") {
			for !endsInPerms(parts[i+n-1]) && i+n < len(parts) && continues(parts[i+n-1], parts[i+n]) {
				n++
			}
			if !endsInPerms(parts[i+n-1]) {
				n = 1
			}
		}
		entries = append(entries, strings.Join(parts[i:i+n], ","))
		i += n - 1
	}
	return entries
}

// endsInPerms reports whether an entry, or its last part, ends in a colon and permissions.
func endsInPerms(part string) bool {
	part = strings.TrimPrefix(part, "x509:")
	i := strings.LastIndexByte(part, ':')
	return i >= 0 && i < len(part)-1 && strings.Trim(part[i+1:], "cdrwa") == ""
}

// continues reports whether the comma belongs to a subject: escaped, or before an attribute.
func continues(part, next string) bool {
	name, _, ok := strings.Cut(next, "=")
	return strings.HasSuffix(part, `\`) || ok && name != "" && !strings.ContainsAny(name, `: `)
}
