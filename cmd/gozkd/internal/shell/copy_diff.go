package shell

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/gozkd/gozkd/internal/subtree"
)

// runCopy runs cp and mv.
func runCopy(ctx context.Context, c *call) error {
	move := c.command.name == "mv"
	from, to, end, err := c.sides(ctx)
	if err != nil {
		return err
	}
	defer end()
	limit, err := c.number(countersFlag.name, 0, defaultCreations)
	if err != nil {
		return err
	}
	from.Kinds = c.kinds(ctx, from.ZK, from.Connect)
	p := c.progress()
	work := subtree.Copy{
		From: from, To: to, Recursive: c.has("r"), Move: move,
		Counters: subtree.Counters{Limit: int64(limit)}, Seen: func(done *subtree.Copied) { p.report(done.Created, 0) },
	}
	done, err := work.Run(ctx)
	if err != nil {
		return subtreeError(ctx, err)
	}
	text := map[bool]string{true: "Moved ", false: "Copied "}[move] + plural(done.Created, "znode")
	if done.Atomic {
		text += " in one transaction\n"
	} else {
		text += ", not in one transaction: others may have seen a part\n"
	}
	if done.Skipped > 0 {
		text += fmt.Sprintf("Skipped: %s\n", plural(done.Skipped, "ephemeral znode"))
	}
	return c.showCounted(&work.Counters, result{err: text + countersWarning(&work.Counters), value: struct {
		*subtree.Copied
		Behind []subtree.Counter `json:"counters_behind,omitempty"`
	}{done, work.Counters.Behind}})
}

// showCounted shows a result. It fails if sequence counters stay behind against the user's wish.
func (c *call) showCounted(counters *subtree.Counters, r result) error {
	err := c.show(r)
	if err == nil && counters.NBehind > 0 && counters.Limit > 0 {
		return errFailed
	}
	return err
}

// defaultCreations is how many creations move sequence counters without the flag --counters.
const defaultCreations = 100_000

var countersFlag = flag{"-counters", true, "move sequence counters by at most this many creations, default 100000"}

// countersWarning names the sequence counters that stay behind, a line for each.
func countersWarning(c *subtree.Counters) (text string) {
	for _, o := range c.Behind {
		reason := "allow that many creations with --counters"
		if o.Err != nil {
			reason = o.Err.Error()
		}
		text += fmt.Sprintf("%s: its sequence counter stays %d behind, so numbers repeat: %s\n", o.Path, o.By, reason)
	}
	if more := c.NBehind - int64(len(c.Behind)); more > 0 {
		text += fmt.Sprintf("%s behind in addition\n", plural(more, "sequence counter"))
	}
	return text
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

type difference struct {
	Path   string   `json:"path"` // below both roots
	Only   string   `json:"only,omitempty"`
	Differ []string `json:"differ,omitempty"`
}

func differenceOf(d subtree.Change) difference {
	r := difference{Path: cmp.Or(d.Rel, "/")}
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
