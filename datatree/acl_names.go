package datatree

import "strings"

// validPrincipal reports whether id has the syntax of a Kerberos name, as KerberosName of ZooKeeper
// understands it: without @ anything, otherwise primary[/instance]@realm.
func validPrincipal(id string) bool {
	name, realm, ok := strings.Cut(id, "@")
	return !ok || strings.Count(name, "/") <= 1 && !strings.ContainsAny(realm, "/@")
}
