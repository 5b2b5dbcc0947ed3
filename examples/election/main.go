// Election is the master election of "Notes on Zookeeper". Candidates stand in line, and the first
// candidate leads. When the leader dies or resigns, the next candidate leads. Only that candidate
// watches the leader, so no other candidate is woken.
//
//	go run ./examples/election                          # with a server in this process
//	go run ./examples/election -server 127.0.0.1:2181   # with gozkd or any ZooKeeper
//
// With -server, start the program several times. A Java program with new LeaderLatch(client,
// "/election") can take part too.
package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/gozkd/gozkd/examples/internal/example"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/election"
)

const path = "/election"

func main() { example.Main(run) }

func run(ctx context.Context, connect example.Connect, out io.Writer) error {
	return example.Together(3, func(i int) error {
		// The pauses let the candidates join, and later lead, in the order of i.
		if err := example.Sleep(ctx, time.Duration(i)*200*time.Millisecond); err != nil {
			return err
		}
		return candidate(ctx, i, connect, out)
	})
}

func candidate(ctx context.Context, i int, connect example.Connect, out io.Writer) error {
	c, err := connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	id := fmt.Sprint("candidate ", i)
	latch := election.NewLatch(c, path, id)
	if err := latch.Start(ctx); err != nil {
		return err
	}
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
		return c.Close() // ends the session, and with the session the leadership
	}
	fmt.Fprintln(out, id, "resigns")
	return latch.Close()
}

// lead works for a second. leadership.Context ends before another candidate can lead.
func lead(leadership *recipes.Hold) error {
	return example.Sleep(leadership.Context(), time.Second)
}
