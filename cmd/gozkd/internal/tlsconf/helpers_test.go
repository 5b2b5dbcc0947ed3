package tlsconf

import (
	"crypto/tls"
	"net"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/memnet"
	"github.com/gozkd/gozkd/internal/testca"
)

// outcome is how a handshake ended for the two sides.
type outcome struct {
	server, client       tls.ConnectionState
	serverErr, clientErr error
}

// shake runs a handshake and, if it succeeds, sends a byte from the server to the client, so that
// the client gets session tickets, and alerts that follow a handshake of TLS 1.3.
func shake(server, client *tls.Config) (o outcome) {
	return shakeAt(server, client, nil)
}

// addressed is a connection from a certain address.
type addressed struct {
	net.Conn
	addr net.Addr
}

func (a addressed) RemoteAddr() net.Addr { return a.addr }

// shakeAt is shake for a caller with an address.
func shakeAt(server, client *tls.Config, addr net.Addr) (o outcome) {
	far, near := memnet.Pipe("client", "server")
	done := make(chan struct{})
	// Ends with the connection; awaited below.
	go func() {
		defer close(done)
		c := tls.Client(far, client)
		if o.clientErr = c.Handshake(); o.clientErr == nil {
			_, o.clientErr = c.Read(make([]byte, 1))
		}
		o.client = c.ConnectionState()
		_ = far.Close()
	}()
	if addr != nil {
		near = addressed{near, addr}
	}
	s := tls.Server(near, server)
	if o.serverErr = s.Handshake(); o.serverErr == nil {
		_, o.serverErr = s.Write([]byte{1})
	}
	o.server = s.ConnectionState()
	_ = near.Close()
	<-done
	return o
}

// load is Load in a test that expects it to succeed.
func load(t *testing.T, o Options) *Source {
	t.Helper()
	s, err := Load(o, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// options returns those of a side with PEM files.
func options(role Role, f testca.Files) Options {
	o := Defaults("ssl.", role)
	o.KeyStore.Location, o.TrustStore.Location = f.Key, f.CA
	return o
}
