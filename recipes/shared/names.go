package shared

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/holding"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// Names gives each of a few names to one holder at a time, until Release or the end of the holder's
// session. Safe for concurrent use.
type Names struct {
	client *recipes.Client
	path   string
	names  []string
}

// NewNames returns names at path. Claim takes the first free name. Names must not be empty or have
// a slash.
func NewNames(c *recipes.Client, path string, names ...string) *Names {
	return &Names{client: c, path: path, names: names}
}

// NewNumbers returns the names "0", "1" ... up to n-1.
func NewNumbers(c *recipes.Client, path string, n int) *Names {
	names := make([]string, n)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	return NewNames(c, path, names...)
}

// Claim takes the first free name. If all are taken, the error is recipes.ErrNotAcquired, at once.
func (n *Names) Claim(ctx context.Context) (name string, held *recipes.Hold, err error) {
	for _, name := range n.names {
		if name == "" || strings.Contains(name, "/") {
			return "", nil, fmt.Errorf("shared: claim at %s: %q: %w", n.path, name, recipes.ErrArgument)
		}
	}
	for collisions := 0; ; {
		free, err := n.free(ctx)
		if err != nil {
			return "", nil, err
		}
		if len(free) == 0 {
			return "", nil, fmt.Errorf("shared: claim at %s: all names are taken: %w", n.path, recipes.ErrNotAcquired)
		}
		// Clients that tried the same name at the same time now try different names.
		name := free[collisions%len(free)]
		held, before, err := n.claim(ctx, name)
		switch {
		case held != nil:
			return name, held, nil
		case err == nil:
			collisions = before
		case ctx.Err() != nil || !recipes.IsLost(err):
			return "", nil, err
		}
	}
}

// With claims a name, runs f, and releases the name. The context of f ends with ctx and when the
// name is no longer held. The error joins that of f and the loss of the name.
func (n *Names) With(ctx context.Context, f func(ctx context.Context, name string) error) error {
	if err := holding.CheckFunc(f == nil); err != nil {
		return err
	}
	name, held, err := n.Claim(ctx)
	if err != nil {
		return err
	}
	return holding.With(ctx, held, func(ctx context.Context) error { return f(ctx, name) })
}

// Explain returns the holder of each name that is taken. Waiters of a name will try another in
// a moment.
func (n *Names) Explain(ctx context.Context) (map[string]recipes.Contention, error) {
	all, err := contend.Contenders(ctx, n.client, n.path, func(znode string) bool { return contend.Label(znode) != "" })
	if err != nil {
		return nil, err
	}
	lines := make(map[string]recipes.Contention)
	for _, contender := range all {
		name := contend.Label(znodepath.Base(contender.Path))
		l := lines[name]
		if len(l.Holders) == 0 {
			l.Holders = append(l.Holders, contender)
		} else {
			l.Waiters = append(l.Waiters, contender)
		}
		lines[name] = l
	}
	return lines, nil
}

// free returns the names that no client has claimed.
func (n *Names) free(ctx context.Context) ([]string, error) {
	children, err := contend.ChildNames(ctx, n.client, n.path)
	if err != nil {
		return nil, err
	}
	claimed := make(map[string]bool)
	for _, znode := range children {
		claimed[contend.Label(znode)] = true
	}
	var free []string
	for _, name := range n.names {
		if !claimed[name] {
			free = append(free, name)
		}
	}
	return free, nil
}

// claim takes a name unless other clients were faster, whose number is then the second result.
func (n *Names) claim(ctx context.Context, name string) (*recipes.Hold, int, error) {
	p, err := contend.Join(ctx, n.client, n.path, name+"-", nil)
	if err != nil {
		return nil, 0, err
	}
	faster := 0
	held, err := p.Try(ctx, func(znodes []string, own int) (before string) {
		faster = 0
		for _, znode := range znodes[:own] {
			if contend.Label(znode) == name {
				before = znode
				faster++
			}
		}
		return before
	})
	if held != nil || err != nil {
		return held, 0, err
	}
	return nil, faster, p.Leave(ctx)
}
