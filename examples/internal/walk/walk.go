// Package walk is what the programs in examples/ have in common besides what they show: their
// command line, a server if there is none, and their end.
package walk

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/server"
)

// Connect makes a client, as one process of a distributed program would make its own: it is
// recipes.Connect with the servers of the command line. Who calls it closes what it returns.
type Connect func(ctx context.Context) (*recipes.Client, error)

// Run is a walk: it prints to out what happens, and returns when it has come to its end, or ctx has
// ended.
type Run func(ctx context.Context, connect Connect, out io.Writer) error

// patience is how long a server has to answer: Connect alone would try until ctx ends.
const patience = 10 * time.Second

var errNoServer = errors.New("no server answers")

// Main runs a walk against the servers of the flag -server, or one in this process and in memory,
// until it ends or is interrupted.
func Main(run Run) {
	servers := flag.String("server", "", "host:port,... of gozkd or any ZooKeeper; by default one in this process, in memory")
	flag.Parse()
	if flag.NArg() > 0 {
		log.Fatalf("%q: there is only the flag -server", flag.Arg(0))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := walk(ctx, *servers, run)
	stop()
	if err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

func walk(ctx context.Context, servers string, run Run) (err error) {
	if servers == "" {
		s, err := server.New(server.Config{})
		if err != nil {
			return err
		}
		if err := s.Start(ctx); err != nil {
			return err
		}
		defer func() { _ = s.Close() }() // what is in memory goes with it
		servers = s.ConnectString()
	}
	return run(ctx, func(ctx context.Context) (*recipes.Client, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, patience, errNoServer)
		defer cancel()
		return recipes.Connect(ctx, strings.Split(servers, ","))
	}, os.Stdout)
}

// Together runs f n times at once, as n processes would, numbered from 1. It returns when all have
// ended, with their errors.
func Together(n int, f func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if err := f(i + 1); err != nil {
				errs[i] = fmt.Errorf("process %d: %w", i+1, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Sleep is time.Sleep that ends with ctx, and then returns why.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
