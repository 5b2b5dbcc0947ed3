package server_test

import (
	"io"
	"net"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/testkit/logbuf"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// The log names the protocol of a client that has come to the wrong port.
func TestStrangers_ProtocolIsNamed(t *testing.T) {
	var said logbuf.Buffer
	s := startTLS(t, server.Config{Logger: hclog.New(&hclog.LoggerOptions{Output: &said})}, newCerts(t).server(t, 0))
	hello := string(frameOf((&proto.ConnectRequest{TimeoutMs: 30_000, Passwd: make([]byte, proto.PasswdBytes)}).Append(nil)))
	for _, c := range []struct {
		port       net.Addr
		sent, want string
	}{
		{s.Addr(), "\x16\x03\x01\x01\x00\x01\x00", "the client speaks TLS, and this port does not"},
		{s.Addr(), "GET /metrics HTTP/1.1\r\n\r\n", "the client speaks HTTP, and this is the port of ZooKeeper's clients"},
		{s.Addr(), "gozkdNET\x00\x00\x00\x09", "the client is another server, and this is not the port for servers"},
		{s.SecureAddr(), "GET /metrics HTTP/1.1\r\n\r\n", "the client speaks HTTP without TLS"},
		{s.SecureAddr(), hello, "the client speaks ZooKeeper's client protocol without TLS"},
	} {
		nc, err := net.Dial("tcp", c.port.String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err = io.WriteString(nc, c.sent); err == nil {
			_, err = io.ReadAll(nc) // the line comes before the end
		}
		if _ = nc.Close(); err != nil || said.Count(c.want) != 1 {
			t.Errorf("%q: %q was logged %d times: %v", c.sent, c.want, said.Count(c.want), err)
		}
	}
	if n := said.Count("frame length"); n != 0 {
		t.Errorf("a protocol is taken for a length %d times", n)
	}
}
