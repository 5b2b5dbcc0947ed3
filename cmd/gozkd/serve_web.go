package main

import (
	"context"
	"net"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/clientflags"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/internal/probe"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web"
)

// webHandler returns the handler of REST and the explorer, or nil if they are not served.
func webHandler(c config.Config, s *server.Server, r *reloader, a *archiver, log hclog.Logger) *web.Handler {
	if !c.ServesWeb() {
		return nil
	}
	o := web.Options{
		Anonymous: web.Read, Roles: c.Roles(), Administrator: r.administrator(),
		Hosts: c.WebHosts, ProxyHeader: c.WebProxyHeader, Proxies: c.WebProxies,
		MaxBody: int64(c.Server.MaxBuffer), Rate: float64(c.WebRate), History: a.history(s), Logger: log.Named("web"),
	}
	if c.Web == "write" {
		o.Anonymous = web.Write
	}
	o.Ask, o.AskPort = memberAsker(c, &r.tls.clients)
	return web.New(s, o)
}

// memberAsker returns how to ask other members, and at which port if their server lines have none:
// members usually have the same ports. If clients of this server must use TLS, so must it.
func memberAsker(c config.Config, certificates *tlsFiles) (ask func(ctx context.Context, address, word string) (string, error), port int) {
	a := probe.Asker{MaxBytes: 1 << 20}
	if !c.SecureOnly {
		return a.Ask, c.ClientPort
	}
	a.Dial = func(ctx context.Context, address string) (net.Conn, error) {
		return clientflags.OfServer(certificates.source.Load()).Dial(ctx, address)
	}
	return a.Ask, c.SecureClientPort
}

// webMetrics collects the counts of REST and the explorer, if they are served.
type webMetrics struct{ pages *web.Handler }

var (
	webRequests = prometheus.NewDesc("gozkd_web_requests_total", "Answered requests of REST and the explorer.", []string{"route", "class"}, nil)
	webOpen     = prometheus.NewDesc("gozkd_web_open", "What REST and the explorer have open.", []string{"kind"}, nil)
)

// Describe implements prometheus.Collector.
func (m webMetrics) Describe(to chan<- *prometheus.Desc) {
	to <- webRequests
	to <- webOpen
}

// Collect implements prometheus.Collector.
func (m webMetrics) Collect(to chan<- prometheus.Metric) {
	if m.pages == nil {
		return
	}
	s := m.pages.Stats()
	for route, n := range s.Requests {
		to <- prometheus.MustNewConstMetric(webRequests, prometheus.CounterValue, float64(n), route.Path, route.Class)
	}
	for kind, n := range map[string]int{"streams": s.Streams, "sessions": s.Sessions, "shared_sessions": s.Shared} {
		to <- prometheus.MustNewConstMetric(webOpen, prometheus.GaugeValue, float64(n), kind)
	}
}
