package shell

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/subtree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// maxTTL is the largest TTL in milliseconds: a Stat has 40 bits for the TTL.
const maxTTL = 1<<40 - 1

func runCreate(ctx context.Context, c *call) error {
	o := client.CreateOptions{Ephemeral: c.has("e"), Sequential: c.has("s"), Container: c.has("c")}
	if o.Container && (o.Ephemeral || o.Sequential) {
		return usageError("-c cannot be combined with -s or -e. Containers cannot be ephemeral or sequential.")
	}
	if c.has("t") {
		ttl, err := strconv.ParseInt(c.value("t"), 10, 64)
		switch {
		case err != nil:
			return usageError("-t argument must be a long value")
		case o.Ephemeral:
			return usageError("TTLs cannot be used with Ephemeral znodes")
		case o.Container:
			return usageError("TTLs cannot be used with Container znodes")
		case ttl <= 0 || ttl > maxTTL:
			return usageError(fmt.Sprintf("ttl must be positive and cannot be larger than: %d", int64(maxTTL)))
		}
		o.TTL = time.Duration(ttl) * time.Millisecond
	}
	path := c.args[0]
	var data []byte
	if len(c.args) > 1 {
		data = []byte(c.args[1])
	}
	if len(c.args) > 2 {
		o.ACL = c.parseACL(c.args[2])
	}
	whole := path
	if o.Sequential {
		whole += "1"
	}
	if err := checkPath(whole); err != nil {
		return err
	}
	if o.ACL != nil && len(o.ACL) == 0 {
		return c.invalidACL(emptyACL())
	}
	created, _, err := c.zk.Create(ctx, path, data, o)
	switch {
	case errors.Is(err, proto.ErrEphemeralOnLocalSession):
		c.say(c.err, "Unable to create ephemeral node on a local session")
		return err
	case errors.Is(err, proto.ErrInvalidACL):
		return c.invalidACL(err)
	case err != nil:
		return err
	}
	return c.show(result{value: map[string]string{"path": created}, err: "Created " + created + "\n"})
}

// invalidACL prints an error that the shell then prints again in other words, as zkCli.sh does
// after create.
func (c *call) invalidACL(err error) error {
	if e, ok := errors.AsType[*client.Error](err); ok {
		shown := *e
		if e.Path == javaNull {
			shown.Path = ""
		}
		c.say(c.err, keeperMessage(&shown))
	}
	return err
}

func runDelete(ctx context.Context, c *call) error {
	version, err := c.version()
	if err != nil {
		return err
	}
	if len(c.args) > 1 {
		c.say(c.err, "'delete path [version]' has been deprecated. Please use 'delete [-v version] path' instead.")
		if !c.has("v") {
			if version, err = parseVersion(c.args[1]); err != nil {
				return err
			}
		}
	}
	return c.zk.Delete(ctx, c.args[0], version)
}

// deleteBatch is the default number of znodes that deleteall deletes in one request.
const deleteBatch = 1000

func runDeleteAll(ctx context.Context, c *call) error {
	size := deleteBatch
	if c.has("b") {
		n, err := strconv.ParseInt(c.value("b"), 10, 32)
		if err != nil {
			return usageError("-b argument must be an int value")
		}
		size = int(n)
	}
	tree, err := breadthFirst(ctx, c.zk, c.args[0])
	if err != nil {
		return err
	}
	for size <= 0 && len(tree) > 0 {
		last := len(tree) - 1
		if err := c.zk.Delete(ctx, tree[last], client.AnyVersion); err != nil {
			return err
		}
		tree = tree[:last]
	}
	for len(tree) > 0 {
		var ops []client.Op
		for ; len(tree) > 0 && len(ops) < size; tree = tree[:len(tree)-1] {
			ops = append(ops, client.DeleteOp(tree[len(tree)-1], client.AnyVersion))
		}
		if _, err := c.zk.Multi(ctx, ops...); err != nil {
			c.say(c.err, "Failed to delete some node(s) in the subtree!")
			return errFailed
		}
	}
	return nil
}

// breadthFirst returns the paths of a znode and of all znodes below it, parents before children.
func breadthFirst(ctx context.Context, zk *client.Client, path string) ([]string, error) {
	tree := []string{path}
	for i := 0; i < len(tree); i++ {
		names, _, err := subtree.Names(ctx, zk, tree[i])
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			tree = append(tree, subtree.Join(tree[i], name))
		}
	}
	return tree, nil
}

func runGet(ctx context.Context, c *call) error {
	path := c.args[0]
	data, st, err := c.zk.Get(ctx, path, c.watchWanted("get"))
	if err != nil {
		return err
	}
	hex, encoded := c.has("x"), c.has("b")
	r := getResult{path, dataOf(data, hex || encoded), c.wantedStat(st)}
	var text string
	shown := data
	if data == nil {
		shown = []byte(javaNull)
	}
	switch {
	case hex:
		text = hexDump(shown) + "\n"
	case encoded:
		text = base64.StdEncoding.EncodeToString(shown) + "\n"
	case !c.singleCommand:
		text = jute.Text(shown) + "\n"
	default: // byte for byte, without a final newline
		text = string(data)
		if r.Stat != nil && text != "" {
			text += "\n"
		}
	}
	return c.print(r, text+r.Stat.String())
}

type getResult struct {
	Path string `json:"path"`
	jsonData
	Stat *stat `json:"stat,omitempty"`
}

// hexDump returns data in lines of 16 bytes, in the frame of netty's ByteBufUtil.prettyHexDump,
// without a final newline. It returns "" for no data.
func hexDump(data []byte) string {
	if len(data) == 0 {
		return ""
	}
	const rule = "+--------+-------------------------------------------------+----------------+"
	var b strings.Builder
	b.WriteString("         +-------------------------------------------------+\n" +
		"         |  0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f |\n" + rule)
	for at := 0; at < len(data); at += 16 {
		row := data[at:min(at+16, len(data))]
		fmt.Fprintf(&b, "\n|%08x|%-48s |", at, fmt.Sprintf(" % x", row))
		for _, c := range row {
			if c <= 0x1F || c >= 0x7F {
				c = '.'
			}
			b.WriteByte(c)
		}
		b.WriteString(strings.Repeat(" ", 16-len(row)) + "|")
	}
	b.WriteString("\n" + rule)
	return b.String()
}

func runSet(ctx context.Context, c *call) error {
	path, data := c.args[0], []byte(c.args[1])
	if c.has("b") {
		var err error
		if data, err = base64.StdEncoding.DecodeString(c.args[1]); err != nil {
			return usageError("the data is not base64: " + err.Error())
		}
	}
	version, err := c.version()
	if err != nil {
		return err
	}
	st, err := c.zk.Set(ctx, path, data, version)
	if err != nil {
		return err
	}
	return c.showStat(path, st)
}

// version returns the value of -v, or client.AnyVersion.
func (c *call) version() (int32, error) {
	if !c.has("v") {
		return client.AnyVersion, nil
	}
	return parseVersion(c.value("v"))
}

func parseVersion(s string) (int32, error) {
	v, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return 0, usageError("the version must be an int value: " + s)
	}
	return int32(v), nil
}

// stat is a Stat for output, with times in a location. A nil *stat prints nothing.
type stat struct {
	proto.Stat
	in *time.Location
}

// stat prepares a Stat for output.
func (s *Shell) stat(st proto.Stat) *stat { return &stat{st, s.location} }

// String returns a line per field.
func (s *stat) String() string {
	if s == nil {
		return ""
	}
	date := func(ms int64) string { // as java.util.Date.toString
		return time.UnixMilli(ms).In(s.in).Format("Mon Jan 02 15:04:05 MST 2006")
	}
	return fmt.Sprintf("cZxid = 0x%x\nctime = %s\nmZxid = 0x%x\nmtime = %s\npZxid = 0x%x\n"+
		"cversion = %d\ndataVersion = %d\naclVersion = %d\nephemeralOwner = 0x%x\ndataLength = %d\nnumChildren = %d\n",
		uint64(s.Czxid), date(s.CtimeMs), uint64(s.Mzxid), date(s.MtimeMs), uint64(s.Pzxid),
		s.Cversion, s.Version, s.Aversion, uint64(s.EphemeralOwner), s.DataLength, s.NumChildren)
}

func runStat(ctx context.Context, c *call) error {
	path := c.args[0]
	st, ok, err := c.zk.Exists(ctx, path, c.watchWanted("stat"))
	if err != nil {
		return err
	}
	if !ok {
		return &client.Error{Op: "exists", Path: path, Code: proto.ErrNoNode}
	}
	return c.printStat(path, st)
}

func (c *call) printStat(path string, st proto.Stat) error {
	r := struct {
		Path string `json:"path"`
		Stat *stat  `json:"stat"`
	}{path, c.stat(st)}
	return c.print(r, r.Stat.String())
}

// watchWanted reports whether to set a watch: -w was given, or an argument after the path, which is
// the older form.
func (c *call) watchWanted(name string) bool {
	if len(c.args) < 2 {
		return c.has("w")
	}
	options := "[-s] [-w]"
	switch name {
	case "ls", "stat":
		options = "[-w]"
	}
	c.say(c.err, fmt.Sprintf("'%s path [watch]' has been deprecated. Please use '%s %s path' instead.", name, name, options))
	return true
}

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

// setACLBelow sets the ACL of path and of all znodes below it. It prints an error for each znode
// where that fails, and continues.
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
		if e.Path == javaNull {
			e.Path = ""
		}
		return writeText(c.out, keeperMessage(e))
	})
	if err == nil && failed {
		return errFailed
	}
	return err
}

// javaNull is how Java prints a missing path.
const javaNull = "null"

// emptyACL is the error of ZooKeeper's client for an ACL without entries. The client does not send
// such a request.
func emptyACL() *client.Error {
	return &client.Error{Op: "setACL", Path: javaNull, Code: proto.ErrInvalidACL}
}

// parseACL reads scheme:id:perms entries separated by commas. Like zkCli.sh, parseACL reports and
// skips invalid entries and letters. The result is not nil.
func (c *call) parseACL(s string) []proto.ACL {
	acl := []proto.ACL{}
	for _, entry := range joinSubjects(splitJava(s, ",")) {
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

// joinSubjects puts the entries of scheme x509 together again whose subject has commas, as in
// x509:CN=alice,OU=Eng:r. zkCli.sh has no way to write them: to it each part is an invalid entry.
func joinSubjects(parts []string) []string {
	var entries []string
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

// continues reports whether the comma between two parts belongs to a subject: it is escaped, or
// followed by an attribute.
func continues(part, next string) bool {
	name, _, ok := strings.Cut(next, "=")
	return strings.HasSuffix(part, `\`) || ok && name != "" && !strings.ContainsAny(name, `: `)
}

// splitJava splits like Java's String.split, which drops empty strings at the end.
func splitJava(s, sep string) []string {
	parts := strings.Split(s, sep)
	for len(parts) > 1 && parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	return parts
}
