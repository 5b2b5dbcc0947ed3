package shell

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/internal/sequence"
	"github.com/gozkd/gozkd/internal/subtree"
	"github.com/gozkd/gozkd/proto"
)

func runTree(ctx context.Context, c *call) error {
	below, err := c.number("L", 0, subtree.All)
	if err != nil {
		return err
	}
	var total usage
	var open []bool // per depth above the current znode: whether siblings follow
	err = c.list(func(l *listing) error {
		return c.walk(ctx, c.args[0], subtree.Options{Below: below}, func(n *subtree.Znode) error {
			total.add(n)
			open = append(open[:n.Depth], !n.Last)
			return l.add(foundOf(n), func() string { return treeLine(n, open, c.has("s")) })
		})
	})
	if total.Znodes > 0 {
		c.say(c.err, fmt.Sprintf("%s, %s", plural(total.Znodes, "znode"), humanize.IBytes(uint64(total.Bytes))))
	}
	return err
}

func treeLine(n *subtree.Znode, open []bool, withSize bool) string {
	var line strings.Builder
	if n.Depth == 0 {
		line.WriteString(n.Path)
	} else {
		for _, open := range open[1:n.Depth] {
			line.WriteString(map[bool]string{true: "│   ", false: "    "}[open])
		}
		line.WriteString(map[bool]string{true: "├── ", false: "└── "}[!n.Last] + path.Base(n.Path))
	}
	if withSize {
		line.WriteString(" [" + humanize.IBytes(uint64(n.Stat.DataLength)) + "]")
	}
	if owner := n.Stat.EphemeralOwner; owner != 0 {
		line.WriteString(" (ephemeral, " + owner.String() + ")")
	}
	return line.String() + "\n"
}

// found is a znode in the JSON output of find and tree.
type found struct {
	Path       string `json:"path"`
	DataLength int32  `json:"dataLength"`
	Children   int32  `json:"numChildren"`
	Owner      string `json:"ephemeralOwner,omitempty"`
}

func foundOf(n *subtree.Znode) found {
	f := found{Path: n.Path, DataLength: n.Stat.DataLength, Children: n.Stat.NumChildren}
	if n.Stat.EphemeralOwner != 0 {
		f.Owner = n.Stat.EphemeralOwner.String()
	}
	return f
}

func runFind(ctx context.Context, c *call) error {
	matches, err := c.criteria()
	if err != nil {
		return err
	}
	return c.list(func(l *listing) error {
		return c.walk(ctx, c.args[0], subtree.Options{Data: c.has("data"), Below: subtree.All}, func(n *subtree.Znode) error {
			if !matches(n) {
				return nil
			}
			return l.add(foundOf(n), func() string { return n.Path + "\n" })
		})
	})
}

// criteria returns a function that reports whether a znode meets all conditions of find.
func (c *call) criteria() (func(*subtree.Znode) bool, error) {
	var all []func(*subtree.Znode) bool
	if c.has("name") {
		glob := c.value("name")
		if _, err := path.Match(glob, ""); err != nil {
			return nil, usageError(glob + ": " + err.Error())
		}
		all = append(all, func(n *subtree.Znode) bool {
			ok, _ := path.Match(glob, path.Base(n.Path)) // the pattern is valid
			return ok
		})
	}
	if c.has("data") {
		re, err := regexp.Compile(c.value("data"))
		if err != nil {
			return nil, usageError(printable.Error(err))
		}
		all = append(all, func(n *subtree.Znode) bool { return re.Match(n.Data) })
	}
	if c.has("owner") {
		id, err := strconv.ParseUint(strings.TrimPrefix(c.value("owner"), "0x"), 16, 64)
		if err != nil {
			return nil, usageError("-owner must be a session id such as 0x100000000000001: " + c.value("owner"))
		}
		all = append(all, func(n *subtree.Znode) bool { return id != 0 && n.Stat.EphemeralOwner == proto.SessionID(id) })
	}
	if c.has("type") {
		kinds := map[string]func(*subtree.Znode) bool{
			"p": func(n *subtree.Znode) bool { return n.Stat.EphemeralOwner == 0 },
			"e": func(n *subtree.Znode) bool { return n.Stat.EphemeralOwner != 0 },
			"s": func(n *subtree.Znode) bool { _, _, ok := sequence.Parse(n.Path); return ok },
		}
		is, ok := kinds[c.value("type")]
		if !ok {
			return nil, usageError("-type must be p, e or s: " + c.value("type"))
		}
		all = append(all, is)
	}
	return func(n *subtree.Znode) bool {
		return !slices.ContainsFunc(all, func(is func(*subtree.Znode) bool) bool { return !is(n) })
	}, nil
}
