// Command diff plays the same generated sequences of operations on ZooKeeper (a) and gozkd (b) and
// compares the replies field by field. It prints each difference that docs/reference/differences.md
// does not allow, saves the smallest sequence that shows it in testdata/regress, and plays all
// saved sequences first in every run.
//
// With -golden it records exchanges with ZooKeeper instead, for test/golden to replay.
//
// Exit status: 1 if the servers differ or cannot be asked, 2 for wrong usage.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/compat/server"
)

func main() { must.Program("diff", run) }

func run(ctx context.Context, flags *flag.FlagSet, args []string) {
	binary := flags.String("gozkd", "", "the gozkd to test (default: build cmd/gozkd)")
	ops := flags.Int("ops", 200000, "how many requests to play")
	seed := flags.Uint64("seed", 0, "seed of the generator (default: the time)")
	format := flags.String("tls", "", "play over TLS, the servers with key stores in this format: PEM, PKCS12 or JKS (default: without TLS)")
	members := flags.Int("members", 1, "play on two ensembles of this many members, without malformed writes (default: on two standalone servers)")
	golden := flags.String("golden", "", "record exchanges with ZooKeeper into this folder and end")
	must.Parsed(flags.Parse(args))
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	root := install.Root(ctx)
	if *members > 1 && *format != "" {
		must.Failf("ensembles are played without TLS: leave out -members or -tls")
	}
	start := starter{format: *format, members: *members, dir: must.Get(os.MkdirTemp("", "gozkd-diff-"))}
	defer must.Finally(func() error { return os.RemoveAll(start.dir) })
	kinds := server.Twins(ctx, *binary, start.dir)
	if *golden != "" {
		record(ctx, &start, kinds[0], *golden)
		return
	}
	regress := root + "/test/compat/diff/testdata/regress"
	if *members > 1 {
		regress += "/ensemble" // the others have malformed writes
	}
	duel := &duel{start: &start, kinds: kinds, out: os.Stdout, regress: regress, allowed: make(map[string]int)}
	defer must.Finally(duel.stop)
	duel.restart(ctx)
	fmt.Printf("a: %s, b: %s, seed %d\n", duel.a.server.Name(), duel.b.server.Name(), *seed)
	duel.replay(ctx)
	duel.generated(ctx, *seed, *ops)
	duel.report()
	if len(duel.findings) > 0 {
		must.Failf("%d differences that docs/reference/differences.md does not allow", len(duel.findings))
	}
}
