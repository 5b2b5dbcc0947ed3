// Package webrole has the roles of REST and the explorer, and reads gozkd.web.roles.
package webrole

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
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

var names = [...]string{"none", "read", "write", "admin"}

// String returns the name of the role.
func (r Role) String() string { return names[r] }

// Parse parses a list of ROLE=SCHEME:ID, separated by semicolons, and returns the roles by
// SCHEME:ID. A semicolon that is a part of an ID has a backslash before it. Errors show no hash.
func Parse(list string) (map[string]Role, error) {
	roles := make(map[string]Role)
	for _, entry := range Split(list) {
		name, id, _ := strings.Cut(entry, "=")
		name = strings.TrimSpace(name)
		role := slices.Index(names[:], name)
		if role <= int(None) {
			return nil, fmt.Errorf("role %q is unknown: allowed are %s", name, strings.Join(names[Read:], ", "))
		}
		scheme, rest, _ := strings.Cut(strings.TrimSpace(id), ":")
		user, hash, _ := strings.Cut(rest, ":")
		_, err := base64.StdEncoding.DecodeString(hash)
		switch {
		case scheme != "digest" && scheme != "sasl" && scheme != "x509", rest == "": // a hash may follow
			return nil, fmt.Errorf("%s=%s is not an identity that can log in: allowed are digest:USER:HASH, sasl:USER and x509:NAME", name, scheme)
		case scheme == "digest" && (user == "" || hash == "" || err != nil):
			return nil, fmt.Errorf("digest:%s has no hash of a password, so every password or none would be right: write digest:%[1]s:BASE64, where BASE64 is the hash of user:password as in an ACL", user)
		}
		id = scheme + ":" + rest
		roles[id] = max(roles[id], Role(role))
	}
	return roles, nil
}

// Split returns the entries of a list, without spaces around them, that semicolons end which no
// backslash precedes. The backslash stays.
func Split(list string) (entries []string) {
	for _, entry := range listEntry.FindAllString(list, -1) {
		if entry = strings.TrimSpace(entry); entry != "" {
			entries = append(entries, entry)
		}
	}
	return entries
}

var listEntry = regexp.MustCompile(`(?s)(?:[^;\\]|\\.?)+`)
