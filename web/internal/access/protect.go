package access

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/internal/httplocal"
	"github.com/gozkd/gozkd/web/internal/answer"
)

// policy is every answer's. Trusted types make scripts fail that would make HTML of text.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Protect refuses requests that a page of another origin has caused, and protects answers of h.
func (g *Gate) Protect(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		httplocal.Harden(header)
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		if len(r.TransferEncoding) > 0 {
			// A proxy that goes by Content-Length would take the next request for a part of it.
			header.Set("Connection", "close")
		}
		if err := g.admit(r); err != nil {
			answer.Fail(w, err)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// admit refuses requests of other origins, and of pages whose host name was made this machine's.
func (g *Gate) admit(r *http.Request) *answer.Problem {
	if !g.knownHost(r) {
		return answer.Errorf(http.StatusMisdirectedRequest, "%s is not a name of this server: use its address, or add the name to gozkd.web.hosts", strconv.Quote(r.Host))
	}
	if err := g.crossing.Check(r); err != nil {
		return answer.Errorf(http.StatusForbidden, "a page of another origin may not change anything here")
	}
	if httplocal.CrossSite(r, strings.HasPrefix(r.URL.Path, "/ui/") && !strings.HasPrefix(r.URL.Path, "/ui/api/")) {
		return answer.Errorf(http.StatusForbidden, "a page of another origin may not read anything here")
	}
	return nil
}

// knownHost reports whether the header Host has a name that only this machine can have, or that is
// configured. By HTTPS, the browser has compared the name with the certificate. A trusted proxy on
// another machine decides itself. On this machine a browser has the address of the proxy, and a
// page whose host name resolves to this machine could send the proxy's header. Callers of other
// machines have no role without a login, so they may use any name of their network without a dot.
func (g *Gate) knownHost(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	address := httplocal.Address(r.RemoteAddr)
	host := httplocal.Host(r)
	if !address.IsLoopback() && (g.ofProxy(address) || !strings.Contains(host, ".")) {
		return true
	}
	return httplocal.KnownHost(host, g.Hosts...)
}
