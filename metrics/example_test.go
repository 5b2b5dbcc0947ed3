package metrics_test

import (
	"context"
	"fmt"
	"log"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gozkd/gozkd/metrics"
	"github.com/gozkd/gozkd/server"
)

// Two servers in the program's registry, distinguished by a label.
func ExampleNew() {
	registry := prometheus.NewRegistry()
	for _, name := range []string{"orders", "locks"} {
		s, err := server.New(server.Config{})
		if err != nil {
			log.Fatal(err)
		}
		if err := s.Start(context.Background()); err != nil {
			log.Fatal(err)
		}
		defer s.Close()
		prometheus.WrapRegistererWith(prometheus.Labels{"instance": name}, registry).MustRegister(metrics.New(s.Facts()))
	}

	families, err := registry.Gather()
	if err != nil {
		log.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "znode_count" {
			for _, m := range family.GetMetric() {
				fmt.Println(m.GetLabel()[0].GetValue(), m.GetGauge().GetValue())
			}
		}
	}
	// Output:
	// locks 5
	// orders 5
}
