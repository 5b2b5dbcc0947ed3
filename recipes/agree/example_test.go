package agree_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/agree"
	"github.com/gozkd/gozkd/server"
)

// connect returns a client of a server in this process: what follows works the same on any ZooKeeper.
func connect() (c *recipes.Client, stop func()) {
	s, err := server.New(server.Config{})
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Start(context.Background()); err != nil {
		log.Fatal(err)
	}
	c, err = recipes.Connect(context.Background(), []string{s.ConnectString()})
	if err != nil {
		log.Fatal(err)
	}
	return c, func() {
		_ = c.Close()
		_ = s.Close() // what is in memory goes with it
	}
}

func ExampleTransaction() {
	c, stop := connect()
	defer stop()
	ctx := context.Background()

	coordinator, err := agree.NewTransaction(c, "/transfers/17").Begin(ctx, []byte("5 from a to b"), "a", "b")
	if err != nil {
		log.Fatal(err)
	}
	for _, site := range []string{"a", "b"} { // in processes of their own, which were told of the path
		p, err := agree.NewTransaction(c, "/transfers/17").Join(ctx, site)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s can do %q\n", site, p.Task())
		if err := p.Vote(ctx, agree.Commit); err != nil {
			log.Fatal(err)
		}
		defer func() { _ = p.Leave(ctx) }() // they go on with p.Outcome and p.Done
	}
	decision, err := coordinator.Decide(ctx)
	fmt.Println(decision, err)
	// Output:
	// a can do "5 from a to b"
	// b can do "5 from a to b"
	// commit <nil>
}

func ExampleRendezvous() {
	c, stop := connect()
	defer stop()
	ctx := context.Background()

	for _, address := range []string{"10.0.0.1:7000", "10.0.0.2:7000"} {
		m, err := agree.NewRendezvous(c, "/game").Meet(ctx, []byte(address))
		if err != nil {
			log.Fatal(err)
		}
		defer func() { _ = m.Leave(ctx) }()
		fmt.Printf("%s: host %v, at %s\n", address, m.Host(), m.Address())
	}
	// Output:
	// 10.0.0.1:7000: host true, at 10.0.0.1:7000
	// 10.0.0.2:7000: host false, at 10.0.0.1:7000
}

func ExamplePartitioner() {
	c, stop := connect()
	defer stop()

	p := agree.NewPartitioner(c, "/queues", []string{"mail", "print", "sms"}, "worker-1", 50*time.Millisecond)
	err := p.Run(context.Background(), func(ctx context.Context, parts []string) error {
		// As a rule until ctx ends: then others wait for some of the parts.
		fmt.Println(parts, ctx.Err())
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: [mail print sms] <nil>
}
