package server

import (
	"context"
	"net"
	"testing"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/server/internal/capacity"
)

// startInProcess starts a server without ports, after changes to it, and closes it when the test
// ends.
func startInProcess(t testing.TB, cfg Config, changes ...func(*Server)) *Server {
	t.Helper()
	cfg.InProcess = true
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		change(s)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// withoutMemory makes a server believe that its process takes no memory: that of other tests is not
// the server's.
func withoutMemory(s *Server) {
	s.growth.memory = func() capacity.Usage { return capacity.Usage{} }
}

// clientOf returns the configuration of a client of a server without ports.
func clientOf(s *Server) client.Config {
	return client.Config{
		Servers: []string{"127.0.0.1:2181"},
		Dial:    func(ctx context.Context, _ string) (net.Conn, error) { return s.Dial(ctx) },
	}
}

// connectTo returns a client, which is closed when the test ends.
func connectTo(t *testing.T, s *Server) *client.Client {
	t.Helper()
	c, err := client.Connect(t.Context(), clientOf(s))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
