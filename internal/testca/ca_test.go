package testca

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/memnet"
)

// shake runs a handshake of a server and a client and returns the server's view.
func shake(server, client *tls.Config) (tls.ConnectionState, error) {
	far, near := memnet.Pipe("client", "server")
	done := make(chan error, 1)
	// Ends with the handshake; awaited below.
	go func() {
		c := tls.Client(far, client)
		err := c.Handshake()
		if err == nil { // a server refuses a certificate after the handshake of TLS 1.3
			_, err = c.Read(make([]byte, 1))
		}
		_ = far.Close()
		done <- err
	}()
	s := tls.Server(near, server)
	err := s.Handshake()
	if err == nil {
		_, _ = s.Write([]byte{1}) // the client's error says what happened
	}
	state := s.ConnectionState()
	_ = near.Close()
	return state, errors.Join(err, <-done)
}

func TestIssue_HandshakeOfBothSides(t *testing.T) {
	for _, key := range []Key{ECDSA, Ed25519} {
		ca := New(t, "root")
		sub := ca.Sub(t, "sub")
		server := sub.Issue(t, Spec{CN: "server", Hosts: []string{"zk.example", "127.0.0.1", "spiffe://example/zk"}, Key: key})
		subject, err := asn1.Marshal(pkix.Name{CommonName: "ü", Country: []string{"DE"}, SerialNumber: "u1"}.ToRDNSequence())
		if err != nil {
			t.Fatal(err)
		}
		client := ca.Issue(t, Spec{RawSubject: subject, Key: key})
		for _, host := range []string{"zk.example", "127.0.0.1"} {
			state, err := shake(server.Server(), client.Client(host))
			if err != nil {
				t.Fatal(err)
			}
			if got := state.VerifiedChains[0][0].Subject.CommonName; got != "ü" {
				t.Errorf("the client is %q", got)
			}
		}
		if _, err := shake(server.Server(), client.Client("other.example")); err == nil {
			t.Error("a foreign name was accepted")
		}
	}
}

func TestIssue_RefusesByTime(t *testing.T) {
	ca := New(t, "root")
	server := ca.Issue(t, Spec{Hosts: []string{"zk"}})
	now := time.Now()
	for name, s := range map[string]Spec{
		"expired":       {NotBefore: now.Add(-2 * time.Hour), NotAfter: now.Add(-time.Hour)},
		"not yet valid": {NotBefore: now.Add(time.Hour), NotAfter: now.Add(2 * time.Hour)},
	} {
		var invalid x509.CertificateInvalidError
		if _, err := shake(server.Server(), ca.Issue(t, s).Client("zk")); !errors.As(err, &invalid) || invalid.Reason != x509.Expired {
			t.Errorf("%s: %v", name, err)
		}
	}
}
