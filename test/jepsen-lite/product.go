//go:build linux

package jepsenlite

import (
	"context"
	"path/filepath"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/server"
)

// Names of products for Find.
const (
	Gozkd     = server.Gozkd
	ZooKeeper = server.Newest
)

// Find builds or installs a product and writes its files to dir. gozkd is the binary to test; if
// empty, it is built from the tree.
func Find(ctx context.Context, name, gozkd, dir string) Product {
	kind := server.KindNamed(ctx, name, gozkd, dir)
	command := kind.Command(ctx, dir, server.Options{})
	if name == Gozkd {
		command[0] = must.Get(filepath.Abs(command[0])) // members have directories of their own
	}
	return Product{Name: name, Command: command}
}
