package clientflags

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/clientauth"
	"github.com/gozkd/gozkd/internal/neterr"
)

// probeTimeout bounds the look at a port that did not answer as expected.
const probeTimeout = 2 * time.Second

// checkSilent is the advice about a server that has sent nothing.
const checkSilent = "check the address, that the server's process is not stopped, " +
	"and that no firewall drops packets to it"

// Advice returns what would help against an error of the connection to a server, or "". It may
// connect to the server once more to find out what the port speaks.
func (s *Security) Advice(ctx context.Context, address string, err error) string {
	if err == nil || errors.Is(err, context.Canceled) || errors.As(err, new(neterr.WrongPort)) {
		return ""
	}
	forTLS, notTLS := "", errors.Is(err, clientauth.ErrNotTLS)
	if s.TLS() {
		forTLS = s.adviceForTLS(err)
	}
	if forTLS != "" && !notTLS || !dialed(err) {
		return forTLS
	}
	switch found := s.spokenAt(ctx, address, s.TLS() && !notTLS); {
	case found.speaks == neterr.ForHTTP || found.speaks == neterr.ForMembers:
		return found.speaks.Error()
	case found.tls && !s.TLS():
		return "this port speaks TLS: add --tls, and --cacert FILE if its certificate is not from a public authority"
	case errors.Is(err, os.ErrDeadlineExceeded) && found == port{} && !errors.Is(ctx.Err(), context.Canceled):
		return checkSilent
	}
	return forTLS
}

// Explain adds Advice to an error.
func (s *Security) Explain(ctx context.Context, address string, err error) error {
	return advised(err, s.Advice(ctx, address, err))
}

func advised(err error, advice string) error {
	if advice == "" {
		return err
	}
	return fmt.Errorf("%w; %s", err, advice)
}

// ExplainHTTP is Explain for an endpoint of HTTP. The error of a port for something else says only
// which port to name: what its answer looks like to HTTP is noise.
func (s *Security) ExplainHTTP(ctx context.Context, u *url.URL, err error) error {
	const toName = ": name that of the admin server (admin.serverPort, 8080)"
	https, reason, forTLS := u.Scheme == "https", neterr.TLSReason(err), ""
	plain := errors.Is(err, clientauth.ErrNotTLS) || reason == neterr.NotTLS ||
		strings.Contains(err.Error(), "HTTP response to HTTPS client")
	if https && !plain {
		forTLS = s.adviceForTLS(err)
	}
	if forTLS != "" || !dialed(err) || errors.Is(ctx.Err(), context.Canceled) {
		return advised(err, forTLS)
	}
	switch found := s.spokenAt(ctx, u.Host, https && reason == neterr.TimedOut); {
	case found.speaks == neterr.ForClients || found.speaks == neterr.ForMembers:
		return errors.New(string(found.speaks) + toName)
	case !https && found.tls:
		return errors.New("this port speaks TLS: use https://")
	case plain:
		return errors.New("this port does not speak TLS: use http://")
	case errors.Is(err, os.ErrDeadlineExceeded) && found == port{}:
		return advised(err, checkSilent)
	}
	return err
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

// port is what a look at a port has found. The zero value means that nothing was found.
type port struct {
	tls    bool             // it answers a handshake, if only to refuse it
	speaks neterr.WrongPort // in TLS, if tls is set; "" if that is not known
}

// spokenAt finds out what a port speaks, with connections of its own. A port for clients that does
// not speak TLS is not tried with TLS, unless secure is set, because its server would log that as a
// mistake.
func (s *Security) spokenAt(ctx context.Context, address string, secure bool) (found port) {
	if ctx.Err() != nil { // what failed may have failed because its time was up
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if !secure {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return port{}
		}
		if found.speaks, err = converse(ctx, conn); found.speaks != "" || errors.Is(err, os.ErrDeadlineExceeded) {
			return found
		}
	}
	dial := s.Dial
	if !s.TLS() { // no data is sent or received, so any certificate will do
		dial = func(ctx context.Context, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
			if err != nil {
				return nil, err
			}
			return clientauth.TLS(ctx, conn, &tls.Config{InsecureSkipVerify: true}, address)
		}
	}
	conn, err := dial(ctx, address)
	if err == nil {
		found.speaks, _ = converse(ctx, conn)
	}
	op := (*net.OpError)(nil)
	found.tls = err == nil || errors.As(err, &op) && op.Op == "remote error"
	return found
}

// converse says something on a connection, and returns what the answer comes from. It closes the
// connection.
func converse(ctx context.Context, conn net.Conn) (neterr.WrongPort, error) {
	defer conn.Close() //nolint:errcheck // nothing was sent that matters
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline) // the read fails otherwise
	// A word, and the end of a request, as long as the beginning of a member's hello: every server
	// refuses it at once, or answers.
	if _, err := io.WriteString(conn, "ruok\r\n\r\n\r\n\r\n"); err != nil {
		return "", err
	}
	answer, speaks := make([]byte, 4), neterr.WrongPort("")
	_, err := io.ReadFull(conn, answer)
	if says := string(answer); says == "imok" || says == "ruok" { // is not in the whitelist
		speaks = neterr.ForClients
	}
	errors.As(neterr.AsWrongPort(answer), &speaks)
	return speaks, err
}
