package shared_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes/shared"
)

func ExampleNumber() {
	c, stop := recipetest.ConnectExample()
	defer stop()
	ctx := context.Background()

	visits := shared.NewLong(c, "/visits", shared.PromotedToLock("/visits-lock"))
	defer func() { _ = visits.Close() }()
	for range 3 {
		change, err := visits.Add(ctx, 1)
		if err != nil {
			log.Fatal(err) // if errors.Is(err, recipes.ErrOutcomeUnknown), it may have been counted
		}
		fmt.Println(change.Before.Value, change.After.Value)
	}
	// Output:
	// 0 1
	// 1 2
	// 2 3
}

func ExampleValue_Changes() {
	c, stop := recipetest.ConnectExample()
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	color := shared.NewValue(c, "/color")
	defer func() { _ = color.Close() }()
	if err := color.Set(ctx, []byte("green")); err != nil {
		log.Fatal(err)
	}
	for v, err := range color.Changes(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(string(v.Value))
		if string(v.Value) == "blue" {
			break
		}
		if _, done, err := color.CompareAndSet(ctx, v, []byte("blue")); err != nil || !done {
			log.Fatal(done, err)
		}
	}
	// Output:
	// green
	// blue
}

func ExampleIDs() {
	c, stop := recipetest.ConnectExample()
	defer stop()
	ctx := context.Background()

	number := shared.NewLong(c, "/orders")
	defer func() { _ = number.Close() }()
	ids := shared.NewIDs(number, 100)
	for range 2 {
		id, err := ids.Next(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(id)
	}
	// Output:
	// 0
	// 1
}

func ExampleLease() {
	c, stop := recipetest.ConnectExample()
	defer stop()
	ctx := context.Background()

	// A little more than an hour, so that the same machine does the hourly work as long as it is
	// available.
	for _, machine := range []string{"anna", "bert", "anna"} {
		_, err := shared.NewLease(c, "/leases/cleanup", machine, 70*time.Minute).Obtain(ctx)
		fmt.Println(machine, err == nil)
	}
	// Output:
	// anna true
	// bert false
	// anna true
}
