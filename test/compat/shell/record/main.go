// Command record records the output of zkCli.sh 3.9.5 for the script of make compat's row cli on a
// ZooKeeper 3.9.5 into internal/testkit/zkclitwin/testdata, for tests without Java.
package main

import (
	"context"
	"flag"
	"os"
	"path/filepath"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/compat/server"
	"github.com/gozkd/gozkd/test/compat/shell"
)

func main() { must.Program("record", run) }

func run(ctx context.Context, _ *flag.FlagSet, _ []string) {
	root := install.Root(ctx)
	zooKeeper := server.KindNamed(ctx, server.ZooKeeper39, "", "")
	p := must.Get(zooKeeper.Start(ctx, server.Options{}))
	defer must.Finally(p.Stop)
	text := must.Get(shell.Record(ctx, root, p.Addr()))
	must.Do(os.WriteFile(filepath.Join(root, "internal", "testkit", "zkclitwin", "testdata", "zkcli-3.9.5.txt"), []byte(text), 0o644))
}
