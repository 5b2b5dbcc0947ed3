package queue_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes/queue"
)

func Example() {
	client, stop := recipetest.ConnectExample()
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

// An item whose handling fails becomes available again, and so would an item whose consumer dies.
func Example_locked() {
	client, stop := recipetest.ConnectExample()
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
			return ctx.Err() // for work that ends when the lock is lost
		})
		fmt.Println(err)
	}
	// Output:
	// no answer
	// fetched https://example.org
	// <nil>
}

func ExamplePriority() {
	client, stop := recipetest.ConnectExample()
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
