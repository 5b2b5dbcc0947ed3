package recipes_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
)

func ExampleConnect() {
	address, stop := recipetest.StartServer()
	defer stop()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client, err := recipes.Connect(ctx, []string{address},
		recipes.SessionTimeout(20*time.Second),
		recipes.Retry(recipes.Exponential(50*time.Millisecond, time.Second, 10)))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	session := client.Session()
	fmt.Println(client.State(), client.Timeout(), session.Context().Err())
	// Output: connected 20s <nil>
}

func ExampleClient_Create() {
	address, stop := recipetest.StartServer()
	defer stop()
	ctx := context.Background()
	client, err := recipes.Connect(ctx, []string{address})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	// Whatever happens to the connection, this creates one znode, or none if ctx ends.
	path, err := client.Create(ctx, "/workers/w-", []byte("10.0.0.7"), recipes.CreateOptions{
		Ephemeral: true, Sequential: true,
		Parents:   true,
		Protected: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(path[len(path)-10:])
	// Output: 0000000000
}
