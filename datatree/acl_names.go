package datatree

import "strings"

// Schemes of identities that only ACLs are compared with: they belong to a client beside its
// identity of scheme sasl. Source: SASLAuthenticationProvider.matches.
const (
	// SchemeSASLAll is the identity of the user super, who is granted whatever any entry of scheme
	// sasl grants.
	SchemeSASLAll = "sasl-all"
	// SchemeSASLAny is an identity of every user where letAnySaslUserDoX is set: its id is granted
	// what the entry of scheme sasl with that id grants.
	SchemeSASLAny = "sasl-any"
)

// validPrincipal reports whether id has the syntax of a Kerberos name, as KerberosName of ZooKeeper
// understands it: without @ anything, otherwise primary[/instance]@realm.
func validPrincipal(id string) bool {
	name, realm, ok := strings.Cut(id, "@")
	return !ok || strings.Count(name, "/") <= 1 && !strings.ContainsAny(realm, "/@")
}
