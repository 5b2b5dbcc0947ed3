package discovery_test

import (
	"context"
	"fmt"
	"log"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes/discovery"
)

func ExampleDiscovery_Register() {
	c, stop := recipetest.ConnectExample()
	defer stop()
	ctx := context.Background()

	// The payload, in JSON that Java reads as an org.example.Details.
	type details struct {
		Zone string `json:"zone"`
	}
	d := discovery.New[details](c, "/services")
	r, err := d.Register(ctx, discovery.Instance[details]{
		Name: "shop", ID: "shop-1", Address: "10.0.0.7", Port: 8080, URI: "{scheme}://{address}:{port}/",
		Payload: details{"north"}, PayloadClass: "org.example.Details",
	})
	if err != nil {
		log.Fatal(err)
	}
	instances, err := d.Instances(ctx, "shop")
	if err != nil {
		log.Fatal(err)
	}
	for _, in := range instances {
		uri, err := in.BuildURI(nil)
		fmt.Println(in.ID, uri, in.Payload.Zone, err)
	}
	fmt.Println(r.Close())
	// Output:
	// shop-1 http://10.0.0.7:8080/ north <nil>
	// <nil>
}

func ExampleDiscovery_Provider() {
	c, stop := recipetest.ConnectExample()
	defer stop()
	ctx := context.Background()

	d := discovery.New[string](c, "/services")
	for _, id := range []string{"a", "b"} {
		if _, err := d.Register(ctx, discovery.Instance[string]{Name: "shop", ID: id}); err != nil {
			log.Fatal(err)
		}
	}
	p := d.Provider("shop", discovery.RoundRobin[string](), discovery.DownPolicy{Errors: 1})
	if err := p.Start(ctx); err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	if err := p.Wait(ctx); err != nil {
		log.Fatal(err)
	}
	for range 4 {
		in, err := p.Instance()
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(in.ID)
		if in.ID == "b" { // it does not answer
			p.NoteError(in)
		}
	}
	// Output:
	// a
	// b
	// a
	// a
}
