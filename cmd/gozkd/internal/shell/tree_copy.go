package shell

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/shell/subtree"
)

func runCopy(ctx context.Context, c *call) error { return c.copy(ctx, false) }

func runMove(ctx context.Context, c *call) error { return c.copy(ctx, true) }

func (c *call) copy(ctx context.Context, move bool) error {
	from, to, end, err := c.sides(ctx)
	if err != nil {
		return err
	}
	defer end()
	from.Kinds = c.kinds(ctx, from.ZK, from.Connect)
	p := c.progress()
	work := subtree.Copying{From: from, To: to, Recursive: c.has("r"), Move: move, Seen: func(done *subtree.Copied) { p.at(done.Created, 0) }}
	done, err := work.Run(ctx)
	if err != nil {
		return told(ctx, err)
	}
	return c.show(copyResult{Copied: done, move: move})
}

type copyResult struct {
	*subtree.Copied
	move bool
}

func (r copyResult) text(_, err io.Writer) {
	verb := "Copied "
	if r.move {
		verb = "Moved "
	}
	line := verb + plural(r.Created, "znode")
	if r.Atomic {
		line += " in one transaction"
	} else {
		line += ", not in one transaction: others may have seen a part"
	}
	_, _ = io.WriteString(err, line+"\n")
	if r.Skipped > 0 {
		_, _ = fmt.Fprintf(err, "Left out: %s\n", plural(r.Skipped, "ephemeral znode"))
	}
	counters(err, r.Sequential)
}

// counters warns of what no client can carry over.
func counters(err io.Writer, sequential int64) {
	if sequential > 0 {
		_, _ = fmt.Fprintf(err, "%s with a name as of a sequential one: counters begin anew in copies\n", plural(sequential, "znode"))
	}
}

// MarshalJSON has the counts.
func (r copyResult) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Created    int64 `json:"created"`
		Deleted    int64 `json:"deleted,omitempty"`
		Ephemerals int64 `json:"ephemerals_left_out,omitempty"`
		Sequential int64 `json:"sequential,omitempty"`
		Atomic     bool  `json:"atomic"`
	}{r.Created, r.Deleted, r.Skipped, r.Sequential, r.Atomic})
}

func runDiff(ctx context.Context, c *call) error {
	left, right, end, err := c.sides(ctx)
	if err != nil {
		return err
	}
	defer end()
	out := &listing{c: c}
	p := c.progress()
	var differ int64
	same, err := subtree.Diff(ctx, left, right, !c.has("A"), func(d subtree.Change) error {
		differ++
		p.at(differ, 0)
		return out.add(changeOf(d))
	})
	if flushErr := out.flush(); flushErr != nil {
		return flushErr
	}
	if err != nil {
		return told(ctx, err)
	}
	c.say(c.err, fmt.Sprintf("%d the same, %d different", same, differ))
	if differ > 0 {
		return errFailed
	}
	return nil
}

// change is a line of diff.
type change struct {
	Path   string   `json:"path"` // below both sides
	Only   string   `json:"only,omitempty"`
	Differ []string `json:"differ,omitempty"`
}

func changeOf(d subtree.Change) change {
	r := change{Path: d.Rel}
	if r.Path == "" {
		r.Path = "/"
	}
	switch {
	case d.Right == nil:
		r.Only = "left"
	case d.Left == nil:
		r.Only = "right"
	}
	for _, what := range []struct {
		is   bool
		name string
	}{{d.Data, "data"}, {d.ACL, "acl"}, {d.Ephemeral, "ephemeral"}, {d.Access, "access"}} {
		if what.is {
			r.Differ = append(r.Differ, what.name)
		}
	}
	return r
}

func (r change) text(out, _ io.Writer) {
	switch r.Only {
	case "left":
		_, _ = io.WriteString(out, "- "+r.Path+"\n")
	case "right":
		_, _ = io.WriteString(out, "+ "+r.Path+"\n")
	default:
		_, _ = io.WriteString(out, "! "+r.Path+" ("+strings.Join(r.Differ, ", ")+")\n")
	}
}
