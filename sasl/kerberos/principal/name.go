package principal

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Name is a Kerberos name: short[/host][@realm].
type Name struct {
	Short, Host, Realm string
	// HasHost and HasRealm tell "a/@" from "a".
	HasHost, HasRealm bool
}

// Parse splits a name with at most two components. As in ZooKeeper, a name without "@" has neither
// host nor realm, whatever else is in it.
func Parse(name string) (Name, error) {
	before, realm, found := strings.Cut(name, "@")
	if !found {
		return Name{Short: name}, nil
	}
	short, host, hasHost := strings.Cut(before, "/")
	if strings.ContainsAny(realm, "/@") || strings.Contains(host, "/") {
		return Name{}, fmt.Errorf("principal: malformed Kerberos name %q: want name[/host]@REALM", name)
	}
	return Name{Short: short, Host: host, Realm: realm, HasHost: hasHost, HasRealm: true}, nil
}

// String puts the name together again.
func (n Name) String() string {
	s := n.Short
	if n.HasHost {
		s += "/" + n.Host
	}
	if n.HasRealm {
		s += "@" + n.Realm
	}
	return s
}

// Join returns the Name of an authenticated principal. It refuses principals with more than two
// components, an empty realm, or characters that separate the parts of a name or do not print.
// Otherwise the single component "a/b" would pass for the two components "a" and "b".
func Join(components []string, realm string) (Name, error) {
	if len(components) < 1 || len(components) > 2 {
		return Name{}, fmt.Errorf("principal: %d components in a name, allowed are 1 and 2", len(components))
	}
	for _, part := range append([]string{realm}, components...) {
		if part == "" {
			return Name{}, errors.New("principal: a part of the name is empty")
		}
		if !utf8.ValidString(part) || strings.ContainsAny(part, `/@\`) || strings.ContainsFunc(part, notPrintable) {
			return Name{}, fmt.Errorf("principal: the part %q of the name has characters that are not allowed", part)
		}
	}
	n := Name{Short: components[0], Realm: realm, HasRealm: true}
	if len(components) == 2 {
		n.Host, n.HasHost = components[1], true
	}
	return n, nil
}

func notPrintable(r rune) bool { return r != ' ' && !unicode.IsPrint(r) }

// Mapping maps names to ids. The zero Mapping has no rules, so no name with a realm has an id;
// ZooKeeper's default is ParseRules("DEFAULT", realm).
type Mapping struct {
	Rules       Rules
	RemoveHost  bool
	RemoveRealm bool
}

// ID returns the id of a name: the short name by the rules, followed by host and realm unless the
// Mapping removes them. If no rule applies, ID returns an error.
func (m Mapping) ID(n Name) (string, error) {
	id, err := m.Rules.Short(n)
	if err != nil {
		return "", err
	}
	if n.HasHost && !m.RemoveHost {
		id += "/" + n.Host
	}
	if n.HasRealm && !m.RemoveRealm {
		id += "@" + n.Realm
	}
	return id, nil
}
