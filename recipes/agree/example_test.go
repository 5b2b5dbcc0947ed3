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
