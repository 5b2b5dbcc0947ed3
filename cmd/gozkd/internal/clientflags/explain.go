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

// Advice about servers that do not answer as they should.
var (
	errSilent = errors.New("check the address, that the server's process is not stopped, " +
		"and that no firewall drops packets to it")
	errClosed = errors.New("check the address, and that the server has not too many connections (maxClientCnxns)")
)

// Advice returns what would help against an error of the connection to a server, or nil. It may
// connect to the server once more to find out what the port speaks; see neterr.Advised.
func (s *Security) Advice(ctx context.Context, address string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.As(err, new(neterr.WrongPort)) {
		return nil
	}
	forTLS, notTLS := error(nil), errors.Is(err, clientauth.ErrNotTLS)
	if s.TLS() {
		forTLS = s.adviceForTLS(err)
	}
	if forTLS != nil && !notTLS || !dialed(err) {
		return forTLS
	}
	switch found := s.spokenAt(ctx, address, s.TLS() && !notTLS); {
	case found.speaks != "" && found.speaks != neterr.ForClients:
		return found.speaks
	case found.tls && !s.TLS():
		return neterr.ForTLS
	case found.away && !notTLS:
		return neterr.Away
	case forTLS != nil || found != port{} || errors.Is(ctx.Err(), context.Canceled):
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errSilent
	case errors.Is(err, neterr.ErrNoAnswer):
		return errClosed
	}
	return forTLS
}

// Explain adds Advice to an error.
func (s *Security) Explain(ctx context.Context, address string, err error) error {
	advised := neterr.Advised(err, s.Advice(ctx, address, err))
	if wrong, is := advised.(neterr.WrongPort); is { //nolint:errorlint // not one that has an address
		return fmt.Errorf("%s: %w", address, wrong)
	}
	return advised
}

// ExplainHTTP is Explain for an endpoint of HTTP.
func (s *Security) ExplainHTTP(ctx context.Context, u *url.URL, err error) error {
	const toName = ": name that of the admin server (admin.serverPort, 8080)"
	https, reason := u.Scheme == "https", neterr.TLSReason(err)
	plain := errors.Is(err, clientauth.ErrNotTLS) || reason == neterr.NotTLS ||
		strings.Contains(err.Error(), "HTTP response to HTTPS client")
	if https && !plain {
		if advice := s.adviceForTLS(err); advice != nil {
			return neterr.Advised(err, advice)
		}
	}
	if !dialed(err) || errors.Is(ctx.Err(), context.Canceled) {
		return err
	}
	switch found := s.spokenAt(ctx, u.Host, https && reason == neterr.TimedOut); {
	case found.speaks != "" && found.speaks != neterr.ForHTTP:
		return errors.New(string(found.speaks) + toName)
	case !https && found.tls:
		return errors.New("this port speaks TLS: use https://")
	case plain:
		return errors.New("this port does not speak TLS: use http://")
	case errors.Is(err, os.ErrDeadlineExceeded) && found == port{}:
		return neterr.Advised(err, errSilent)
	case reason == neterr.HungUp:
		return errors.New("this port closes the connection without an answer" + toName)
	}
	return err
}

// adviceForTLS returns what would help against an error of a handshake, or nil.
func (s *Security) adviceForTLS(err error) error {
	if errors.Is(err, clientauth.ErrNotTLS) {
		return errors.New("leave --tls out, or name the port for TLS (secureClientPort)")
	}
	reason := neterr.TLSReason(err)
	switch reason {
	case neterr.Unknown:
		return errors.New("name the file with the certificate of its authority with --cacert")
	case neterr.WrongHost:
		return errors.New("connect by a name in the certificate, or say with --tls-server-name which name it has")
	case neterr.Expired, neterr.NotYetValid, neterr.Revoked:
		return errors.New("the server needs another certificate")
	case neterr.WrongVersion, neterr.NoCipher:
		return errors.New("compare ssl.enabledProtocols and ssl.ciphersuites of the server with zookeeper.ssl.* of this client")
	}
	if alert, ok := strings.CutPrefix(reason, "the other side says: "); ok && strings.Contains(alert, "certificate") {
		if !s.hasCert {
			return errors.New("the server demands a client certificate: name one with --cert and --key")
		}
		if s.own {
			return errors.New("the server does not accept its own certificate as that of a client, for which it may not be meant: name another one with --cert and --key")
		}
		return errors.New("the server does not accept the certificate of --cert; its log says why")
	}
	return nil
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
	away   bool             // it is a server without a quorum
}

// spokenAt finds out what a port speaks, with connections of its own. Unless secure is set, a port
// for clients is not tried with TLS, which its server would log as a mistake.
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
		if err = found.converse(ctx, conn); found.speaks != "" || errors.Is(err, os.ErrDeadlineExceeded) {
			return found
		}
	}
	dial := s.Dial
	if !s.TLS() { // no data is sent or received, so any certificate will do
		any := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
		dial = func(ctx context.Context, address string) (net.Conn, error) {
			return any.DialContext(ctx, "tcp", address)
		}
	}
	conn, err := dial(ctx, address)
	if err == nil {
		_ = found.converse(ctx, conn)
	}
	op := (*net.OpError)(nil)
	found.tls = err == nil || errors.As(err, &op) && op.Op == "remote error"
	return found
}

// Purpose finds out what a port is for, with connections of its own; "" if that is not known.
func Purpose(ctx context.Context, address string) neterr.WrongPort {
	found := new(Security).spokenAt(ctx, address, false)
	if found.tls {
		return neterr.ForTLS
	}
	return found.speaks
}

// converse says something on a connection, notes what the answer comes from, and closes it.
func (p *port) converse(ctx context.Context, conn net.Conn) error {
	defer conn.Close() //nolint:errcheck // nothing was sent that matters
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline) // the read fails otherwise
	// A word, and the end of a request, as long as the beginning of a member's hello: every server
	// refuses it at once, or answers.
	if _, err := io.WriteString(conn, "srvr\r\n\r\n\r\n\r\n"); err != nil {
		return err
	}
	answer := make([]byte, 4)
	_, err := io.ReadFull(conn, answer)
	switch says := string(answer); {
	case errors.As(neterr.AsWrongPort(answer), &p.speaks):
	case says == "Zook", says == "srvr": // its version; srvr is not in the whitelist
		p.speaks = neterr.ForClients
	case says == "This": // ZooKeeper instance is not currently serving requests
		p.speaks, p.away = neterr.ForClients, true
	case says[0] >= ' ' && says[0] <= '~':
		p.speaks = neterr.ForOthers
	}
	return err
}
