package election_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/election"
)

func ExampleLatch() {
	c, stop := recipetest.ConnectExample()
	defer stop()
	ctx := context.Background()
	if _, err := c.Create(ctx, "/plan", nil, recipes.CreateOptions{}); err != nil {
		log.Fatal(err)
	}

	latch := election.NewLatch(c, "/planner/leader", "host-7")
	if err := latch.Start(ctx); err != nil {
		log.Fatal(err)
	}
	held, err := latch.Await(ctx)
	if err != nil {
		log.Fatal(err)
	}
	// The plan is written only if this process still leads.
	_, err = held.Commit(ctx, client.SetOp("/plan", []byte("host-7's plan"), -1))
	fmt.Println("written:", err)

	leader, err := latch.Leader(ctx)
	fmt.Println("leader:", leader, err)
	if err := latch.Close(); err != nil {
		log.Fatal(err)
	}
	_, err = held.Commit(ctx, client.SetOp("/plan", []byte("an old plan"), -1))
	fmt.Println("too late:", errors.Is(err, recipes.ErrNotHeld))
	// Output:
	// written: <nil>
	// leader: host-7 <nil>
	// too late: true
}

func ExampleSelector_Run() {
	c, stop := recipetest.ConnectExample()
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	times := 0
	err := election.NewSelector(c, "/planner/leader", "host-7").Run(ctx, func(ctx context.Context, held *recipes.Hold) error {
		times++
		fmt.Println("leading", times, ctx.Err())
		if times == 2 {
			cancel()
		}
		return nil // resigns, and joins again
	})
	fmt.Println(errors.Is(err, context.Canceled))
	// Output:
	// leading 1 <nil>
	// leading 2 <nil>
	// true
}
