// Resourcelock is the program of "Distributed Coordination with Apache Zookeeper - A Java
// Approach": four workers use a resource in turn, each under the same lock. Each worker has its own
// connection, like a process on another machine.
//
//	go run ./examples/resourcelock                          # with a server in this process
//	go run ./examples/resourcelock -server 127.0.0.1:2181   # with gozkd or any ZooKeeper
//
// Each worker's znode contains the worker's name. So zkCli.sh, below
// /resource_lock_parent_resource, and lock.Explain show the holder and the waiters.
package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/gozkd/gozkd/examples/internal/example"
	"github.com/gozkd/gozkd/recipes/lock"
)

const resource = "/resource_lock_parent_resource"

func main() { example.Main(run) }

func run(ctx context.Context, connect example.Connect, out io.Writer) error {
	return example.Together(4, func(id int) error { return worker(ctx, id, connect, out) })
}

func worker(ctx context.Context, id int, connect example.Connect, out io.Writer) error {
	c, err := connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()

	m := lock.NewMutex(c, resource, fmt.Append(nil, "worker ", id))
	fmt.Fprintln(out, id, "Acquiring Lock")
	l, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, id, "get Lock")

	// The work must stop when working ends, which is before another worker can hold the lock.
	working, cancel := l.Within(ctx)
	defer cancel()
	if err := example.Sleep(working, 500*time.Millisecond); err != nil {
		return err
	}

	fmt.Fprintln(out, id, "Releasing Lock")
	if err := l.Release(ctx); err != nil {
		return err
	}
	fmt.Fprintln(out, id, "Released Lock")
	return nil
}
