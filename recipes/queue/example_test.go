package queue_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/queue"
	"github.com/gozkd/gozkd/server"
)

// startServer starts a server in this process: what follows works the same on any ZooKeeper.
func startServer() (address string, stop func()) {
	s, err := server.New(server.Config{})
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Start(context.Background()); err != nil {
		log.Fatal(err)
	}
	return s.ConnectString(), func() { _ = s.Close() } // what is in memory goes with it
}

func connect() (client *recipes.Client, stop func()) {
	address, end := startServer()
	client, err := recipes.Connect(context.Background(), []string{address})
	if err != nil {
		log.Fatal(err)
	}
	return client, func() {
		_ = client.Close() // the server goes with it
		end()
	}
}

func Example() {
	client, stop := connect()
	defer stop()
	ctx := context.Background()

	q := queue.New(client, "/jobs")
	for _, job := range []string{"first", "second"} {
		if err := q.Put(ctx, []byte(job)); err != nil {
			log.Fatal(err)
		}
	}
	for range 2 {
		message, err := q.Take(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(string(message.Data))
	}
	// Output:
	// first
	// second
}

// What fails comes back, and so would what was taken by somebody who dies.
func Example_locked() {
	client, stop := connect()
	defer stop()
	ctx := context.Background()

	links := queue.New(client, "/links", queue.Locks("/links-locks"))
	if err := links.Put(ctx, []byte("https://example.org")); err != nil {
		log.Fatal(err)
	}
	for tries := 1; tries <= 2; tries++ {
		err := links.Handle(ctx, func(ctx context.Context, link *queue.Item) error {
			if tries == 1 {
				return errors.New("no answer")
			}
			fmt.Println("fetched", string(link.Data))
			return ctx.Err() // of one that ends when the lock is lost
		})
		fmt.Println(err)
	}
	// Output:
	// no answer
	// fetched https://example.org
	// <nil>
}

func ExamplePriority() {
	client, stop := connect()
	defer stop()
	ctx := context.Background()

	q := queue.NewPriority(client, "/jobs")
	for priority, job := range []string{"urgent", "soon", "some time"} {
		if err := q.Put(ctx, int32(priority), []byte(job)); err != nil {
			log.Fatal(err)
		}
	}
	message, ok, err := q.TryTake(ctx)
	fmt.Println(string(message.Data), ok, err)
	// Output: urgent true <nil>
}
