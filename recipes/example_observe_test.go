package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/server"
)

// Metrics of Prometheus. For OpenTelemetry, Request starts a span with the caller's ctx, and its
// result ends that span:
//
//	_, span := tracer.Start(ctx, "zookeeper "+op, trace.WithAttributes(attribute.String("path", path)))
//	return func(repeats int, err error) {
//		span.SetAttributes(attribute.Int("repeats", repeats))
//		span.RecordError(err)
//		span.End()
//	}
func ExampleObserve() {
	requests := prometheus.NewSummaryVec(prometheus.SummaryOpts{Name: "zk_request_seconds"}, []string{"op", "outcome"})
	repeats := prometheus.NewCounter(prometheus.CounterOpts{Name: "zk_repeats_total"})
	reconnects := prometheus.NewCounter(prometheus.CounterOpts{Name: "zk_reconnects_total"})
	registry := prometheus.NewRegistry()
	registry.MustRegister(requests, repeats, reconnects)
	observe := recipes.Observe(client.Hooks{
		Request: func(_ context.Context, op, _ string) func(int, error) {
			begun := time.Now()
			return func(n int, err error) {
				outcome, code := "error", proto.OK
				if err == nil || errors.As(err, &code) {
					outcome = code.String()
				}
				requests.WithLabelValues(op, outcome).Observe(time.Since(begun).Seconds())
				repeats.Add(float64(n))
			}
		},
		Reconnect: func(string) { reconnects.Inc() },
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

	families, err := registry.Gather()
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				fmt.Print(label.GetValue(), " ")
			}
			fmt.Println(family.GetName(), m.GetSummary().GetSampleCount(), m.GetCounter().GetValue())
		}
	}
	fmt.Println(err)
	// Output:
	// zk_reconnects_total 0 0
	// zk_repeats_total 0 0
	// create ok (0) zk_request_seconds 1 0
	// get no node (-101) zk_request_seconds 1 0
	// <nil>
}
