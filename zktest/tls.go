package zktest

import (
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testca"
	"github.com/gozkd/gozkd/server"
)

// Authority issues certificates for servers and clients of a test. They hold in bubbles, too.
type Authority struct {
	ca     *testca.CA
	server *testca.Cert
}

// tlsHost is the name in the servers' certificate besides the loopback addresses.
const tlsHost = "localhost"

// TLS returns a new authority, which nobody else trusts.
func TLS(t testing.TB) *Authority {
	t.Helper()
	ca := testca.New(t, "zktest")
	return &Authority{ca, ca.Issue(t, testca.Spec{CN: "server", Hosts: []string{tlsHost, "127.0.0.1", "::1"}})}
}

// Servers makes servers take TLS on their ports, beside plain connections. A client with TLS needs
// a certificate of the authority, whose subject is its identity in the scheme x509. WithConfig can
// change TLS and Auth of the configuration.
func (a *Authority) Servers() Option {
	return WithConfig(func(_ int, c *server.Config) { c.TLS, c.PortUnification = a.Server(), true })
}

// Server returns the configuration of the servers.
func (a *Authority) Server() *tls.Config { return a.server.Server() }

// Client returns the configuration of a client with a certificate of its own, which is for CN=name.
func (a *Authority) Client(t testing.TB, name string) *tls.Config {
	t.Helper()
	return a.ca.Issue(t, testca.Spec{CN: name}).Client(tlsHost)
}

// Files writes the certificate and the key of a client CN=name, and the certificate of the
// authority, as PEM files for programs that a test starts.
func (a *Authority) Files(t testing.TB, name string) (cert, key, ca string) {
	t.Helper()
	f := a.ca.Issue(t, testca.Spec{CN: name}).Files(t)
	return f.Cert, f.Bare, f.CA
}

// ConnectTLS is Connect over TLS.
func (s *Service) ConnectTLS(t testing.TB, cfg *tls.Config, options ...func(*zk.Conn)) *zk.Conn {
	t.Helper()
	return s.connect(t, DefaultSessionTimeout, s.Servers(), s.TLSDialer(cfg), options)
}

// TLSDialer is Dialer over TLS.
func (s *Service) TLSDialer(cfg *tls.Config) func(network, address string, timeout time.Duration) (net.Conn, error) {
	return dialer(client.DialTLS(cfg, s.cluster.Dial))
}
