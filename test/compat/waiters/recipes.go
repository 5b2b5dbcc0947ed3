package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/election"
	"github.com/gozkd/gozkd/recipes/lock"
)

const leases = 10

// play is the client that runs package recipes.
func play(ctx context.Context, args []string) {
	if len(args) != 5 {
		must.Failf("play KIND WAITERS TIMEOUT LIMIT ADDRESS")
	}
	n := must.Get(strconv.Atoi(args[1]))
	timeout, limit := must.Get(time.ParseDuration(args[2]+"ms")), must.Get(time.ParseDuration(args[3]+"ms"))
	c := must.Get(recipes.Connect(ctx, args[4:],
		recipes.SessionTimeout(timeout), recipes.Retry(recipes.Forever(50*time.Millisecond))))
	var watching sync.WaitGroup
	var lost, reconnects int
	states := c.States(ctx)
	// Ends when the Client is closed; awaited below.
	watching.Go(func() {
		for s := range states {
			switch s {
			case recipes.Lost:
				lost++
			case recipes.Reconnected:
				reconnects++
			default:
			}
		}
	})
	wait := waiter(c, args[0])
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	begun := time.Now()
	var served, failed atomic.Int64
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if err := wait(ctx, i); err == nil {
				served.Add(1)
			} else if failed.Add(1) <= 3 {
				fmt.Fprintln(os.Stderr, err)
			}
		})
	}
	wg.Wait()
	seconds := time.Since(begun).Seconds()
	must.Do(c.Close())
	watching.Wait()
	fmt.Println(served.Load(), lost, reconnects, seconds)
}

// waiter returns the function that each waiter calls. Its error is nil if the waiter was served.
func waiter(c *recipes.Client, kind string) func(ctx context.Context, i int) error {
	nothing := func(context.Context) error { return nil }
	switch kind {
	case "lock":
		m := lock.NewMutex(c, "/waiters", nil)
		return func(ctx context.Context, _ int) error { return m.With(ctx, nothing) }
	case "semaphore":
		s := lock.NewSemaphore(c, "/waiters", leases, nil)
		return func(ctx context.Context, _ int) error { return s.With(ctx, nothing) }
	case "election":
		return func(ctx context.Context, i int) error {
			l := election.NewLatch(c, "/waiters", strconv.Itoa(i))
			if err := l.Start(ctx); err != nil {
				return err
			}
			if _, err := l.Await(ctx); err != nil {
				return err
			}
			return l.Close()
		}
	}
	must.Failf("%q is no kind", kind)
	return nil
}
