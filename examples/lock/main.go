// Lock is the program of "Building a Distributed Lock" and "Building a Distributed Lock Revisited:
// Using Curator's InterProcessMutex". A client acquires a lock without a timeout. A second client
// waits for two seconds and gives up. After the first has unlocked, the second uses With to work
// under the lock; With always unlocks.
//
//	go run ./examples/lock                          # with a server in this process
//	go run ./examples/lock -server 127.0.0.1:2181   # with gozkd or any ZooKeeper
//
// A Java program with new InterProcessMutex(client, "/lock-node") shares the lock.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gozkd/gozkd/examples/internal/example"
	"github.com/gozkd/gozkd/recipes/lock"
)

const path = "/lock-node"

func main() { example.Main(run) }

func run(ctx context.Context, connect example.Connect, out io.Writer) error {
	// Two connections, like those of two processes that share nothing except the path of the lock.
	first, err := connect(ctx)
	if err != nil {
		return err
	}
	defer first.Close()
	second, err := connect(ctx)
	if err != nil {
		return err
	}
	defer second.Close()
	mine, theirs := lock.NewMutex(first, path, []byte("first")), lock.NewMutex(second, path, []byte("second"))

	// Without a timeout: Lock waits until the lock is acquired or ctx ends.
	held, err := mine.Lock(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "first: owns the lock")

	// With a timeout: a client that gives up leaves no znode.
	waiting, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	fmt.Fprintln(out, "second: waits for two seconds")
	switch _, err := theirs.Lock(waiting); {
	case err == nil:
		return errors.New("both clients own the lock")
	case errors.Is(err, context.DeadlineExceeded):
		fmt.Fprintln(out, "second: timed out waiting for the lock")
	default:
		return err
	}
	line, err := lock.Explain(ctx, second, path)
	if err != nil {
		return err
	}
	for _, holder := range line.Holders {
		fmt.Fprintf(out, "%s has it, and %d wait\n", holder.Data, len(line.Waiters))
	}
	if err := held.Release(ctx); err != nil {
		return err
	}
	fmt.Fprintln(out, "first: unlocked")

	// With always unlocks, also after an error or a panic. The context that With passes ends when
	// the lock is lost, before another client can hold the lock.
	err = theirs.With(ctx, func(ctx context.Context) error {
		fmt.Fprintln(out, "second: works while it owns the lock")
		return example.Sleep(ctx, 100*time.Millisecond)
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "second: unlocked")
	return nil
}
