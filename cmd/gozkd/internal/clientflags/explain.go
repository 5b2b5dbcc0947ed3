package clientflags

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/clientauth"
	"github.com/gozkd/gozkd/internal/neterr"
)

// explained is an error with what to do about it.
type explained struct {
	error
	advice string
}

func (e *explained) Error() string { return e.error.Error() + "; " + e.advice }
func (e *explained) Unwrap() error { return e.error }

// probeTimeout bounds the look at a port that did not answer as expected.
const probeTimeout = 2 * time.Second

// Advice returns which flag would help against an error of the connection to a server, or "". It
// may connect to the server once more to find out whether the port speaks TLS.
func (s *Security) Advice(ctx context.Context, address string, err error) string {
	switch {
	case err == nil, errors.Is(err, context.Canceled):
	case s.TLS():
		return s.adviceForTLS(err)
	case errors.Is(err, os.ErrDeadlineExceeded): // a port for TLS would not be silent, and a paused server would log the handshake
	case dialed(err) && speaksTLS(ctx, address):
		return "this port speaks TLS: add --tls, and --cacert FILE if its certificate is not from a public authority"
	}
	return ""
}

// Explain adds Advice to an error.
func (s *Security) Explain(ctx context.Context, address string, err error) error {
	if advice := s.Advice(ctx, address, err); advice != "" {
		return &explained{err, advice}
	}
	return err
}

// ExplainHTTP is Explain for an endpoint of HTTP.
func (s *Security) ExplainHTTP(ctx context.Context, u *url.URL, err error) error {
	advice := ""
	switch {
	case u.Scheme != "https":
		if dialed(err) && speaksTLS(ctx, u.Host) {
			advice = "this port speaks TLS: use https://"
		}
	case errors.Is(err, clientauth.ErrNotTLS), neterr.TLSReason(err) == neterr.NotTLS, strings.Contains(err.Error(), "HTTP response to HTTPS client"):
		advice = "this port does not speak TLS: use http://"
	default:
		advice = s.adviceForTLS(err)
	}
	if advice == "" {
		return err
	}
	return &explained{err, advice}
}

func (s *Security) adviceForTLS(err error) string {
	if errors.Is(err, clientauth.ErrNotTLS) {
		return "leave --tls out, or name the port for TLS (secureClientPort)"
	}
	reason := neterr.TLSReason(err)
	switch reason {
	case neterr.Unknown:
		return "name the file with the certificate of its authority with --cacert"
	case neterr.WrongHost:
		return "connect by a name in the certificate, or say with --tls-server-name which name it has"
	case neterr.Expired, neterr.NotYetValid, neterr.Revoked:
		return "the server needs another certificate"
	case neterr.WrongVersion, neterr.NoCipher:
		return "compare ssl.enabledProtocols and ssl.ciphersuites of the server with zookeeper.ssl.* of this client"
	}
	if alert, ok := strings.CutPrefix(reason, "the other side says: "); ok && strings.Contains(alert, "certificate") {
		if !s.hasCert {
			return "the server demands a client certificate: name one with --cert and --key"
		}
		if s.own {
			return "the server does not accept its own certificate as that of a client, for which it may not be meant: name another one with --cert and --key"
		}
		return "the server does not accept the certificate of --cert; its log says why"
	}
	return ""
}

// dialed reports whether the error came after the connection was made.
func dialed(err error) bool {
	op := (*net.OpError)(nil)
	return !errors.As(err, &op) || op.Op != "dial"
}

// speaksTLS reports whether a server answers a TLS handshake, if only to refuse it.
func speaksTLS(ctx context.Context, address string) bool {
	if ctx.Err() != nil { // what failed may have failed because its time was up
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	defer conn.Close() //nolint:errcheck // nothing was sent that matters
	// No data is sent or received, so any certificate will do.
	err = tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(ctx)
	op := (*net.OpError)(nil)
	return err == nil || errors.As(err, &op) && op.Op == "remote error"
}
