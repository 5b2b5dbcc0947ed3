package shell

import (
	"context"
	"fmt"
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
	work := subtree.Copy{From: from, To: to, Recursive: c.has("r"), Move: move, Seen: func(done *subtree.Copied) { p.report(done.Created, 0) }}
	done, err := work.Run(ctx)
	if err != nil {
		return subtreeError(ctx, err)
	}
	verb := "Copied "
	if move {
		verb = "Moved "
	}
	text := verb + plural(done.Created, "znode")
	if done.Atomic {
		text += " in one transaction\n"
	} else {
		text += ", not in one transaction: others may have seen a part\n"
	}
	if done.Skipped > 0 {
		text += fmt.Sprintf("Skipped: %s\n", plural(done.Skipped, "ephemeral znode"))
	}
	return c.show(result{value: done, err: text + sequentialWarning(done.Sequential)})
}

// sequentialWarning warns that a copy does not preserve counters of sequential znodes, or returns
// "".
func sequentialWarning(sequential int64) string {
	if sequential == 0 {
		return ""
	}
	return fmt.Sprintf("%s with a sequential name: a copy does not preserve the counters\n", plural(sequential, "znode"))
}

func runDiff(ctx context.Context, c *call) error {
	left, right, end, err := c.sides(ctx)
	if err != nil {
		return err
	}
	defer end()
	p := c.progress()
	var same, different int64
	err = c.list(func(l *listing) (err error) {
		same, err = subtree.Diff(ctx, left, right, !c.has("A"), func(d subtree.Change) error {
			different++
			p.report(different, 0)
			diff := differenceOf(d)
			return l.add(diff, diff.String)
		})
		return subtreeError(ctx, err)
	})
	if err != nil {
		return err
	}
	c.say(c.err, fmt.Sprintf("%d the same, %d different", same, different))
	if different > 0 {
		return errFailed
	}
	return nil
}

// difference is a line of diff.
type difference struct {
	Path   string   `json:"path"` // below both roots
	Only   string   `json:"only,omitempty"`
	Differ []string `json:"differ,omitempty"`
}

func differenceOf(d subtree.Change) difference {
	r := difference{Path: d.Rel}
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

func (d difference) String() string {
	switch d.Only {
	case "left":
		return "- " + d.Path + "\n"
	case "right":
		return "+ " + d.Path + "\n"
	}
	return "! " + d.Path + " (" + strings.Join(d.Differ, ", ") + ")\n"
}
