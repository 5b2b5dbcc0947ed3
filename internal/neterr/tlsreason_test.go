package neterr

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/memnet"
	"github.com/gozkd/gozkd/internal/testca"
)

// shake returns the errors of the two sides of a handshake.
func shake(server, client *tls.Config) (serverErr, clientErr error) {
	far, near := memnet.Pipe("client", "server")
	done := make(chan struct{})
	// Ends with the handshake; awaited below.
	go func() {
		defer close(done)
		c := tls.Client(far, client)
		if clientErr = c.Handshake(); clientErr == nil {
			_, clientErr = c.Read(make([]byte, 1))
		}
		_ = far.Close()
	}()
	s := tls.Server(near, server)
	if serverErr = s.Handshake(); serverErr == nil {
		_, serverErr = s.Read(make([]byte, 1))
	}
	_ = near.Close()
	<-done
	return serverErr, clientErr
}

// TestOf_Handshakes fails if crypto/tls words its errors in another way.
func TestOf_Handshakes(t *testing.T) {
	ca, other := testca.New(t, "root"), testca.New(t, "other")
	good, now := ca.Issue(t, testca.Spec{Hosts: []string{"zk"}}), time.Now()
	with := func(change func(s, c *tls.Config)) [2]*tls.Config {
		s, c := good.Server(), good.Client("zk")
		change(s, c)
		return [2]*tls.Config{s, c}
	}
	by := func(c *testca.Cert) [2]*tls.Config {
		return with(func(_, cfg *tls.Config) {
			cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &c.Certificate, nil }
		})
	}
	for want, sides := range map[string][2]*tls.Config{
		Expired:       by(ca.Issue(t, testca.Spec{NotBefore: now.Add(-2 * time.Hour), NotAfter: now.Add(-time.Hour)})),
		NotYetValid:   by(ca.Issue(t, testca.Spec{NotBefore: now.Add(time.Hour), NotAfter: now.Add(2 * time.Hour)})),
		Unknown:       by(other.Issue(t, testca.Spec{})),
		WrongUsage:    by(ca.Issue(t, testca.Spec{Usage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})),
		NoCertificate: with(func(_, c *tls.Config) { c.Certificates = nil }),
		WrongVersion:  with(func(s, c *tls.Config) { s.MinVersion, c.MaxVersion = tls.VersionTLS13, tls.VersionTLS12 }),
		NoCipher: with(func(s, c *tls.Config) {
			s.MaxVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
			s.CipherSuites, c.CipherSuites = []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384}
		}),
		"the other side says: bad certificate": with(func(_, c *tls.Config) { c.ServerName = "other.example" }),
	} {
		if serverErr, clientErr := shake(sides[0], sides[1]); TLSReason(serverErr) != want {
			t.Errorf("%q, want %q; the client: %v", TLSReason(serverErr), want, clientErr)
		}
	}
	if _, clientErr := shake(good.Server(), good.Client("other.example")); TLSReason(clientErr) != WrongHost {
		t.Errorf("%q", TLSReason(clientErr))
	}
}

type own struct{}

func (own) Error() string     { return "x" }
func (own) TLSReason() string { return Revoked }

func TestOf_OtherErrors(t *testing.T) {
	for want, err := range map[string]error{
		"":       nil,
		Revoked:  &tls.CertificateVerificationError{Err: own{}},
		NotTLS:   tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"},
		TimedOut: &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded},
		HungUp:   fmt.Errorf("read: %w", io.EOF),
		"other":  errors.New("other"),
	} {
		if got := TLSReason(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
	for _, err := range []error{syscall.ECONNRESET, syscall.EPIPE} {
		if got := TLSReason(&net.OpError{Op: "read", Err: os.NewSyscallError("read", err)}); got != HungUp {
			t.Errorf("%v: %q", err, got)
		}
	}
	if TLSReason(context.DeadlineExceeded) != TimedOut {
		t.Error("a context's deadline is none")
	}
}

// A server that closes the connection at once has many errors in net/http: it may be noticed before
// the request is written, while it is, or afterwards.
func TestTLSReason_HTTP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var accepting sync.WaitGroup
	accepting.Go(func() { // ends when l is closed; awaited below
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close() // the client sees what it gets
		}
	})
	transport := &http.Transport{DisableKeepAlives: true}
	for range 500 {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodHead, "http://"+l.Addr().String(), nil)
		resp, err := transport.RoundTrip(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		if err == nil || TLSReason(err) != HungUp {
			t.Fatalf("%v", err)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	accepting.Wait()
}
