// Package example is the common part of the programs in examples/: the command line, a server in
// this process unless -server names another, and helpers.
package example

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

// Connect connects to the servers of the command line with recipes.Connect, as each process of a
// distributed program does. The caller must close the client.
type Connect func(ctx context.Context) (*recipes.Client, error)

// Run is a program. It prints its progress to out, and returns when it has finished or ctx ends.
type Run func(ctx context.Context, connect Connect, out io.Writer) error

// connectTimeout bounds how long Connect waits for a server: recipes.Connect alone would try until
// ctx ends.
const connectTimeout = 10 * time.Second

var errNoServer = errors.New("no server answers")

// Main runs a program until the program ends or the user interrupts it. The servers are those of
// the flag -server, or by default a server in this process, with its data in memory.
func Main(run Run) {
	servers := flag.String("server", "", "host:port,... of gozkd or any ZooKeeper; by default one in this process, in memory")
	flag.Parse()
	if flag.NArg() > 0 {
		log.Fatalf("unexpected argument %q: the only flag is -server host:port", flag.Arg(0))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := runWith(ctx, *servers, run)
	stop()
	if err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

func runWith(ctx context.Context, servers string, run Run) (err error) {
	if servers == "" {
		s, err := server.New(server.Config{})
		if err != nil {
			return err
		}
		if err := s.Start(ctx); err != nil {
			return err
		}
		defer func() { _ = s.Close() }() // its data are in memory only
		servers = s.ConnectString()
	}
	return run(ctx, func(ctx context.Context) (*recipes.Client, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, connectTimeout, errNoServer)
		defer cancel()
		return recipes.Connect(ctx, strings.Split(servers, ","))
	}, os.Stdout)
}

// Together runs f n times at once, like n processes, from number 1. It returns all errors.
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

// Sleep waits for d, or returns the cause of ctx when ctx ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
