package barrier_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes/barrier"
)

func ExampleBarrier() {
	c, stop := recipetest.ConnectExample()
	defer stop()
	ctx := context.Background()

	// A process that prepares something blocks all that need it.
	gate := barrier.New(c, "/reports/gate")
	if err := gate.Set(ctx); err != nil {
		log.Fatal(err)
	}
	done := make(chan error)
	go func() { // another process; ends when the barrier is removed
		err := barrier.New(c, "/reports/gate").Wait(ctx)
		fmt.Println("all is prepared")
		done <- err
	}()
	fmt.Println("preparing")
	if err := gate.Remove(ctx); err != nil {
		log.Fatal(err)
	}
	if err := <-done; err != nil {
		log.Fatal(err)
	}
	// Output:
	// preparing
	// all is prepared
}

func ExampleDouble_With() {
	c, stop := recipetest.ConnectExample()
	defer stop()

	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		sums = make(map[int]int)
	)
	for worker := range 3 { // each goroutine stands for a process
		wg.Go(func() {
			both := barrier.NewDouble(c, "/sums", 3, fmt.Sprint("worker ", worker))
			// No part begins before all workers are there, and no worker continues before all parts
			// are done.
			err := both.With(context.Background(), func(ctx context.Context) error {
				mu.Lock()
				defer mu.Unlock()
				sums[worker] = worker * worker
				return nil
			})
			if err != nil {
				log.Fatal(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if len(sums) < 3 {
				fmt.Println("a part is missing")
			}
		})
	}
	wg.Wait()
	fmt.Println(sums)
	// Output: map[0:0 1:1 2:4]
}

func ExampleDouble_Enter() {
	c, stop := recipetest.ConnectExample()
	defer stop()
	ctx := context.Background()

	both := barrier.NewDouble(c, "/job", 1, "host-7")
	member, err := both.Enter(ctx) // when all have entered
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("all are in")
	if err := member.Leave(ctx); err != nil { // when all want to leave
		log.Fatal(err)
	}
	fmt.Println(member.Context().Err())
	// Output:
	// all are in
	// context canceled
}
