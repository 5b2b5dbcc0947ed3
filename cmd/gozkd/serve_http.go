package main

import (
	"cmp"
	"context"
	"errors"
	stdlog "log"
	"net"
	"net/http"
	_ "net/http/pprof" // its handlers are in http.DefaultServeMux, which is not served otherwise
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/gozkd/gozkd/admin"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/admintoken"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/tlsconf"
	"github.com/gozkd/gozkd/internal/httplocal"
	"github.com/gozkd/gozkd/internal/lograte"
	"github.com/gozkd/gozkd/metrics"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web"
)

const (
	// requestTimeout bounds how long a client may take to send a header, and a body.
	requestTimeout = 10 * time.Second
	// answerTimeout bounds computing and sending an answer, except snapshots and profiles.
	answerTimeout = time.Minute
	// headBytes bounds the header of a request.
	headBytes = 64 << 10
)

// endpoints are the HTTP servers of the process, with URLs; an empty one is not served.
type endpoints struct {
	admin, metrics string
	web            *web.Handler // nil: not served
	servers        []*http.Server
	serving        sync.WaitGroup
	conns          sync.WaitGroup // open connections, including their running handlers
}

// openEndpoints opens the configured endpoints. It only logs a port that is taken.
func openEndpoints(
	ctx context.Context, inv *config.Invocation, c config.Config, s *server.Server, r *reloader, a *archiver, log hclog.Logger,
) *endpoints {
	e := new(endpoints)
	if c.AdminEnabled {
		e.web = webHandler(c, s, r, a, log)
		r.servesWeb(e.web)
		at := adminPort(c, r.tls)
		if e.web != nil {
			at.streams, at.proxies = web.MaxStreams, c.WebProxies
		}
		if u := e.open(ctx, at, adminHandler(inv, c, s, e.web, localToken(c, log), r, log), log); u != "" {
			e.admin = u + c.AdminCommandURL
			if e.web != nil {
				log.Info("serving REST and the explorer", "url", u+"/ui/", "anonymous", c.Web)
			}
		}
	}
	if c.AdminOmitted != "" {
		log.Info("no admin server, because several such servers may share the machine",
			"setting", c.AdminOmitted, "remedy", "set admin.serverPort")
	}
	if c.Prometheus() {
		mux := http.NewServeMux()
		mux.Handle("/metrics", metricsHandler(c, s, e.web))
		unified := c.MetricsPort > 0 && c.MetricsPort == c.MetricsHTTPSPort
		if c.MetricsPort >= 0 && !unified {
			e.metrics = e.open(ctx, endpoint{"metrics", "metricsProvider.httpPort", config.HostPort(c.MetricsHost, c.MetricsPort), nil, false, c.AdminIdleTimeout, 0, nil}, mux, log)
		}
		if r.tls.metrics.source.Load() != nil {
			u := e.open(ctx, endpoint{"metrics", "metricsProvider.httpsPort", config.HostPort(c.MetricsHost, c.MetricsHTTPSPort), r.tls.metrics.source.Load(), unified, c.AdminIdleTimeout, 0, nil}, mux, log)
			e.metrics = cmp.Or(e.metrics, u)
		}
		if e.metrics != "" {
			e.metrics += "/metrics"
		}
	}
	return e
}

// endpoint is a port of HTTP. With tls it is one of HTTPS, or of both if it is unified.
type endpoint struct {
	what, key, address string // key has the port
	tls                *tlsconf.Source
	unified            bool
	idle               time.Duration
	streams            int // connections that may stay open besides
	proxies            []netip.Prefix
}

func adminPort(c config.Config, secure *portTLS) endpoint {
	address := config.HostPort(c.AdminAddress, c.AdminPort)
	return endpoint{"admin server", "admin.serverPort", address, secure.admin.source.Load(), !c.AdminForceHTTPS, c.AdminIdleTimeout, 0, nil}
}

// open serves h at a port and returns its URL without a path, plain if unified; "" on an error.
func (e *endpoints) open(ctx context.Context, at endpoint, h http.Handler, log hclog.Logger) string {
	what := at.what
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", at.address)
	if err != nil {
		log.Warn("not served: "+what, "address", at.address, "error", err, "remedy", "name a free port with "+at.key)
		return ""
	}
	u := "http://" + l.Addr().String()
	if at.tls != nil && !at.unified {
		u = "https://" + l.Addr().String()
	}
	log.Info("serving "+what, "url", u, "tls", at.tls != nil)
	server, bounded := newHTTPServer(h, at.idle, log), newBoundedListener(l, at.streams)
	bounded.proxies = at.proxies
	bounded.bound(server)
	server.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew: // before Serve returns
			e.conns.Add(1)
		case http.StateClosed: // after the handler has returned
			e.conns.Done()
		}
	}
	e.servers = append(e.servers, server)
	e.serving.Go(func() { // stopped and awaited by close
		if err := server.Serve(secured(bounded, at.tls, at.unified)); !errors.Is(err, http.ErrServerClosed) {
			log.Error("no longer served: "+what, "error", err)
		}
	})
	return u
}

// newHTTPServer returns a server with timeouts for slow clients.
func newHTTPServer(h http.Handler, idle time.Duration, log hclog.Logger) *http.Server {
	return &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			// NB: Server.ReadTimeout would cancel the context of long answers.
			if req.ContentLength != 0 {
				_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(requestTimeout)) // a connection supports deadlines
			}
			h.ServeHTTP(w, req)
		}),
		ConnContext: httplocal.ConnContext,
		IdleTimeout: idle, ReadHeaderTimeout: requestTimeout, WriteTimeout: answerTimeout, MaxHeaderBytes: headBytes,
		ErrorLog: stdlog.New(errorLog{lograte.New(log.Named("http"))}, "", 0),
	}
}

// close stops the servers, and waits until all handlers have cleaned up.
func (e *endpoints) close() error {
	var errs []error
	for _, s := range e.servers {
		errs = append(errs, s.Close())
	}
	e.serving.Wait()
	e.conns.Wait()
	return errors.Join(errs...)
}

func adminHandler(
	inv *config.Invocation, c config.Config, s *server.Server, pages *web.Handler, token string, r *reloader,
	log hclog.Logger,
) http.Handler {
	o := admin.Options{
		Snapshot: c.AdminSnapshot, Shed: true, Interval: c.AdminInterval, Reload: r.forAdmin, NotReady: r.notReady,
		TokenFile: c.AdminTokenFile, LocalTokenFile: token, Open: c.AdminOpen, ForwardedFor: c.AdminForwardedFor,
		Administrator: r.administrator(),
	}
	if inv.File != "" {
		text, err := os.ReadFile(inv.File)
		if err != nil { // the file existed when Load read it
			log.Warn("the admin command initial_configuration has nothing to show", "error", err)
		}
		o.InitialConfiguration = string(text)
	}
	for _, p := range inv.Properties {
		name, value, _ := strings.Cut(p, "=")
		o.Properties = append(o.Properties, server.Setting{Key: name, Value: value})
	}
	commands := admin.New(s, o)
	mux := http.NewServeMux()
	mux.Handle("/", http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if name, ok := strings.CutPrefix(req.URL.Path, c.AdminCommandURL); ok && (name == "" || name[0] == '/') {
			req = req.Clone(req.Context())
			req.URL.Path, req.URL.RawPath = "/commands"+name, ""
		}
		commands.ServeHTTP(w, req)
	}))
	if c.Pprof {
		mux.Handle("/debug/pprof/", localOnly(http.DefaultServeMux))
	}
	if pages == nil {
		return refuseForeignHosts(mux, c.AdminAddress)
	}
	all := http.NewServeMux()
	all.Handle("/", refuseForeignHosts(mux, c.AdminAddress))
	toPage := func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, httplocal.Prefix(req)+"/ui/", http.StatusFound)
	}
	all.HandleFunc("GET /ui", toPage)
	if c.AdminCommandURL != "" { // otherwise / is the list of commands
		all.HandleFunc("GET /{$}", toPage)
	}
	for _, path := range web.Paths {
		all.Handle(path, pages) // which knows gozkd.web.hosts
	}
	return all
}

// localToken returns the file with the token for callers on this machine, or "" if it cannot be.
// The servers in memory of a user share a file: one of their own would stay if they are killed.
func localToken(c config.Config, log hclog.Logger) (path string) {
	dir, err := c.Server.Dir, error(nil)
	if c.Memory {
		dir, err = os.UserCacheDir()
		dir = filepath.Join(dir, "gozkd")
	}
	if err == nil {
		path, err = admintoken.Ensure(dir)
	}
	if err != nil {
		log.Warn("no token for admin commands from this machine: only the superuser and gozkd.admin.tokenFile authorize", "error", err)
	} else if c.Memory {
		log.Info("admin commands from this machine need the token in a file", "auth-file", path)
	}
	return path
}

// refuseForeignHosts protects an endpoint on the loopback interface against DNS rebinding, by which
// a web page could read it: it refuses requests whose Host header is none of an IP address,
// localhost, the machine's name, and address, which is the listen address.
func refuseForeignHosts(h http.Handler, address string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		local, _ := req.Context().Value(http.LocalAddrContextKey).(net.Addr)
		ip, host := httplocal.Address(address), httplocal.Host(req)
		loopback := local != nil && httplocal.Address(local.String()).IsLoopback()
		if loopback && !ip.IsUnspecified() && !httplocal.KnownHost(host, address) {
			http.Error(w, "only for requests to this machine: ask for 127.0.0.1 or localhost, not for "+strconv.Quote(host), http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, req)
	})
}

// localOnly refuses clients on other machines, and web pages.
func localOnly(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !httplocal.OnThisMachine(req) {
			http.Error(w, "only for clients on this machine: ask without a proxy for 127.0.0.1 or localhost", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, req)
	})
}

// metricsHandler serves the metrics of the server and, if configured, of the process.
func metricsHandler(c config.Config, s *server.Server, pages *web.Handler) http.Handler {
	if c.MetricsRuntime {
		return metrics.Handler(s.Facts(), webMetrics{pages})
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.New(s.Facts()), webMetrics{pages})
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}
