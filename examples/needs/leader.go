package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/election"
)

func oneLeader() {
	ctx := context.Background()
	c, err := recipes.Connect(ctx, os.Args[1:])
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	// Run instead of Lead stands again after a term.
	err = election.NewSelector(c, "/planner/leader", "host-7").Lead(ctx, func(ctx context.Context, held *recipes.Hold) error {
		// Fails after a loss.
		_, err := held.Commit(ctx, client.CreateOp("/planner/plan", []byte("v1"), client.CreateOptions{}))
		fmt.Println("leads", err)
		return err
	})
	fmt.Println("resigned", err)
}
