// Package httplocal tells requests of programs on this machine from others.
package httplocal

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// OnThisMachine reports whether the request comes from a program on this machine, and not through a
// proxy there, nor from a web page whose host name resolves to this machine (DNS rebinding).
func OnThisMachine(r *http.Request) bool {
	for _, header := range []string{"Forwarded", "Via", "X-Forwarded-For", "X-Real-Ip"} {
		if len(r.Header.Values(header)) > 0 { // the first may be the caller's, and empty: a proxy may add a line
			return false
		}
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(host, ".")
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err != nil && strings.Contains(host, ".") && !strings.HasSuffix(host, ".localhost") {
		return false
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && from.Addr().Unmap().IsLoopback()
}
