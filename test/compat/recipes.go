package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/cases"
	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/compat/interop"
)

// language installs what the recipes of a language need, and returns how to start its peer.
type language func(ctx context.Context, root string) interop.Command

// sharing is a client that lets processes of several languages share recipes.
func sharing(name string, languages ...language) client {
	install := func(ctx context.Context, root string) (commands []interop.Command) {
		for _, l := range languages {
			commands = append(commands, l(ctx, root))
		}
		return commands
	}
	return client{
		name:    name,
		install: func(ctx context.Context, root string) { install(ctx, root) },
		run: func(ctx context.Context, root, addr string) (cases.Report, error) {
			return interop.Run(ctx, addr, install(ctx, root), recipesSeed)
		},
	}
}

// recipesSeed is the seed of random decisions; how peers interleave is up to the machine.
const recipesSeed = 1

func curatorPeer(ctx context.Context, root string) interop.Command {
	java := javaCommand(root, install.JavaClient(ctx, root))
	return interop.Command{Lang: interop.Curator, Args: slices.Concat(java, []string{"Peer"}), After: []string{install.MavenVersion(root, "curator-recipes")}}
}

func kazooPeer(ctx context.Context, root string) interop.Command {
	// -B: no byte code into the source tree.
	return interop.Command{Lang: interop.Kazoo, Args: []string{install.Kazoo(ctx, root), "-B", root + "/test/compat/kazoo/peer.py"}}
}

// goPeer builds our peer.
func goPeer(ctx context.Context, root string) interop.Command {
	binary := filepath.Join(root, ".cache", "compat", "go", "gopeer")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, "./test/compat/interop/gopeer")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		must.Failf("build the Go peer: %w\n%s", err, out)
	}
	return interop.Command{Lang: interop.Go, Args: []string{binary}}
}
