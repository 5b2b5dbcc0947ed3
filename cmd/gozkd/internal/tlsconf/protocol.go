package tlsconf

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
)

// protocol is the range of versions, and the cipher suites of TLS 1.2.
type protocol struct {
	min, max uint16
	suites   []uint16 // nil: Go's choice
	notes    []string // warnings for the operator
}

// versions are the names of Java. Source: "Java Security Standard Algorithm Names", SSLContext.
var versions = map[string]uint16{"TLSv1.2": tls.VersionTLS12, "TLSv1.3": tls.VersionTLS13}

// protocol resolves versions and cipher suites.
func (o *Options) protocol() (protocol, error) {
	p := protocol{min: tls.VersionTLS12, max: tls.VersionTLS13}
	names, key := o.EnabledProtocols, o.key("enabledProtocols")
	if len(names) == 0 && o.Protocol != "" && o.Protocol != "TLS" {
		names, key = []string{o.Protocol}, o.key("protocol")
	}
	if len(names) > 0 {
		p.min, p.max = tls.VersionTLS13, tls.VersionTLS12
	}
	for _, name := range names {
		v, ok := versions[name]
		if !ok {
			return p, fmt.Errorf("%s has %q; allowed: TLSv1.2, TLSv1.3", key, name)
		}
		p.min, p.max = min(p.min, v), max(p.max, v)
	}
	if len(o.CipherSuites) == 0 {
		return p, nil
	}
	return o.cipherSuites(p)
}

// cipherSuites narrows p to the configured cipher suites. Go uses all of its suites of TLS 1.3 or
// none, so a list without any of them, or with nothing else, narrows the versions.
func (o *Options) cipherSuites(p protocol) (protocol, error) {
	key := o.key("ciphersuites")
	var newer int // suites of TLS 1.3
	var unknown, weak []string
	for _, name := range o.CipherSuites {
		switch suite := suiteOf(name); {
		case suite == nil:
			unknown = append(unknown, name)
		case slices.Contains(suite.SupportedVersions, tls.VersionTLS13):
			newer++
		default:
			p.suites = append(p.suites, suite.ID)
			if suite.Insecure {
				weak = append(weak, name)
			}
		}
	}
	if len(unknown) > 0 {
		p.notes = append(p.notes, fmt.Sprintf("%s: not supported, so not used: %s", key, strings.Join(unknown, ", ")))
	}
	if len(weak) > 0 {
		p.notes = append(p.notes, fmt.Sprintf("%s: weak, and used because the key names them: %s", key, strings.Join(weak, ", ")))
	}
	switch {
	case newer == 0:
		p.max = tls.VersionTLS12
	case newer < allNewer:
		p.notes = append(p.notes, key+": all cipher suites of TLS 1.3 are used, which have no known weakness")
	}
	if len(p.suites) == 0 {
		p.min = tls.VersionTLS13
	}
	if p.min > p.max {
		return p, fmt.Errorf("%s names no cipher suite that is supported by the enabled versions of TLS: use names such as TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 (TLS 1.2) or TLS_AES_128_GCM_SHA256 (TLS 1.3)", key)
	}
	return p, nil
}

const allNewer = 3

// suiteOf returns the suite with the IANA name, or nil, also for broken ones (RC4, 3DES).
func suiteOf(name string) *tls.CipherSuite {
	for _, s := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		if s.Name == name && !strings.Contains(name, "RC4") && !strings.Contains(name, "3DES") {
			return s
		}
	}
	return nil
}
