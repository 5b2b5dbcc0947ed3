//go:build linux

package jepsenlite

import (
	"context"
	"fmt"
	"time"
)

func partitionAny(_ context.Context, n *nemesis) (string, func(context.Context) error, error) {
	return isolate(n, n.any())
}

func partitionLeader(ctx context.Context, n *nemesis) (string, func(context.Context) error, error) {
	return isolate(n, n.leader(ctx))
}

// isolate cuts a member off from all others.
func isolate(n *nemesis, m *Member) (string, func(context.Context) error, error) {
	for _, o := range n.others(m) {
		n.cluster.Links.Block(m.ID, o.ID)
		n.cluster.Links.Block(o.ID, m.ID)
	}
	return m.String(), n.healLinks, nil
}

// oneWay cuts a member off in one direction.
func oneWay(ctx context.Context, n *nemesis) (string, func(context.Context) error, error) {
	m := n.any()
	if n.rng.IntN(2) == 0 {
		m = n.leader(ctx)
	}
	what := m.String() + " is not heard"
	deaf := n.rng.IntN(2) == 0
	if deaf {
		what = m.String() + " hears nobody"
	}
	for _, o := range n.others(m) {
		if deaf {
			n.cluster.Links.Block(o.ID, m.ID)
		} else {
			n.cluster.Links.Block(m.ID, o.ID)
		}
	}
	return what, n.healLinks, nil
}

// breakOneLink cuts the link between two members, which both still reach the others.
func breakOneLink(_ context.Context, n *nemesis) (string, func(context.Context) error, error) {
	a := n.any()
	others := n.others(a)
	if len(others) == 0 {
		return "nobody", nil, nil
	}
	b := others[n.rng.IntN(len(others))]
	n.cluster.Links.Block(a.ID, b.ID)
	n.cluster.Links.Block(b.ID, a.ID)
	return fmt.Sprintf("%v and %v", a, b), n.healLinks, nil
}

// delay makes every direction slow, each by a different time.
func delay(_ context.Context, n *nemesis) (string, func(context.Context) error, error) {
	const most = 300 * time.Millisecond
	for _, m := range n.cluster.Members {
		for _, o := range n.others(m) {
			n.cluster.Links.Delay(m.ID, o.ID, n.between(0, most))
		}
	}
	return "all", n.healLinks, nil
}

// cutAll breaks all connections between members; they may reconnect at once.
func cutAll(_ context.Context, n *nemesis) (string, func(context.Context) error, error) {
	for _, m := range n.cluster.Members {
		for _, o := range n.others(m) {
			n.cluster.Links.Cut(m.ID, o.ID)
		}
	}
	return "all", nil, nil
}

// healLinks opens all links. Half of the time it also breaks the connections: held bytes are lost
// then.
func (n *nemesis) healLinks(ctx context.Context) error {
	if n.rng.IntN(2) == 0 {
		if _, _, err := cutAll(ctx, n); err != nil {
			return err
		}
	}
	n.cluster.Links.Heal()
	return nil
}
