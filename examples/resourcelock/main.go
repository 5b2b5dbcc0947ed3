// Resourcelock is the walk of "Distributed Coordination with Apache Zookeeper - A Java Approach": four workers use one resource, and
// have a lock for it in turn. Each has a connection of its own, as if it were a process on another machine.
//
//	go run ./examples/resourcelock                          # with a server in this process
//	go run ./examples/resourcelock -server 127.0.0.1:2181   # with gozkd or any ZooKeeper
//
// Each worker's znode says who it is, so that whoever holds or awaits the lock can be seen from outside: with zkCli.sh below
// /resource_lock_parent_resource, or with lock.Explain.
package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/gozkd/gozkd/examples/internal/walk"
	"github.com/gozkd/gozkd/recipes/lock"
)

const resource = "/resource_lock_parent_resource"

func main() { walk.Main(run) }

func run(ctx context.Context, connect walk.Connect, out io.Writer) error {
	return walk.Together(4, func(id int) error { return worker(ctx, id, connect, out) })
}

func worker(ctx context.Context, id int, connect walk.Connect, out io.Writer) error {
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

	// What is done with the resource ends at the latest when somebody else may have the lock.
	working, cancel := l.Within(ctx)
	defer cancel()
	if err := walk.Sleep(working, 500*time.Millisecond); err != nil {
		return err
	}

	fmt.Fprintln(out, id, "Releasing Lock")
	if err := l.Unlock(ctx); err != nil {
		return err
	}
	fmt.Fprintln(out, id, "Released Lock")
	return nil
}
