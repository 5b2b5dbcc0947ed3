package interop

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/gozkd/gozkd/test/compat/install"
)

// Language installs the libraries of a language's recipes, and returns how to start its peer.
type Language func(ctx context.Context, root string) Command

// CuratorPeer is the Language of Curator.
func CuratorPeer(ctx context.Context, root string) Command {
	java := install.Java(root, "256m", install.JavaClient(ctx, root))
	return Command{Lang: Curator, Args: slices.Concat(java, []string{"Peer"}), After: []string{install.MavenVersion(root, "curator-recipes")}}
}

// KazooPeer is the Language of kazoo.
func KazooPeer(ctx context.Context, root string) Command {
	// -B: no byte code into the source tree.
	return Command{Lang: Kazoo, Args: []string{install.Kazoo(ctx, root), "-B", root + "/test/compat/kazoo/peer.py"}}
}

// GoPeer is the Language of our recipes.
func GoPeer(ctx context.Context, root string) Command {
	binary := filepath.Join(root, ".cache", "compat", "go", "gopeer")
	install.Output(ctx, root, "go", "build", "-o", binary, "./test/compat/interop/gopeer")
	return Command{Lang: Go, Args: []string{binary}}
}
