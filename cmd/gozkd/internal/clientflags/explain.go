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

// Advice returns what would help against an error of the connection to a server, or "". It may
// connect to the server once more to find out what the port speaks.
func (s *Security) Advice(ctx context.Context, address string, err error) string {
	if err == nil || errors.Is(err, context.Canceled) || errors.As(err, new(neterr.WrongPort)) {
		return ""
	}
	advice := ""
	if s.TLS() {
		advice = s.adviceForTLS(err)
	}
	if advice != "" || !dialed(err) {
		return advice
	}
	spoken := spokenAt(ctx, address, s.Dial)
	switch wrong := neterr.AsWrongPort([]byte(spoken)); {
	case wrong != nil:
		return wrong.Error()
	case spoken == inTLS && !s.TLS():
		return "this port speaks TLS: add --tls, and --cacert FILE if its certificate is not from a public authority"
	}
	return ""
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

// ExplainHTTP is Explain for an endpoint of HTTP.
func (s *Security) ExplainHTTP(ctx context.Context, u *url.URL, err error) error {
	plain := errors.Is(err, clientauth.ErrNotTLS) || neterr.TLSReason(err) == neterr.NotTLS ||
		strings.Contains(err.Error(), "HTTP response to HTTPS client")
	advice, spoken := "", protocol("")
	if plain || dialed(err) && (u.Scheme != "https" || neterr.TLSReason(err) == neterr.HungUp) {
		spoken = spokenAt(ctx, u.Host, new(Security).Dial)
	}
	switch {
	case spoken == inZooKeeper:
		advice = "this port is for ZooKeeper's clients: name that of the admin server (admin.serverPort, 8080)"
	case errors.Is(neterr.AsWrongPort([]byte(spoken)), neterr.ForMembers):
		advice = string(neterr.ForMembers) + ": name that of the admin server (admin.serverPort, 8080)"
	case u.Scheme != "https" && spoken == inTLS:
		advice = "this port speaks TLS: use https://"
	case plain:
		advice = "this port does not speak TLS: use http://"
	case u.Scheme == "https":
		advice = s.adviceForTLS(err)
	}
	return advised(err, advice)
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

// protocol is what the server at a port speaks, by the first bytes of an answer; "" if that is not
// known.
type protocol string

const (
	inZooKeeper protocol = "imok"
	inTLS       protocol = "TLS" // the server answers a handshake, if only to refuse it
)

// spokenAt finds out what a port speaks, with connections of dial. A port for clients that does not
// speak TLS is not tried with TLS, because its server would log that as a mistake.
func spokenAt(ctx context.Context, address string, dial func(context.Context, string) (net.Conn, error)) protocol {
	if ctx.Err() != nil { // what failed may have failed because its time was up
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	conn, err := dial(ctx, address)
	if err != nil {
		return ""
	}
	defer conn.Close() //nolint:errcheck // nothing was sent that matters
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline) // the read fails otherwise
	// A word, and the end of a request, as long as the beginning of a member's hello: every server
	// refuses it at once, or answers.
	answer := make([]byte, len(inZooKeeper))
	if _, err = io.WriteString(conn, "ruok\r\n\r\n\r\n\r\n"); err == nil {
		_, err = io.ReadFull(conn, answer)
	}
	switch spoken := protocol(answer); {
	case err == nil && spoken == "ruok": // is not in the whitelist
		return inZooKeeper
	case err == nil && (spoken == inZooKeeper || neterr.AsWrongPort(answer) != nil):
		return spoken
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ""
	}
	secure, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return ""
	}
	defer secure.Close() //nolint:errcheck // nothing was sent that matters
	// No data is sent or received, so any certificate will do.
	err = tls.Client(secure, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(ctx)
	if op := (*net.OpError)(nil); err == nil || errors.As(err, &op) && op.Op == "remote error" {
		return inTLS
	}
	return ""
}
