package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/cache"
)

func configuration() {
	ctx := context.Background()
	c, err := recipes.Connect(ctx, os.Args[1:])
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	// The function is called now and after each change, across lost connections and sessions.
	err = cache.WatchData(ctx, c, "/config", func(z *cache.Znode) bool {
		switch {
		case z == nil:
			fmt.Println("defaults")
			_, err = c.Create(ctx, "/config", []byte("size=3"), recipes.CreateOptions{}) // an administrator does this
			return err == nil
		default:
			fmt.Printf("%s\n", z.Data)
			return false // true: go on
		}
	})
	fmt.Println("ended", err)
}
