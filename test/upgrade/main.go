// Command upgrade upgrades an ensemble of three servers, one at a time, and downgrades it again,
// while other people's clients take locks and write. No session may be lost, and no client may see
// an error that a repeated request does not overcome.
//
//	go run ./test/upgrade -from COMMIT
//
// The ensemble runs as COMMIT and as this tree, in turn, and then as a next version, which is this
// tree with one feature level more. gozkd.maxFeatureLevel holds the level back. At the end the key
// is removed, and from then on this tree and COMMIT must refuse the data.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/compat/lockload"
)

func main() { must.Program("upgrade", run) }

func run(ctx context.Context, flags *flag.FlagSet, args []string) {
	from := flags.String("from", "", "the commit to upgrade from and to go back to")
	clients := flags.String("client", "go-zookeeper", "comma-separated: go-zookeeper, kazoo, curator")
	rest := flags.Duration("rest", 2*time.Second, "how long the load runs between two restarts")
	must.Parsed(flags.Parse(args))
	if *from == "" {
		must.Failf("-from is missing: name the commit to upgrade from")
	}
	root := install.Root(ctx)
	dir := must.Get(os.MkdirTemp("", "gozkd-upgrade-"))
	defer must.Finally(func() error { return os.RemoveAll(dir) })
	r := &roll{versions: build(ctx, root, dir, *from), rest: *rest}
	r.begin(ctx)
	defer must.Finally(r.ensemble.Stop)
	r.load = lockload.Start(ctx, root, r.ensemble.Addrs(), strings.Split(*clients, ","))
	err := must.Try(func() { r.stages(ctx) })
	fmt.Print(r.table())
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, r.ensemble.Log())
	}
	must.Do(errors.Join(r.load.End(), err))
}
