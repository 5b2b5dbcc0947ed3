//go:build linux

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"maps"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// clientTLS makes the clients of loads speak TLS; nil: they do not.
var clientTLS *tls.Config

// useTLS makes clients speak TLS, and returns the keys of zoo.cfg for a server that expects it: a
// certificate in dir that signs itself. If mutual is set, clients show the same certificate, and
// need one.
func useTLS(dir string, mutual bool) map[string]string {
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bench"}, DNSNames: []string{"bench"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(1000 * time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: must.Get(x509.MarshalPKCS8PrivateKey(key))})
	text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	file := filepath.Join(dir, "bench.pem")
	must.Do(os.WriteFile(file, text, 0o600))
	clientTLS = &tls.Config{InsecureSkipVerify: true, DynamicRecordSizingDisabled: true} //nolint:gosec // the loopback
	keys := map[string]string{
		"client.portUnification": "true", "ssl.clientAuth": "none", "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
		"ssl.keyStore.location": file, "ssl.trustStore.location": file,
	}
	if mutual {
		clientTLS.Certificates = []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
		// Without a secureClientPort, ZooKeeper does not register the provider by itself.
		keys["ssl.clientAuth"], keys["authProvider.x509"] = "need", "org.apache.zookeeper.server.auth.X509AuthenticationProvider"
	}
	return keys
}

// tlsRows begin the names of the rows that benchTLS measures, one after the other.
var tlsRows = []string{"get 100 B", "set 100 B"}

// benchTLS measures reads, writes and sessions of clients that speak TLS.
func benchTLS(ctx context.Context, s *settings) {
	dir := must.Get(os.MkdirTemp("", "gozkd-bench-tls-"))
	defer must.Finally(func() error { return os.RemoveAll(dir) })
	defer func() { clientTLS = nil }()
	t := *s
	t.tlsKeys = useTLS(dir, false)
	benchThroughputOf(ctx, &t, tlsRows)
	t.tlsKeys = useTLS(dir, true)
	benchConnects(ctx, &t)
}

// withTLS returns keys with those of a server that expects TLS, if the clients speak it.
func (s *settings) withTLS(keys map[string]string) map[string]string {
	maps.Copy(keys, s.tlsKeys)
	return keys
}

// clientWire is the connection below a tls.Conn: it reads the socket, and collects what is to be
// written.
type clientWire struct {
	net.Conn // nil: only Read and Write are called
	fd       int
	atOnce   bool // Read does not wait
	out      []byte
}

// errNoInput is temporary: the next Read of the tls.Conn goes on.
type errNoInput struct{}

func (errNoInput) Error() string   { return "no input" }
func (errNoInput) Timeout() bool   { return true }
func (errNoInput) Temporary() bool { return true }

func (w *clientWire) Read(b []byte) (int, error) {
	flags := 0
	if w.atOnce {
		flags = unix.MSG_DONTWAIT
	}
	for {
		n, _, err := unix.Recvfrom(w.fd, b, flags)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return 0, errNoInput{}
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

func (w *clientWire) Write(b []byte) (int, error) {
	w.out = append(w.out, b...)
	return len(b), w.flushIfShaking()
}

// flushIfShaking writes a flight of the handshake, for which the socket blocks.
func (w *clientWire) flushIfShaking() error {
	if w.atOnce {
		return nil
	}
	for len(w.out) > 0 {
		n, err := unix.Write(w.fd, w.out)
		if err != nil && err != unix.EINTR {
			return err
		}
		w.out = w.out[max(n, 0):]
	}
	return nil
}

// startTLS does the handshake on the blocking socket, if the clients speak TLS.
func (c *client) startTLS() error {
	if clientTLS == nil {
		return nil
	}
	c.wire = &clientWire{fd: c.fd}
	c.tls = tls.Client(c.wire, clientTLS)
	return c.tls.Handshake()
}

// fillTLS is fill for TLS: it decrypts everything that has arrived, because epoll knows only of
// what is in the socket.
func (c *client) fillTLS() (n int, err error) {
	for err == nil {
		if c.w == len(c.in) {
			c.in = append(c.in, make([]byte, len(c.in))...)
		}
		var m int
		m, err = c.tls.Read(c.in[c.w:])
		c.w += m
		n += m
		c.wire.atOnce = n > 0
	}
	c.wire.atOnce = false
	if n > 0 || errors.Is(err, errNoInput{}) { // the next call returns any other error again
		return n, nil
	}
	return 0, err
}

// seal encrypts the requests in the output that are not encrypted yet.
func (c *client) seal() error {
	if c.tls == nil || len(c.out) == c.sealed {
		return nil
	}
	c.wire.atOnce = true // do not write
	_, err := c.tls.Write(c.out[c.sealed:])
	c.wire.atOnce = false
	c.out = append(c.out[:c.sealed], c.wire.out...)
	c.wire.out, c.sealed = c.wire.out[:0], len(c.out)
	return err
}
