package neterr

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
)

// The reasons that name a certificate, a protocol version or a cipher suite.
const (
	Expired       = "certificate expired"
	NotYetValid   = "certificate not yet valid"
	Unknown       = "certificate of an unknown authority"
	Revoked       = "certificate revoked"
	NoRevocation  = "revocation of the certificate cannot be checked"
	WrongHost     = "certificate of another host"
	WrongUsage    = "certificate not meant for this side of a connection"
	BadCert       = "certificate not valid"
	NoCertificate = "no certificate"
	WrongVersion  = "no common protocol version"
	NoCipher      = "no common cipher suite"
	NotTLS        = "not TLS"
	TimedOut      = "timed out"
	HungUp        = "connection closed during the handshake"
)

// texts maps parts of errors of crypto/tls and net/http, which have no types, to reasons.
var texts = []struct{ part, reason string }{
	{"client didn't provide a certificate", NoCertificate},
	{"server did not send a certificate", NoCertificate},
	{"unsupported versions", WrongVersion},
	{"unsupported protocol version", WrongVersion},
	{"selected unsupported protocol", WrongVersion},
	{"no cipher suite supported by both", NoCipher},
	{"no ECDHE curve supported by both", NoCipher},
	{"peer doesn't support any of the certificate's signature algorithms", NoCipher},
	{"first record does not look like a TLS handshake", NotTLS},
	{"server closed idle connection", HungUp},
}

// TLSReason returns in a few words why a TLS handshake failed with err: one of the constants, "the
// other side says: " and its alert, or the text of err.
func TLSReason(err error) string {
	var own interface{ TLSReason() string } // of package tlsconf
	var alert tls.AlertError
	var op *net.OpError
	if errors.As(err, &own) {
		return own.TLSReason()
	}
	if reason := ofCertificate(err); reason != "" {
		return reason
	}
	switch {
	case err == nil:
		return ""
	case errors.As(err, &op) && op.Op == "remote error":
		return "the other side says: " + strings.TrimPrefix(op.Err.Error(), "tls: ")
	case errors.As(err, &alert):
		return "the other side says: " + strings.TrimPrefix(alert.Error(), "tls: ")
	case errors.As(err, new(tls.RecordHeaderError)):
		return NotTLS
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return TimedOut
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.Is(err, io.ErrClosedPipe),
		Is(err, syscall.ECONNRESET), Is(err, syscall.EPIPE):
		return HungUp
	}
	for _, t := range texts {
		if strings.Contains(err.Error(), t.part) {
			return t.reason
		}
	}
	return err.Error()
}

func ofCertificate(err error) string {
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return Unknown
	case errors.As(err, new(x509.HostnameError)):
		return WrongHost
	case !errors.As(err, &invalid):
		return ""
	case invalid.Reason == x509.Expired && strings.Contains(invalid.Detail, "is before"):
		return NotYetValid
	case invalid.Reason == x509.Expired:
		return Expired
	case invalid.Reason == x509.IncompatibleUsage:
		return WrongUsage
	}
	return BadCert
}
