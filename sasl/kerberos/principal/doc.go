// Package principal turns the names of Kerberos principals into the ids that ACLs of the scheme
// sasl name, by the rules of ZooKeeper: kerberos.removeHostFromPrincipal,
// kerberos.removeRealmFromPrincipal and security.auth_to_local. It knows nothing of tickets and
// imports only the standard library.
package principal
