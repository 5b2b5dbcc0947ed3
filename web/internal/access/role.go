// Package access decides the identity of a request's caller and the caller's role: credentials,
// cookies, roles, host names, and the headers of every answer.
package access

import (
	"fmt"
	"strings"
)

// Role is a set of permissions. A role includes the lower ones.
type Role uint8

// The roles.
const (
	None Role = iota
	Read
	Write
	Admin // ends sessions, sees addresses and sessions of others
)

var roleNames = [...]string{"none", "read", "write", "admin"}

// String returns the name of the role.
func (r Role) String() string { return roleNames[r] }

// ParseRole returns the role with a name, except None.
func ParseRole(name string) (Role, error) {
	for r, n := range roleNames[Read:] {
		if n == name {
			return Read + Role(r), nil
		}
	}
	return None, fmt.Errorf("role %q is unknown: allowed are %s", name, strings.Join(roleNames[Read:], ", "))
}
