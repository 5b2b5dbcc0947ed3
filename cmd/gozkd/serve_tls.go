package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/tlsconf"
	"github.com/gozkd/gozkd/server"
)

// tlsFiles holds the certificates of one kind of ports, at first none, for one caller at a time.
type tlsFiles struct {
	source  atomic.Pointer[tlsconf.Source] // nil until a configuration asks for TLS
	unused  atomic.Bool                    // TLS is off again
	cancel  context.CancelFunc             // nil: the files are not watched
	running sync.WaitGroup
}

// prepare reads the files of a configuration and returns the source, nil if there never was any.
// Nothing changes until the caller calls use, before the next prepare.
func (t *tlsFiles) prepare(wanted bool, o tlsconf.Options, log hclog.Logger) (source *tlsconf.Source, use func(), err error) {
	source = t.source.Load()
	switch {
	case !wanted:
		return source, func() {}, nil
	case source != nil:
		take, err := source.Prepare(o)
		return source, func() { take(); t.watch(source) }, err
	}
	source, err = tlsconf.Load(o, log)
	return source, func() { t.source.Store(source); t.watch(source) }, err
}

// watch looks for changed files until close.
func (t *tlsFiles) watch(source *tlsconf.Source) {
	t.unused.Store(false)
	if t.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.cancel = cancel
	// Stopped and awaited by close.
	t.running.Go(func() { source.Run(ctx) })
}

func (t *tlsFiles) close() {
	t.unused.Store(true)
	if t.cancel != nil {
		t.cancel()
		t.cancel = nil
	}
	t.running.Wait()
}

// portTLS is the TLS of a server's ports: for clients, for other servers, and for HTTP: none
// before prepare. prepare and close must not be called at the same time.
type portTLS struct {
	log                            hclog.Logger
	clients, peers, admin, metrics tlsFiles
	config                         *tls.Config // of clients
	secure                         bool        // there is a port for TLS alone, which stays open
	started                        bool        // an HTTP port that had no TLS at the start gets none
}

// prepare completes cfg. Nothing else changes until the caller calls use, when the server has cfg.
func (t *portTLS) prepare(c config.Config, cfg *server.Config) (use func(), err error) {
	o := c.ClientTLS
	if o.Ports = fmt.Sprint("secureClientPort ", c.SecureClientPort); c.Server.PortUnification {
		o.Ports = strings.TrimSuffix(fmt.Sprintf("clientPort %d, %s", c.ClientPort, o.Ports), ", secureClientPort 0")
	}
	source, useClients, err := t.clients.prepare(c.ServesTLS(), o, t.log.Named("tls"))
	if err != nil {
		return nil, err
	}
	clients, secure := t.config, t.secure || cfg.SecureListen != ""
	if clients == nil && source != nil {
		clients = source.Server()
	}
	cfg.TLS, cfg.Certificates = clients, t.certificates
	mode := peerTLSMode(c)
	o = c.PeerTLS
	o.Ports = "the port for other servers, " + c.PeerListenAddress()
	// The server compares certificates with server lines by itself.
	o.HostnameVerification, o.ClientHostnameVerification = false, false
	o.Own = ownCertificate(c)
	source, usePeers, err := t.peers.prepare(mode != server.PeerTLSOff, o, t.log.Named("peertls"))
	if err != nil {
		return nil, err
	}
	useHTTP, err := t.prepareHTTP(c)
	if err != nil {
		return nil, err
	}
	if mode != server.PeerTLSOff {
		p := &cfg.PeerTLS
		p.Mode, p.Server, p.Client = mode, source.Server(), source.Client
		p.AnyHost, p.AnyCallerHost = !c.PeerTLS.HostnameVerification, !c.PeerTLS.ClientHostnameVerification
		p.ReverseDNS = c.PeerTLS.ReverseDNS
	}
	return func() {
		t.config, t.secure = clients, secure
		useClients()
		usePeers()
		useHTTP()
		if !c.ServesTLS() && !secure {
			t.clients.close()
		}
		if mode == server.PeerTLSOff {
			t.peers.close()
		}
	}, nil
}

func (t *portTLS) prepareHTTP(c config.Config) (use func(), err error) {
	adminTLS, admin := c.AdminTLS()
	metricsTLS, metrics := c.MetricsTLSOptions()
	admin = admin && c.AdminEnabled && (!t.started || t.admin.source.Load() != nil)
	metrics = metrics && (!t.started || t.metrics.source.Load() != nil)
	_, useAdmin, err := t.admin.prepare(admin, adminTLS, t.log.Named("admintls"))
	if err != nil {
		return nil, fmt.Errorf("%w (HTTPS of the admin server)", err)
	}
	_, useMetrics, err := t.metrics.prepare(metrics, metricsTLS, t.log.Named("metricstls"))
	if err != nil {
		return nil, fmt.Errorf("%w (HTTPS of the metrics)", err)
	}
	return func() {
		t.started = true
		useAdmin()
		useMetrics()
	}, nil
}

// ownCertificate returns a function that judges a certificate as the other members do: by this
// server's own line, and by the URIs of the certificate. It returns nil for a server alone.
func ownCertificate(c config.Config) func(*x509.Certificate) error {
	m, ok := c.Members.Get(c.MyID)
	if !ok {
		return nil
	}
	name, _ := os.Hostname() // stands for 0.0.0.0 in the own line: the others have their own names for it
	own := server.PeerTLS{
		AnyHost:    !c.PeerTLS.HostnameVerification || c.ListenOnAllIPs && m.Host == name,
		ReverseDNS: c.PeerTLS.ReverseDNS, Ensemble: c.Server.PeerTLS.Ensemble,
	}
	return func(leaf *x509.Certificate) error { return own.CheckOwn(leaf, m.ID, m.PeerAddress()) }
}

// certificates adds up what is known about the certificates of all ports, at any time.
func (t *portTLS) certificates() (all server.Certificates) {
	var warnings []string
	add := func(files ...*tlsFiles) { // of the same stores, so that a change counts once
		var reloads, refused int64
		for _, f := range files {
			source := f.source.Load()
			if source == nil {
				continue
			}
			s := source.Stats()
			reloads, refused = max(reloads, s.Reloads), max(refused, s.Failures)
			if f.unused.Load() {
				continue
			}
			if all.Expires.IsZero() || s.Expires.Before(all.Expires) {
				all.Expires = s.Expires
			}
			if text := source.Expiry(); text != "" {
				warnings = append(warnings, text)
			}
		}
		all.Reloads, all.Refused = all.Reloads+reloads, all.Refused+refused
	}
	add(&t.clients)
	add(&t.peers, &t.admin)
	add(&t.metrics)
	all.Warning = strings.Join(warnings, "; ")
	return all
}

// peerTLSMode returns which connections between servers use TLS, in ZooKeeper's three steps.
func peerTLSMode(c config.Config) server.PeerTLSMode {
	switch {
	case !c.ServesPeerTLS():
		return server.PeerTLSOff
	case !c.SSLQuorum:
		return server.PeerTLSAccepted
	case c.PeerPortUnification:
		return server.PeerTLSDialed
	}
	return server.PeerTLSRequired
}

func (t *portTLS) close() {
	for _, files := range []*tlsFiles{&t.clients, &t.peers, &t.admin, &t.metrics} {
		files.close()
	}
}
