package server_test

import (
	"errors"
	"io"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/testkit/logbuf"
	"github.com/gozkd/gozkd/proto"
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

// Nor do clients that have seen a later state, as after a restore from a backup.
func TestLogFlood_LaterState(t *testing.T) {
	var said logbuf.Buffer
	cfg := server.Config{MaxClientConns: -1, Logger: hclog.New(&hclog.LoggerOptions{Output: &said})}
	bubble(t, cfg, func(t *testing.T, dial func() *raw) {
		for range 1000 {
			c := dial()
			c.send((&proto.ConnectRequest{TimeoutMs: 5000, LastZxidSeen: 1 << 60, HasReadOnly: true}).Append(nil))
			if c.recv() != nil {
				t.Fatal("answered")
			}
		}
		if n := said.Count("it has seen a later state"); n < 1 || n > 25 {
			t.Errorf("%d lines for 1000 refused clients", n)
		}
	})
}

// Nor do reconfigs of a standalone server, which the log answers with what to set.
func TestLogFlood_Reconfig(t *testing.T) {
	var said logbuf.Buffer
	cfg := server.Config{ReconfigEnabled: true, Logger: hclog.New(&hclog.LoggerOptions{Output: &said})}
	bubble(t, cfg, func(t *testing.T, dial func() *raw) {
		c := dial()
		c.connect(10_000, 0, nil)
		for range 1000 {
			if h, _ := c.call(1, proto.OpReconfig, &proto.ReconfigRequest{}); h.Err != proto.ErrUnimplemented {
				t.Fatal(h.Err)
			}
		}
		if n := said.Count("with its server line and standaloneEnabled=false"); n < 1 || n > 25 {
			t.Errorf("%d lines for 1000 refused reconfigs", n)
		}
	})
}
