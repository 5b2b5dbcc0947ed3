package agree_test

import (
	"context"
	"fmt"
	"log"
	"maps"
	"slices"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/agree"
)

func ExampleTransaction() {
	c, stop := recipetest.ConnectExample()
	defer stop()
	ctx := context.Background()

	coordinator, err := agree.NewTransaction(c, "/transfers/17").Begin(ctx, []byte("5 from a to b"), "a", "b")
	if err != nil {
		log.Fatal(err)
	}
	for _, site := range []string{"a", "b"} { // each in its own process, which was told the path
		p, err := agree.NewTransaction(c, "/transfers/17").Join(ctx, site)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s can do %q\n", site, p.Task())
		if err := p.Vote(ctx, agree.Commit); err != nil {
			log.Fatal(err)
		}
		defer func() { _ = p.Close() }() // the sites continue with p.Outcome and p.Done
	}
	decision, err := coordinator.Outcome(ctx)
	fmt.Println(decision, err)
	// Output:
	// a can do "5 from a to b"
	// b can do "5 from a to b"
	// commit <nil>
}

func ExampleRendezvous() {
	c, stop := recipetest.ConnectExample()
	defer stop()
	ctx := context.Background()

	for _, address := range []string{"10.0.0.1:7000", "10.0.0.2:7000"} {
		m, err := agree.NewRendezvous(c, "/game").Meet(ctx, []byte(address))
		if err != nil {
			log.Fatal(err)
		}
		defer func() { _ = m.Close() }()
		fmt.Printf("%s: host %v, at %s\n", address, m.Held != nil, m.Address)
	}
	// Output:
	// 10.0.0.1:7000: host true, at 10.0.0.1:7000
	// 10.0.0.2:7000: host false, at 10.0.0.1:7000
}

func ExamplePartitioner() {
	c, stop := recipetest.ConnectExample()
	defer stop()

	p := agree.NewPartitioner(c, "/queues", []string{"mail", "print", "sms"}, "worker-1", 50*time.Millisecond)
	err := p.Run(context.Background(), func(ctx context.Context, parts map[string]*recipes.Hold) error {
		// Usually the work lasts until ctx ends: other members then wait for some of the parts.
		fmt.Println(slices.Sorted(maps.Keys(parts)), ctx.Err())
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: [mail print sms] <nil>
}
