package main

import (
	"context"
	"crypto/tls"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/internal/tlsconf"
)

// clientTLS is the TLS of the ports for clients. Its zero value serves none. apply and close must not
// be called at the same time.
type clientTLS struct {
	log hclog.Logger

	source  *tlsconf.Source // nil until a configuration asks for TLS
	config  *tls.Config     // of source
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// apply takes over a configuration and returns what the server presents, nil if it never served TLS.
// After an error nothing has changed.
func (t *clientTLS) apply(c config.Config) (_ *tls.Config, err error) {
	switch {
	case !c.ServesTLS():
		return t.config, nil
	case t.source != nil:
		return t.config, t.source.Reload(c.ClientTLS)
	}
	if t.source, err = tlsconf.Load(c.ClientTLS, t.log.Named("tls")); err != nil {
		t.source = nil
		return nil, err
	}
	t.config = t.source.Server()
	ctx, cancel := context.WithCancel(context.Background())
	t.cancel = cancel
	// Stopped and awaited by close.
	t.running.Go(func() { t.source.Run(ctx) })
	return t.config, nil
}

// close ends the search for changed files.
func (t *clientTLS) close() {
	if t.cancel != nil {
		t.cancel()
	}
	t.running.Wait()
}
