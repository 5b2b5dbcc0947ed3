package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/lock"
)

func oneAtATime() {
	ctx := context.Background()
	c, err := recipes.Connect(ctx, os.Args[1:])
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	err = lock.NewMutex(c, "/backup/lock", nil).With(ctx, func(ctx context.Context) error {
		fmt.Println("no other process is here") // ctx ends before another can be
		return nil
	})
	fmt.Println("unlocked", err)
}
