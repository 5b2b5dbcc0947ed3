package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/group"
)

func whoIsThere() {
	ctx := context.Background()
	c, err := recipes.Connect(ctx, os.Args[1:])
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	workers := group.New(c, "/workers")
	// This process is a member until f returns or the process dies.
	err = workers.With(ctx, "host-7", []byte("10.0.0.7:8080"), func(ctx context.Context) error {
		members, err := workers.Members(ctx) // View keeps them in memory
		for _, m := range members {
			fmt.Printf("%s at %s\n", m.ID, m.Payload)
		}
		return err
	})
	fmt.Println("left", err)
}
