package shell

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/shell/subtree"
	"github.com/gozkd/gozkd/proto"
)

func runTree(ctx context.Context, c *call) error {
	root := c.args[0]
	below, err := c.number("L", 0, subtree.All)
	if err != nil {
		return err
	}
	if err := checkPath(root); err != nil {
		return err
	}
	out := &listing{c: c}
	var total usage
	var open []bool // for each depth above the znode whether more siblings come
	err = c.walk(ctx, root, subtree.Options{Below: below}, func(n *subtree.Node) error {
		total.add(n)
		open = append(open[:n.Depth], !n.Last)
		return out.add(branch{node: n, open: open, size: c.has("s")})
	})
	if flushErr := out.flush(); flushErr != nil {
		return flushErr
	}
	if total.Znodes > 0 {
		c.say(c.err, fmt.Sprintf("%s, %s", plural(total.Znodes, "znode"), human(total.Bytes)))
	}
	return err
}

// usage counts znodes and the bytes of their data.
type usage struct {
	Znodes int64 `json:"znodes"`
	Bytes  int64 `json:"bytes"`
}

func (u *usage) add(n *subtree.Node) {
	u.Znodes++
	u.Bytes += int64(n.Stat.DataLength)
}

func (u *usage) addAll(other usage) {
	u.Znodes += other.Znodes
	u.Bytes += other.Bytes
}

// branch is a line of tree.
type branch struct {
	node *subtree.Node
	open []bool
	size bool
}

func (b branch) text(out, _ io.Writer) {
	var line strings.Builder
	if b.node.Depth == 0 {
		line.WriteString(b.node.Path)
	} else {
		for _, open := range b.open[1:b.node.Depth] {
			line.WriteString(map[bool]string{true: "│   ", false: "    "}[open])
		}
		line.WriteString(map[bool]string{true: "├── ", false: "└── "}[!b.node.Last] + path.Base(b.node.Path))
	}
	if b.size {
		line.WriteString(" [" + human(int64(b.node.Stat.DataLength)) + "]")
	}
	if owner := b.node.Stat.EphemeralOwner; owner != 0 {
		line.WriteString(" (ephemeral, " + owner.String() + ")")
	}
	_, _ = io.WriteString(out, line.String()+"\n")
}

// MarshalJSON is the znode without its place among its siblings.
func (b branch) MarshalJSON() ([]byte, error) { return json.Marshal(foundOf(b.node)) }

// found is a znode as find and tree show it in JSON.
type found struct {
	Path       string `json:"path"`
	DataLength int32  `json:"data_length"`
	Children   int32  `json:"num_children"`
	Owner      string `json:"ephemeral_owner,omitempty"`
}

func foundOf(n *subtree.Node) found {
	f := found{Path: n.Path, DataLength: n.Stat.DataLength, Children: n.Stat.NumChildren}
	if n.Stat.EphemeralOwner != 0 {
		f.Owner = n.Stat.EphemeralOwner.String()
	}
	return f
}

func (f found) text(out, _ io.Writer) { _, _ = io.WriteString(out, f.Path+"\n") }

func runFind(ctx context.Context, c *call) error {
	root := c.args[0]
	matches, err := c.criteria()
	if err != nil {
		return err
	}
	if err := checkPath(root); err != nil {
		return err
	}
	out := &listing{c: c}
	err = c.walk(ctx, root, subtree.Options{Data: c.has("data"), Below: subtree.All}, func(n *subtree.Node) error {
		if !matches(n) {
			return nil
		}
		return out.add(foundOf(n))
	})
	if flushErr := out.flush(); flushErr != nil {
		return flushErr
	}
	return err
}

// criteria returns what reports whether a znode has all that find is asked for.
func (c *call) criteria() (func(*subtree.Node) bool, error) {
	var all []func(*subtree.Node) bool
	if c.has("name") {
		glob := c.value("name")
		if _, err := path.Match(glob, ""); err != nil {
			return nil, usageError(glob + ": " + err.Error())
		}
		all = append(all, func(n *subtree.Node) bool {
			ok, _ := path.Match(glob, path.Base(n.Path)) // the pattern is good
			return ok
		})
	}
	if c.has("data") {
		re, err := regexp.Compile(c.value("data"))
		if err != nil {
			return nil, usageError(err.Error())
		}
		all = append(all, func(n *subtree.Node) bool { return re.Match(n.Data) })
	}
	if c.has("owner") {
		id, err := strconv.ParseUint(strings.TrimPrefix(c.value("owner"), "0x"), 16, 64)
		if err != nil {
			return nil, usageError("-owner must be a session id such as 0x100000000000001: " + c.value("owner"))
		}
		all = append(all, func(n *subtree.Node) bool { return id != 0 && n.Stat.EphemeralOwner == proto.SessionID(id) })
	}
	if c.has("type") {
		kinds := map[string]func(*subtree.Node) bool{
			"p": func(n *subtree.Node) bool { return n.Stat.EphemeralOwner == 0 },
			"e": func(n *subtree.Node) bool { return n.Stat.EphemeralOwner != 0 },
			"s": func(n *subtree.Node) bool { return subtree.Sequential(n.Path) },
		}
		is, ok := kinds[c.value("type")]
		if !ok {
			return nil, usageError("-type must be p, e or s: " + c.value("type"))
		}
		all = append(all, is)
	}
	return func(n *subtree.Node) bool {
		return !slices.ContainsFunc(all, func(is func(*subtree.Node) bool) bool { return !is(n) })
	}, nil
}
