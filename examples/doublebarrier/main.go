// Doublebarrier is the double barrier of "Notes on Zookeeper" and of ZooKeeper's own tutorial.
// Processes start a computation together, when enough processes have arrived, and finish together,
// when all are done.
//
//	go run ./examples/doublebarrier                          # with a server in this process
//	go run ./examples/doublebarrier -server 127.0.0.1:2181   # with gozkd or any ZooKeeper
package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/gozkd/gozkd/examples/internal/example"
	"github.com/gozkd/gozkd/recipes/barrier"
)

const (
	path      = "/b1"
	processes = 3
)

func main() { example.Main(run) }

func run(ctx context.Context, connect example.Connect, out io.Writer) error {
	return example.Together(processes, func(id int) error { return process(ctx, id, connect, out) })
}

func process(ctx context.Context, id int, connect example.Connect, out io.Writer) error {
	c, err := connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	pace := time.Duration(id) * 300 * time.Millisecond // some processes are slower than others

	if err := example.Sleep(ctx, pace); err != nil {
		return err
	}
	b := barrier.NewDouble(c, path, processes, fmt.Sprint("process ", id))
	fmt.Fprintln(out, id, "Arrived at the barrier")
	member, err := b.Enter(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, id, "Entered the barrier")

	if err := example.Sleep(ctx, pace); err != nil { // the computation
		return err
	}
	fmt.Fprintln(out, id, "Done")

	if err := member.Leave(ctx); err != nil {
		return err
	}
	fmt.Fprintln(out, id, "Left the barrier")
	return nil
}
