package group_test

import (
	"context"
	"fmt"
	"log"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/cache"
	"github.com/gozkd/gozkd/recipes/group"
)

func ExampleGroup_Join() {
	c, stop := recipetest.ConnectExample()
	defer stop()
	ctx := context.Background()

	g := group.New(c, "/workers")
	m, err := g.Join(ctx, "worker-1", []byte("10.0.0.7:9000"))
	if err != nil {
		log.Fatal(err)
	}
	members, err := g.Members(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range members {
		fmt.Printf("%s at %s\n", m.ID, m.Payload)
	}
	if err := m.Close(); err != nil {
		log.Fatal(err)
	}
	// Output: worker-1 at 10.0.0.7:9000
}

// A View follows the members permanently.
func ExampleGroup_View() {
	c, stop := recipetest.ConnectExample()
	defer stop()
	ctx := context.Background()

	g := group.New(c, "/workers")
	v := g.View()
	if err := v.Start(ctx); err != nil {
		log.Fatal(err)
	}
	defer v.Close()
	if err := v.Wait(ctx); err != nil {
		log.Fatal(err)
	}
	m, err := g.Join(ctx, "worker-1", nil)
	if err != nil {
		log.Fatal(err)
	}
	for e := range v.Events(ctx) {
		switch e.Type {
		case cache.Added:
			fmt.Println(e.Path(), "is here")
			if err := m.Close(); err != nil {
				log.Fatal(err)
			}
		case cache.Removed:
			fmt.Println(e.Path(), "has left")
			return
		}
	}
	// Output:
	// /workers/worker-1 is here
	// /workers/worker-1 has left
}

func ExampleNewParty() {
	c, stop := recipetest.ConnectExample()
	defer stop()

	p := group.NewParty(c, "/party") // kazoo's
	err := p.With(context.Background(), "anna", nil, func(ctx context.Context) error {
		members, err := p.Members(ctx)
		for _, m := range members {
			fmt.Println(m.ID)
		}
		return err
	})
	fmt.Println(err)
	// Output:
	// anna
	// <nil>
}

func ExamplePersistentZnode() {
	c, stop := recipetest.ConnectExample()
	defer stop()
	ctx := context.Background()

	n := group.NewPersistentZnode(c, "/status/host-7", []byte("starting"), recipes.CreateOptions{Ephemeral: true})
	if err := n.Start(ctx); err != nil {
		log.Fatal(err)
	}
	defer func() { fmt.Println(n.Close()) }()
	if err := n.SetData(ctx, []byte("running")); err != nil {
		log.Fatal(err)
	}
	if err := c.Delete(ctx, "/status/host-7", -1); err != nil { // by mistake
		log.Fatal(err)
	}
	for stat, _ := c.Exists(ctx, "/status/host-7"); stat == nil; stat, _ = c.Exists(ctx, "/status/host-7") {
	}
	data, _, err := c.Get(ctx, "/status/host-7")
	fmt.Printf("%s %v\n", data, err)
	// Output:
	// running <nil>
	// <nil>
}
