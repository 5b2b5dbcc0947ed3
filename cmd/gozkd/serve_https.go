package main

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/tlsconf"
	"github.com/gozkd/gozkd/internal/accept"
)

// errorLog gets the lines of an http.Server. That a handshake failed, and why, is for operators.
type errorLog struct{ log hclog.Logger }

func (l errorLog) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	if rest, ok := strings.CutPrefix(text, "http: TLS handshake error from "); ok {
		caller, reason, _ := strings.Cut(rest, ": ")
		l.log.Warn("TLS handshake failed", "from", caller, "reason", reason)
	} else {
		l.log.Debug(text)
	}
	return len(line), nil
}

// secured adds TLS to the connections of l, if source is not nil. unified: plain ones are accepted.
func secured(l net.Listener, source *tlsconf.Source, unified bool) net.Listener {
	switch {
	case source == nil:
		return l
	case unified:
		return accept.Unified(l, source.Server(), requestTimeout)
	}
	return tls.NewListener(l, source.Server())
}

// administrator returns a function that recognizes certificates of administrators, as configured.
func (r *reloader) administrator() func(*x509.Certificate) bool {
	return func(cert *x509.Certificate) bool {
		r.mu.Lock()
		c := r.last
		r.mu.Unlock()
		id, err := c.CertificateID()(cert)
		return err == nil && slices.Contains(c.AdminIdentities(), id)
	}
}
