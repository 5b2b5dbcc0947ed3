package metrics

import (
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/version"
	"github.com/gozkd/gozkd/server"
)

// New returns a collector of the values of f.Monitor. The collector may be registered before the
// server starts, and stay registered after it is closed: then it collects nothing.
//
// To register several servers in a registry, give each a label with
// prometheus.WrapRegistererWith. All values of a scrape come from a single call of Monitor. The
// collector is safe for concurrent use, also by several registries.
func New(f *server.Facts) prometheus.Collector { return collector{f, descriptions()} }

type collector struct {
	facts *server.Facts
	descs map[string]*prometheus.Desc
}

// buildInfo tells programs apart. It stands for "version", a text in Monitor.
var buildInfo = func() *prometheus.Desc {
	v := version.Get()
	return prometheus.NewDesc("gozkd_build_info", "The version of the program; always 1.", nil, prometheus.Labels{
		"version": v.Number, "revision": v.Revision, "dirty": strconv.FormatBool(v.Dirty), "goversion": v.Go})
}()

func descriptions() map[string]*prometheus.Desc {
	descs := make(map[string]*prometheus.Desc, len(table))
	for name, m := range table {
		var labels []string
		if m.label != "" {
			labels = []string{m.label}
		}
		descs[name] = prometheus.NewDesc(name, m.help, labels, nil)
	}
	return descs
}

func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		ch <- d
	}
	ch <- buildInfo
}

// basicQuantiles and detailedQuantiles are those of PrometheusMetricsProvider in ZooKeeper 3.9.
var (
	basicQuantiles    = []float64{0.5}
	detailedQuantiles = []float64{0.5, 0.9, 0.99}
)

func (c collector) Collect(ch chan<- prometheus.Metric) {
	for _, v := range c.facts.Monitor() {
		m, ok := table[v.Name]
		if !ok {
			if v.Name == "version" {
				ch <- prometheus.MustNewConstMetric(buildInfo, gauge, 1)
			}
			continue // a text, which cannot be a metric
		}
		var labels []string
		switch m.label {
		case "":
		case perPeer:
			labels = []string{strconv.Itoa(memberid.Number(v.Peer))}
		default:
			labels = []string{v.Key}
		}
		desc := c.descs[v.Name]
		switch is := v.Is.(type) {
		case int64:
			ch <- prometheus.MustNewConstMetric(desc, m.typ, float64(is), labels...)
		case float64:
			ch <- prometheus.MustNewConstMetric(desc, m.typ, is, labels...)
		case server.Summary:
			ch <- prometheus.MustNewConstSummary(desc, uint64(is.Count), float64(is.Sum), quantiles(is), labels...)
		case server.Histogram:
			ch <- prometheus.MustNewConstHistogram(desc, is.Count(), is.Sum(), is.Buckets(), labels...)
		}
	}
}

func quantiles(s server.Summary) map[float64]float64 {
	wanted := basicQuantiles
	if s.Detailed() {
		wanted = detailedQuantiles
	}
	values := make(map[float64]float64, len(wanted))
	for _, q := range wanted {
		values[q] = s.Quantile(q)
	}
	return values
}

// Handler returns a handler for scrapes, with a registry of its own: the metrics that New collects,
// and those of the Go runtime and of the process (go_…, process_…). ZooKeeper serves them at
// /metrics on port 7000.
//
// Handler answers in every state of the server. Before Start and after Close there are only the
// metrics of runtime and process, and those of more.
func Handler(f *server.Facts, more ...prometheus.Collector) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(New(f), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registry.MustRegister(more...)
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}
