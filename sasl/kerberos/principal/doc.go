// Package principal maps Kerberos principals to ids of the scheme sasl, by ZooKeeper's rules:
// kerberos.removeHostFromPrincipal, kerberos.removeRealmFromPrincipal and security.auth_to_local.
// It imports only the standard library.
//
// Java's regular expressions differ from Go's, so a rule is refused at the start if it uses what
// only Java has, or what both understand differently. testdata/names.golden holds the answers of
// ZooKeeper's own classes; go run ./test/compat/kerberos/names records them again.
package principal
