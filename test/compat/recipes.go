package main

import (
	"context"
	"slices"

	"github.com/gozkd/gozkd/test/compat/cases"
	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/compat/interop"
)

// language is one that has recipes, with what it takes to start a process of it that shares them with others.
type language struct {
	install func(ctx context.Context, root string) error
	command func(ctx context.Context, root string) (interop.Command, error)
}

func curator() language { return language{installJava, curatorPeer} }

func kazoo() language { return language{installKazoo, kazooPeer} }

// sharing is a client that lets processes of several languages share recipes.
func sharing(name string, languages ...language) client {
	return client{
		name: name,
		install: func(ctx context.Context, root string) error {
			for _, l := range languages {
				if err := l.install(ctx, root); err != nil {
					return err
				}
			}
			return nil
		},
		run: func(ctx context.Context, root, addr string) (cases.Report, error) {
			var commands []interop.Command
			for _, l := range languages {
				c, err := l.command(ctx, root)
				if err != nil {
					return cases.Report{}, err
				}
				commands = append(commands, c)
			}
			return interop.Run(ctx, addr, commands, recipesSeed)
		},
	}
}

// recipesSeed decides what the peers draw; how they interleave is not in anybody's hand.
const recipesSeed = 1

func curatorPeer(ctx context.Context, root string) (interop.Command, error) {
	classPath, err := install.JavaClient(ctx, root)
	if err != nil {
		return interop.Command{}, err
	}
	version, err := install.MavenVersion(root, "curator-recipes")
	return interop.Command{Lang: interop.Curator, Args: slices.Concat(javaCommand(root, classPath), []string{"Peer"}), After: []string{version}}, err
}

func kazooPeer(ctx context.Context, root string) (interop.Command, error) {
	python, err := install.Kazoo(ctx, root)
	// -B: no byte code into the source tree.
	return interop.Command{Lang: interop.Kazoo, Args: []string{python, "-B", root + "/test/compat/kazoo/peer.py"}}, err
}
