// Package identity decides who the clients of a server are: by address, TLS certificate, password
// (the scheme digest) or SASL. Authority has the rules, for clients and for callers of the
// embedding program; Client holds a client's proved identities. It knows no connections, and no
// clock but for the times that callers pass.
//
// Programs that embed a server need Authentication and X509, which are in server.Config, and
// CertificateIDOf. The rest is for gozkd and package web, and not covered by the promise of
// compatibility of version 1.
package identity
