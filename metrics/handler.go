package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/gozkd/gozkd/server"
)

// Handler returns a handler for scrapes, with a registry of its own: the metrics that New collects,
// and those of the Go runtime and of the process (go_…, process_…). ZooKeeper serves them at
// /metrics on port 7000.
//
// Handler answers in every state of the server. Before Start and after Close there are only the
// metrics of runtime and process.
func Handler(s *server.Server) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(New(s), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}
