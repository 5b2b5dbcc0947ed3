package server_test

import (
	"errors"
	"io"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/testkit/logbuf"
	"github.com/gozkd/gozkd/server"
)

// Connections that are refused one after the other do not fill the log.
func TestLogFlood_RefusedConnections(t *testing.T) {
	var said logbuf.Buffer
	cfg := server.Config{MaxClientConns: 1, Logger: hclog.New(&hclog.LoggerOptions{Output: &said})}
	bubble(t, cfg, func(t *testing.T, dial func() *raw) {
		dial().connect(10_000, 0, nil)
		for range 1000 {
			if _, err := dial().nc.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Fatalf("a connection above the limit: %v", err)
			}
		}
		if n := said.Count("connection refused"); n < 1 || n > 25 {
			t.Errorf("%d lines for 1000 refused connections", n)
		}
	})
}
