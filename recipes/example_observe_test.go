package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/server"
)

// Metrics and traces of any library. With Prometheus, count is a HistogramVec, and its Observe gets
// the seconds. With OpenTelemetry, Request starts a span with ctx, and ended ends that span:
//
//	_, span := tracer.Start(ctx, "zookeeper "+op, trace.WithAttributes(attribute.String("path", path)))
//	return func(repeats int, err error) {
//		span.SetAttributes(attribute.Int("repeats", repeats))
//		span.RecordError(err)
//		span.End()
//	}
func ExampleObserve() {
	var mu sync.Mutex
	count := make(map[string]int)
	observe := recipes.Observe(client.Hooks{
		Request: func(ctx context.Context, op, path string) (ended func(repeats int, err error)) {
			begun := time.Now()
			return func(repeats int, err error) {
				code := proto.OK
				if err != nil && !errors.As(err, &code) {
					code = proto.ErrConnectionLoss // or another error of package recipes
				}
				mu.Lock()
				defer mu.Unlock()
				count[fmt.Sprintf("%s: %v, repeats: %d", op, code.String(), repeats)]++
				_ = time.Since(begun).Seconds()
			}
		},
		Reconnect: func(server string) {
			mu.Lock()
			defer mu.Unlock()
			count["reconnects"]++
		},
	})

	ctx := context.Background()
	s, err := server.New(server.Config{})
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Start(ctx); err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	c, err := recipes.Connect(ctx, []string{s.ConnectString()}, observe)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	_, _ = c.Create(ctx, "/x", nil, recipes.CreateOptions{})
	_, _, _ = c.Get(ctx, "/y")

	mu.Lock()
	defer mu.Unlock()
	fmt.Println(count)
	// Output: map[create: ok (0), repeats: 0:1 get: no node (-101), repeats: 0:1]
}
