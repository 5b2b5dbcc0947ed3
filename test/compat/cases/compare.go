package cases

import (
	"context"
	"fmt"
	"slices"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/diff/exchange"
	"github.com/gozkd/gozkd/test/compat/server"
)

// Script is played on ZooKeeper and on gozkd, where clients must see the same.
type Script struct {
	Name string
	// Play plays the script on a new server, or ensemble, of this kind.
	Play func(ctx context.Context, k *server.Kind) Played
	// Intended reports whether docs/reference/differences.md allows gozkd's line instead of
	// ZooKeeper's; nil: every line must be equal.
	Intended func(zooKeeper, gozkd string) bool
}

// Played is what clients saw of a server.
type Played struct {
	Replies *exchange.Transcript // nil: none were recorded
	Lines   []string
	Wrong   []string // lines that would be wrong on ZooKeeper too
}

// Tally counts the lines of scripts.
type Tally struct{ Lines, Intended, Differ int }

// Compare plays the script on both servers and prints the lines in which gozkd differs from
// ZooKeeper, or with all every line. Different replies end the work.
func (s *Script) Compare(ctx context.Context, twins [2]server.Kind, all bool) (t Tally) {
	zooKeeper, gozkd := s.Play(ctx, &twins[0]), s.Play(ctx, &twins[1])
	if zooKeeper.Replies != nil {
		m := exchange.Compare(zooKeeper.Replies, gozkd.Replies, exchange.Differences(), make(map[string]int))
		if m != nil {
			must.Failf("%s: a is ZooKeeper, b is gozkd: %v", s.Name, m)
		}
	}
	for _, line := range slices.Concat(zooKeeper.Wrong, gozkd.Wrong) {
		t.Differ++
		fmt.Printf("%s: WRONG %s\n", s.Name, line)
	}
	at := func(lines []string, i int) string {
		if i < len(lines) {
			return lines[i]
		}
		return ""
	}
	t.Lines = len(zooKeeper.Lines)
	for i := range max(t.Lines, len(gozkd.Lines)) {
		z, g := at(zooKeeper.Lines, i), at(gozkd.Lines, i)
		switch {
		case z == g && all:
			fmt.Printf("%s, %d    %s\n", s.Name, i+1, z)
		case z != g && s.Intended != nil && s.Intended(z, g):
			t.Intended++
			if all {
				fmt.Printf("%s, %d ZK %s\n    go %s (as intended)\n", s.Name, i+1, z, g)
			}
		case z != g:
			t.Differ++
			fmt.Printf("%s, %d ZK %s\n    go %s\n", s.Name, i+1, z, g)
		}
	}
	return t
}
