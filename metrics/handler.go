package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/gozkd/gozkd/server"
)

// Handler answers scrapes with what New collects of the server, and with Go's and the process's own metrics (go_…, process_…), from a registry of
// its own. ZooKeeper has it at /metrics, on port 7000.
//
// It answers whatever state the server is in: before the start and after the end there are the process's metrics alone.
func Handler(s *server.Server) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(New(s), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}
