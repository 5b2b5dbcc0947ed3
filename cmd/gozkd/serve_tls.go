package main

import (
	"context"
	"crypto/tls"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/internal/tlsconf"
	"github.com/gozkd/gozkd/server"
)

// tlsFiles holds the certificates of the ports for clients, or for other servers. Its zero value has
// none. apply and close must not be called at the same time.
type tlsFiles struct {
	source  atomic.Pointer[tlsconf.Source] // nil until a configuration asks for TLS
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// apply takes over options and returns the source, nil if there never was one. After an error nothing
// has changed.
func (t *tlsFiles) apply(wanted bool, o tlsconf.Options, log hclog.Logger) (_ *tlsconf.Source, err error) {
	switch present := t.source.Load(); {
	case !wanted:
		return present, nil
	case present != nil:
		return present, present.Reload(o)
	}
	source, err := tlsconf.Load(o, log)
	if err != nil {
		return nil, err
	}
	t.source.Store(source)
	ctx, cancel := context.WithCancel(context.Background())
	t.cancel = cancel
	// Stopped and awaited by close.
	t.running.Go(func() { source.Run(ctx) })
	return source, nil
}

// close ends the search for changed files.
func (t *tlsFiles) close() {
	if t.cancel != nil {
		t.cancel()
	}
	t.running.Wait()
}

// portTLS is the TLS of a server's ports: of those for clients, and of that for other servers. Its
// zero value serves none. apply and close must not be called at the same time.
type portTLS struct {
	log            hclog.Logger
	clients, peers tlsFiles
	https          *endpointTLS // whose certificates are in the metrics, too; nil: there is none
	config         *tls.Config  // of clients
}

// apply takes over a configuration, and completes cfg.
func (t *portTLS) apply(c config.Config, cfg *server.Config) error {
	source, err := t.clients.apply(c.ServesTLS(), c.ClientTLS, named(t.log, "tls"))
	if err != nil {
		return err
	}
	if t.config == nil && source != nil {
		t.config = source.Server()
	}
	cfg.TLS, cfg.Certificates = t.config, t.certificates
	mode, o := peerTLSMode(c), c.PeerTLS
	// The server compares certificates with server lines by itself.
	o.HostnameVerification, o.ClientHostnameVerification = false, false
	if source, err = t.peers.apply(mode != server.PeerTLSOff, o, named(t.log, "peertls")); err != nil || mode == server.PeerTLSOff {
		return err
	}
	cfg.PeerTLS = server.PeerTLS{
		Mode: mode, Server: source.Server(), Client: source.Client,
		AnyHost: !c.PeerTLS.HostnameVerification, AnyCallerHost: !c.PeerTLS.ClientHostnameVerification, ReverseDNS: c.PeerTLS.ReverseDNS,
		Ensemble: c.PeerTLSEnsemble, DetectionTimeout: c.PeerTLSDetection,
	}
	return nil
}

// certificates adds up what is known about the certificates of all ports. It may be called at any time.
func (t *portTLS) certificates() (all server.Certificates) {
	files := []*tlsFiles{&t.clients, &t.peers}
	if t.https != nil {
		files = append(files, &t.https.admin, &t.https.metrics)
	}
	for _, f := range files {
		if source := f.source.Load(); source != nil {
			s := source.Stats()
			all.Reloads, all.Refused = all.Reloads+s.Reloads, all.Refused+s.Failures
			if all.Expires.IsZero() || s.Expires.Before(all.Expires) {
				all.Expires = s.Expires
			}
		}
	}
	return all
}

// named returns a part of a log, which may be nil.
func named(log hclog.Logger, name string) hclog.Logger {
	if log == nil {
		return hclog.NewNullLogger()
	}
	return log.Named(name)
}

// peerTLSMode returns which connections between servers use TLS, in the three steps that ZooKeeper
// documents.
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

// close ends the search for changed files.
func (t *portTLS) close() {
	t.clients.close()
	t.peers.close()
}
