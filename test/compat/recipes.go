package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/gozkd/gozkd/test/compat/cases"
	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/compat/interop"
)

// language is a language with recipes, and how to start its peer.
type language struct {
	install func(ctx context.Context, root string) error
	command func(ctx context.Context, root string) (interop.Command, error)
}

func ours() language { return language{installGoPeer, goPeer} }

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

// recipesSeed is the seed of random decisions; how peers interleave is up to the machine.
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

func goPeerBinary(root string) string { return filepath.Join(root, ".cache", "compat", "go", "gopeer") }

// installGoPeer builds our peer.
func installGoPeer(ctx context.Context, root string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", goPeerBinary(root), "./test/compat/interop/gopeer")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the Go peer: %w\n%s", err, out)
	}
	return nil
}

func goPeer(_ context.Context, root string) (interop.Command, error) {
	return interop.Command{Lang: interop.Go, Args: []string{goPeerBinary(root)}}, nil
}
