package shared

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
)

// Names gives each of a few names to one at a time. Who has one keeps it until it is released or the session is over, and then another may get
// it. Safe for concurrent use.
type Names struct {
	client *recipes.Client
	path   string
	names  []string
}

// Name is a name that is held. Release gives it back.
type Name struct {
	*recipes.Hold
	name string
}

// NewNames returns names at path. They are given in their order, as far as they are free. None is empty or has a slash.
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

// Name is the name.
func (n *Name) Name() string { return n.name }

// Number is the name of NewNumbers as a number; of others it is 0.
func (n *Name) Number() int {
	i, err := strconv.Atoi(n.name)
	if err != nil {
		return 0
	}
	return i
}

// Claim takes the first name that is free. If others have them all, it returns ErrNoneFree at once.
func (n *Names) Claim(ctx context.Context) (*Name, error) {
	for _, name := range n.names {
		if name == "" || strings.Contains(name, "/") {
			return nil, fmt.Errorf("shared: claim at %s: %q: %w", n.path, name, ErrBadName)
		}
	}
	for collisions := 0; ; {
		free, err := n.free(ctx)
		if err != nil {
			return nil, err
		}
		if len(free) == 0 {
			return nil, fmt.Errorf("shared: claim at %s: %w", n.path, ErrNoneFree)
		}
		// Those who wanted the same name at the same time now want different ones.
		claimed, before, err := n.claim(ctx, free[collisions%len(free)])
		switch {
		case claimed != nil:
			return claimed, nil
		case err == nil:
			collisions = before
		case ctx.Err() != nil || !errors.Is(err, recipes.ErrSessionLost) && !errors.Is(err, recipes.ErrNotHeld):
			return nil, err
		}
	}
}

// With runs f with a name, and gives that back. The context of f ends with ctx, and when the name is not held any more.
func (n *Names) With(ctx context.Context, f func(ctx context.Context, name string) error) (err error) {
	claimed, err := n.Claim(ctx)
	if err != nil {
		return err
	}
	in, cancel := claimed.Within(ctx)
	defer func() {
		cancel()
		if e := claimed.Release(ctx); e != nil && !errors.Is(e, recipes.ErrOutcomeUnknown) {
			err = errors.Join(err, e)
		}
	}()
	return f(in, claimed.name)
}

// ExplainNames returns who has which name.
func ExplainNames(ctx context.Context, c *recipes.Client, path string) (map[string]recipes.Contention, error) {
	all, err := contend.Contenders(ctx, c, path, func(znode string) bool { return contend.Label(znode) != "" })
	if err != nil {
		return nil, err
	}
	lines := make(map[string]recipes.Contention)
	for _, one := range all {
		name := contend.Label(one.Path[strings.LastIndexByte(one.Path, '/')+1:])
		l := lines[name]
		if len(l.Holders) == 0 {
			l.Holders = append(l.Holders, one)
		} else {
			l.Waiters = append(l.Waiters, one) // for a moment: it takes another name
		}
		lines[name] = l
	}
	return lines, nil
}

// free returns the names that nobody has claimed.
func (n *Names) free(ctx context.Context) ([]string, error) {
	children, _, err := n.client.Children(ctx, n.path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
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

// claim takes a name if nobody was faster, and else returns how many were.
func (n *Names) claim(ctx context.Context, name string) (*Name, int, error) {
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
	switch {
	case err != nil:
		return nil, 0, err
	case held != nil:
		return &Name{held, name}, 0, nil
	}
	return nil, faster, p.Leave(ctx)
}
