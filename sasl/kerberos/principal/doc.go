// Package principal maps Kerberos principals to ids of the scheme sasl, by ZooKeeper's rules:
// kerberos.removeHostFromPrincipal, kerberos.removeRealmFromPrincipal and security.auth_to_local. It
// imports only the standard library.
package principal
