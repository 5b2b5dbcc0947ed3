package web

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/httplocal"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web"
)

// site is a server in memory, with a client port, and its explorer.
type site struct {
	t       *testing.T
	server  *server.Server
	handler *web.Handler
	origin  string // http://127.0.0.1:PORT
	user    string // of a proxy, in addresses: "name:password@"

	mu   sync.Mutex
	http *http.Server
}

// open starts a server. It ends with the test, after the tabs.
func open(t *testing.T, cfg server.Config, o web.Options) *site {
	t.Helper()
	needBrowser(t)
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	x := &site{t: t, server: s, handler: web.New(s, o)}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.serve("127.0.0.1:0")
	t.Cleanup(func() {
		x.stop()
		x.handler.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

// serve begins to answer HTTP at an address.
func (x *site) serve(address string) {
	x.t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		x.t.Fatal(err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.origin = "http://" + l.Addr().String()
	x.http = &http.Server{Handler: x.handler, ReadHeaderTimeout: time.Minute, ConnContext: httplocal.ConnContext}
	go x.http.Serve(l) //nolint:errcheck // ends with stop
}

// stop closes the port and all connections of browsers: as if the server had been lost.
func (x *site) stop() {
	x.mu.Lock()
	defer x.mu.Unlock()
	_ = x.http.Close()
}

// connect opens a session through the client port.
func (x *site) connect(auths ...client.Auth) *client.Client {
	x.t.Helper()
	zk, err := client.Connect(x.t.Context(), client.Config{Servers: []string{x.server.Addr().String()}, Auths: auths})
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { _ = zk.Close() }) // a test may have ended the session
	return zk
}

// fill creates znodes with their parents.
func (x *site) fill(znodes map[string]string) {
	x.t.Helper()
	data := make(map[string][]byte, len(znodes))
	for path, text := range znodes {
		data[path] = []byte(text)
	}
	if err := x.server.Load(x.t.Context(), data); err != nil {
		x.t.Fatal(err)
	}
}

// create creates one znode, and returns its path.
func (x *site) create(zk *client.Client, path, data string, o client.CreateOptions) string {
	x.t.Helper()
	created, _, err := zk.Create(x.t.Context(), path, []byte(data), o)
	if err != nil {
		x.t.Fatalf("create %s: %v", path, err)
	}
	return created
}

// text returns the data of a znode.
func (x *site) text(zk *client.Client, path string) string {
	x.t.Helper()
	data, _, err := zk.Get(context.Background(), path, false)
	if err != nil {
		x.t.Fatalf("get %s: %v", path, err)
	}
	return string(data)
}
