package server

import "crypto/x509"

// Authentication is how clients prove who they are, except for the digest scheme. Names in
// parentheses are ZooKeeper's.
type Authentication struct {
	X509 X509
}

// X509 is the scheme x509: a client with a verified certificate has the identity x509:ID from the end
// of the TLS handshake on.
type X509 struct {
	// SuperUser is the ID of the client that also passes every ACL check
	// (X509AuthenticationProvider.superUser). Empty: there is none.
	SuperUser string
	// ID returns the identity of a verified certificate. A client for whose certificate ID returns
	// an error has no identity x509. Default: CertificateID.
	ID func(*x509.Certificate) (string, error)
}
