package server_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"log"
	"math/big"
	"net"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/server"
)

// certificate makes a certificate that signs itself. Real ones come from an authority.
func certificate(name string) (tls.Certificate, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		log.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name, Organization: []string{"Example, Inc."}}, DNSNames: []string{name},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		log.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		log.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// Clients come with TLS only, and their certificates are their identities.
func ExampleConfig_tls() {
	own, servers := certificate("zk.example")
	alice, clients := certificate("alice")
	s, err := server.New(server.Config{
		InProcess:    true, // no port without TLS
		SecureListen: "127.0.0.1:0",
		TLS: &tls.Config{
			Certificates: []tls.Certificate{own}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert,
		},
		Auth: server.Authentication{X509: server.X509{SuperUser: `CN=alice,O=Example\, Inc.`}},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Start(context.Background()); err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	with := &tls.Config{Certificates: []tls.Certificate{alice}, RootCAs: servers, ServerName: "zk.example"}
	dial := func(network, address string, timeout time.Duration) (net.Conn, error) {
		return tls.DialWithDialer(&net.Dialer{Timeout: timeout}, network, address, with)
	}
	conn, _, err := zk.Connect([]string{s.SecureAddr().String()}, 10*time.Second, zk.WithDialer(dial), zk.WithLogInfo(false))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Create("/mine", nil, 0, zk.AuthACL(zk.PermAll)); err != nil { // for the creator alone
		log.Fatal(err)
	}
	acl, _, err := conn.GetACL("/mine")
	fmt.Println(acl, err)
	// Output: [{31 x509 CN=alice,O=Example\, Inc.}] <nil>
}
