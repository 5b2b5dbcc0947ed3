package clientflags

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/tlsconf"
	"github.com/gozkd/gozkd/internal/clientauth"
	"github.com/gozkd/gozkd/internal/neterr"
	"github.com/gozkd/gozkd/sasl"
)

// Security is how to connect to servers, by default without TLS and SASL, from any goroutine.
type Security struct {
	source     *tlsconf.Source // nil: no TLS
	mechanism  sasl.Client     // nil: none
	serverName string          // empty: the host that is dialed
	insecure   bool            // any certificate is accepted
	hasCert    bool            // a client certificate is configured
	own        bool            // it is that of the server
}

// OwnServer returns how to ask this machine's server for its health, with its own key store.
func OwnServer(server tlsconf.Options, env cli.Env) (*Security, error) {
	o := tlsconf.Options{
		Prefix: server.Prefix, Role: tlsconf.Client, KeyStore: server.KeyStore,
		Protocol: server.Protocol, EnabledProtocols: server.EnabledProtocols, CipherSuites: server.CipherSuites,
	}
	log := hclog.New(&hclog.LoggerOptions{Name: "gozkd", Level: hclog.Error, Output: env.Err})
	source, err := tlsconf.Load(o, log)
	if err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	return OfServer(source), nil
}

// OfServer returns how to ask the server that has these certificates, or another member, for its
// health. The certificate of the server that is asked is not verified, because it may be for
// another name than localhost or the host in a server line. So nothing secret must be sent.
func OfServer(source *tlsconf.Source) *Security {
	return &Security{source: source, insecure: true, hasCert: true, own: true}
}

// TLS reports whether connections are encrypted.
func (s *Security) TLS() bool { return s.source != nil }

// Configure gives the settings of a client of package client these flags' Dial and SASL.
func (s *Security) Configure(cfg *client.Config) {
	cfg.Dial, cfg.SASL = s.Dial, s.mechanism
}

// Connect connects a client with these settings, unless cfg has a Dial of its own, within the
// session timeout, which is 30 s by default. An error is explained.
func (s *Security) Connect(ctx context.Context, cfg client.Config) (*client.Client, error) {
	if cfg.Dial == nil {
		s.Configure(&cfg)
	}
	patience := cmp.Or(cfg.SessionTimeout, 30*time.Second)
	ctx, cancel := context.WithTimeoutCause(ctx, patience, neterr.NoAnswer(patience))
	defer cancel()
	zk, err := client.Connect(ctx, cfg)
	if err != nil {
		return nil, s.Explain(ctx, cfg.Servers[0], err)
	}
	return zk, nil
}

// Dial connects to a server at host:port.
func (s *Security) Dial(ctx context.Context, address string) (net.Conn, error) {
	return s.Through(ctx, new(net.Dialer).DialContext, address)
}

// Through is Dial with another dialer. The certificate must still be for the host of address.
func (s *Security) Through(ctx context.Context, dial func(ctx context.Context, network, address string) (net.Conn, error), address string) (net.Conn, error) {
	conn, err := dial(ctx, "tcp", address)
	if err != nil || !s.TLS() {
		return conn, err
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return clientauth.TLS(ctx, conn, s.config(host), address)
}

// config returns the configuration for a server that is dialed as host.
func (s *Security) config(host string) *tls.Config {
	if s.serverName != "" {
		host = s.serverName
	}
	cfg := s.source.Client(host)
	if s.insecure {
		cfg.VerifyConnection, cfg.InsecureSkipVerify = nil, true
	}
	return cfg
}

// Transport makes https connections of t to host use these settings, also through a proxy.
func (s *Security) Transport(t *http.Transport, host string) {
	if !s.TLS() {
		return
	}
	t.TLSClientConfig = s.config(host) // through a proxy, where DialTLSContext is not called
	t.DialTLSContext = func(ctx context.Context, _, address string) (net.Conn, error) { return s.Dial(ctx, address) }
}
