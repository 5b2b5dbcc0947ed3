// Package httplocal says where HTTP requests come from and to which name: it is the one reader of
// Host, of addresses, and of the headers of proxies.
package httplocal

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
)

// OnThisMachine reports whether the request comes from a program on this machine, and not through a
// proxy there, nor from a web page whose host name resolves to this machine (DNS rebinding).
// Headers show a proxy or, on Linux, the user that it runs as.
func OnThisMachine(r *http.Request) bool {
	for _, header := range []string{"Forwarded", "Via", "X-Forwarded-For", "X-Real-Ip"} {
		if len(r.Header.Values(header)) > 0 { // the first may be the caller's, and empty: a proxy may add a line
			return false
		}
	}
	return KnownHost(Host(r)) && Address(r.RemoteAddr).IsLoopback() && !proxied(r)
}

// connKey is the key of a connection's value in the contexts of its requests.
type connKey struct{}

// ConnContext lets OnThisMachine ask once per connection who is at its other end, and not at each
// request. It is for http.Server.ConnContext.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, sync.OnceValue(func() bool { return service(c.RemoteAddr().String(), c.LocalAddr()) }))
}

// proxied reports whether the request comes from a proxy on this machine: a process of a user for
// services. A proxy need not add headers, so its callers would count as programs here otherwise.
func proxied(r *http.Request) bool {
	if known, ok := r.Context().Value(connKey{}).(func() bool); ok {
		return known()
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return service(r.RemoteAddr, local)
}

// service reports whether a user for services has the other end of a connection.
func service(remote string, local net.Addr) bool {
	tcp, ok := local.(*net.TCPAddr)
	peer, err := netip.ParseAddrPort(remote)
	if !ok || err != nil { // a pipe, or a test without a connection
		return false
	}
	plain := func(a netip.AddrPort) netip.AddrPort {
		return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
	}
	return fromService(plain(peer), plain(tcp.AddrPort()))
}

// Address returns the address, without a zone, in host:port, or in an address that may have
// brackets. It is invalid for other texts.
func Address(text string) netip.Addr {
	address, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
	if err != nil {
		with, _ := netip.ParseAddrPort(text) // otherwise the address is invalid
		address = with.Addr()
	}
	return address.Unmap().WithZone("")
}

// Host returns the name in the header Host, in lower case and without a port.
func Host(r *http.Request) string {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// ownName is the name of this machine, in lower case; "" if it has none.
var ownName = sync.OnceValue(func() string {
	name, _ := os.Hostname()
	return strings.ToLower(name)
})

// KnownHost reports whether only this machine can have a name of Host, because it is an address,
// localhost or below it, or this machine's own name, whether it is none, which no browser sends, or
// whether it is one of known. One that begins with a dot stands for all names below.
func KnownHost(host string, known ...string) bool {
	own := ownName()
	short, _, _ := strings.Cut(own, ".")
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err == nil || slices.Contains([]string{"", "localhost", own, short}, host) || strings.HasSuffix(host, ".localhost") {
		return true
	}
	for _, name := range known {
		name = strings.ToLower(strings.TrimSuffix(name, "."))
		if host == name || strings.HasPrefix(name, ".") && strings.HasSuffix(host, name) {
			return true
		}
	}
	return false
}

// Harden sets headers that keep browsers from showing an answer within another page, from guessing
// its type, and from giving it to pages of other origins.
func Harden(header http.Header) {
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// CrossSite reports whether a browser says that a page of another origin has caused the request. A
// person may follow a link there if linkable. A page could not read the answer, but cost time, and
// could measure it.
func CrossSite(r *http.Request, linkable bool) bool {
	site, follows := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	return (site == "cross-site" || site == "same-site") && !(linkable && follows)
}

// Prefix returns the path below which a proxy serves this server, as X-Forwarded-Prefix says,
// without a slash at its end; or "". Whoever makes the header up gets an odd address in return.
func Prefix(r *http.Request) string {
	p := r.Header.Get("X-Forwarded-Prefix")
	odd := func(c rune) bool { return c <= ' ' || c > '~' || c == '\\' }
	if !strings.HasPrefix(p, "/") || strings.HasPrefix(p, "//") || strings.ContainsFunc(p, odd) {
		return ""
	}
	return strings.TrimRight(p, "/")
}

// ForwardedFor returns whom X-Forwarded-For names: first whom the caller may have made up, last
// whom the nearest proxy has seen. They are "" without the header.
func ForwardedFor(r *http.Request) (first, last string) {
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	return strings.TrimSpace(hops[0]), strings.TrimSpace(hops[len(hops)-1])
}
