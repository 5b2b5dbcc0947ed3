package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/queue"
)

func workQueue() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	c, err := recipes.Connect(ctx, os.Args[1:])
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	links := queue.New(c, "/links", queue.Locks("/links-locks"))
	if err := links.Put(ctx, []byte("https://example.org")); err != nil {
		log.Fatal(err)
	}
	// nil removes the item; an error, or the death of this process, returns the item to the queue.
	err = links.Handle(ctx, func(ctx context.Context, item *queue.Item) error {
		fmt.Printf("fetches %s\n", item.Data)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
}
