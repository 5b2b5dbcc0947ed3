package cache_test

import (
	"context"
	"fmt"
	"log"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/cache"
)

func put(c *recipes.Client, path, data string) {
	if _, err := c.Create(context.Background(), path, []byte(data), recipes.CreateOptions{Parents: true}); err != nil {
		log.Fatal(err)
	}
}

func Example() {
	c, stop := recipetest.ConnectExample()
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	put(c, "/workers/anna", "10.0.0.7")

	workers := cache.NewChildren(c, "/workers")
	if err := workers.Start(ctx); err != nil {
		log.Fatal(err)
	}
	defer workers.Close()
	if err := workers.Wait(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(workers.All()), string(workers.Get("/workers/anna").Data)) // from memory

	for e := range workers.Events(ctx) {
		switch e.Type {
		case cache.Complete:
			put(c, "/workers/bert", "10.0.0.8")
		case cache.Added:
			fmt.Println(e.Path(), string(e.New.Data))
			if e.Path() == "/workers/bert" {
				return
			}
		}
	}
	// Output:
	// 1 10.0.0.7
	// /workers/anna 10.0.0.7
	// /workers/bert 10.0.0.8
}

func ExampleWatchData() {
	c, stop := recipetest.ConnectExample()
	defer stop()
	ctx := context.Background()

	err := cache.WatchData(ctx, c, "/config", func(z *cache.Znode) bool {
		if z == nil {
			fmt.Println("no configuration yet")
			put(c, "/config", "fast")
			return true
		}
		fmt.Println(string(z.Data))
		return false
	})
	fmt.Println(err)
	// Output:
	// no configuration yet
	// fast
	// <nil>
}

func ExampleNewTree() {
	c, stop := recipetest.ConnectExample()
	defer stop()
	ctx := context.Background()
	put(c, "/app/db/host", "10.0.0.9")
	put(c, "/app/db/port", "5432")

	tree := cache.NewTree(c, "/app", cache.TreeOptions{})
	if err := tree.Start(ctx); err != nil {
		log.Fatal(err)
	}
	defer tree.Close()
	if err := tree.Wait(ctx); err != nil {
		log.Fatal(err)
	}
	for _, z := range tree.Children("/app/db") {
		fmt.Println(z.Path, string(z.Data))
	}
	// Output:
	// /app/db/host 10.0.0.9
	// /app/db/port 5432
}
