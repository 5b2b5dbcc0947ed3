// Command hostile lets processes of Curator, kazoo and Go share recipes on three gozkd processes
// that are killed and stopped, and checks the promises of the recipes.
// docs/quality/how-we-test.md describes the checks.
//
// Exit status: 1 if a promise was broken or the test could not run, 2 for wrong usage.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/compat/interop"
	"github.com/gozkd/gozkd/test/compat/server"
)

func main() { must.Program("hostile", run) }

func run(ctx context.Context, flags *flag.FlagSet, args []string) {
	length := flags.Duration("time", time.Minute, "how long there are faults")
	seed := flags.Uint64("seed", rand.Uint64(), "the seed of the faults (default: drawn)")
	binary := flags.String("gozkd", "", "the gozkd to test (default: build cmd/gozkd)")
	plant := flags.Bool("plant", false, "plant a fault, which must be found: Go's writes ignore the guards of their locks")
	verbose := flags.Bool("v", false, "print every fault")
	must.Parsed(flags.Parse(args))
	root := install.Root(ctx)
	dir := must.Get(os.MkdirTemp("", "gozkd-hostile-"))
	defer must.Finally(func() error { return os.RemoveAll(dir) })
	gozkd := server.KindNamed(ctx, server.Gozkd, *binary, dir)
	goPeer := interop.GoPeer(ctx, root)
	if *plant {
		goPeer.After = []string{"unguarded"}
	}
	commands := []interop.Command{interop.CuratorPeer(ctx, root), interop.KazooPeer(ctx, root), goPeer, goPeer}
	ensemble := must.Get(gozkd.StartEnsemble(ctx, server.EnsembleOptions{Members: 3}))
	defer must.Finally(ensemble.Stop)
	fmt.Printf("seed %d, %v\n", *seed, *length)
	began := time.Now()
	report, err := interop.Hostile(ctx, interop.HostileOptions{
		Ensemble: ensemble, Commands: commands, Time: *length, Seed: *seed,
		Log: func(format string, args ...any) {
			if *verbose {
				fmt.Printf("%7.1f s  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
			}
		},
	})
	for _, line := range slices.Concat(report.Lines, report.Findings) {
		fmt.Println(line)
	}
	must.Do(err)
	if n := len(report.Findings); n > 0 {
		must.Failf("%d promises were broken", n)
	}
	fmt.Printf("no promise was broken in %v\n", time.Since(began).Round(time.Second))
}
