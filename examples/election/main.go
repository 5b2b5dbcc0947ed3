// Election is the master election of "Notes on Zookeeper": candidates stand in line, and the first leads. When it dies or resigns, the one
// behind it does, which alone has watched it.
//
//	go run ./examples/election                          # with a server in this process
//	go run ./examples/election -server 127.0.0.1:2181   # with gozkd or any ZooKeeper; start it several times
//
// A Java program with new LeaderLatch(client, "/election") takes part.
package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/gozkd/gozkd/examples/internal/walk"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/election"
)

const path = "/election"

func main() { walk.Main(run) }

func run(ctx context.Context, connect walk.Connect, out io.Writer) error {
	return walk.Together(3, func(i int) error {
		// One after the other, so that they lead in this order.
		if err := walk.Sleep(ctx, time.Duration(i)*200*time.Millisecond); err != nil {
			return err
		}
		return candidate(ctx, i, connect, out)
	})
}

func candidate(ctx context.Context, i int, connect walk.Connect, out io.Writer) error {
	c, err := connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	id := fmt.Sprint("candidate ", i)
	latch := election.NewLatch(c, path, id)
	latch.Start()
	fmt.Fprintln(out, id, "stands")

	leadership, err := latch.Await(ctx)
	if err != nil {
		return err
	}
	all, err := latch.Candidates(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, id, "leads:", strings.Join(all, ", "))
	if err := lead(leadership); err != nil {
		return err
	}

	if i == 1 {
		fmt.Fprintln(out, id, "dies")
		return c.Close() // its session goes with the process, and its place in line with the session
	}
	fmt.Fprintln(out, id, "resigns")
	return latch.Close(ctx)
}

// lead works for a second. leadership's Context ends before anybody else can lead.
func lead(leadership *recipes.Hold) error {
	return walk.Sleep(leadership.Context(), time.Second)
}
