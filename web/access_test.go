package web_test

import (
	"crypto/tls"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/audit"
	"github.com/gozkd/gozkd/internal/version"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/sasl"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web"
)

func TestIdentity_OnThisMachine(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Read})
	s.want(200, `"ids":[{"scheme":"ip","id":"127.0.0.1"}],"role":"read","login":false,"anonymous":true`, "GET", "/identity/v2", "")
	s.want(200, `"version":"`+version.Get().String()+`"`, "GET", "/identity/v2", "") // as in srvr and gozkd --version
	s.want(200, `"/"`, "GET", "/znodes/v2/", "")
	s.want(401, "gozkd.web=write", "POST", "/znodes/v2/?name=a", "")
}

// W2: a request that may come from elsewhere is not anonymous on this machine.
func TestIdentity_NotOnThisMachine(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Write, Hosts: []string{"zk.example.org"}})
	for _, header := range []string{"X-Forwarded-For: 10.0.0.1", "Forwarded: for=10.0.0.1", "Via: 1.1 proxy", "X-Real-Ip: 127.0.0.1", "Host: zk.example.org"} {
		s.want(401, "nobody can: set gozkd.web.roles", "GET", "/znodes/v2/", "", header)
		s.want(200, `"role":"none"`, "GET", "/identity/v2", "", header)
	}
	s.want(421, "gozkd.web.hosts", "GET", "/ui/", "", "Host: evil.example.org") // DNS rebinding
	s.want(421, "gozkd.web.hosts", "GET", "/znodes/v2/", "", "Host: evil.example.org:8080")
	s.want(421, "gozkd.web.hosts", "GET", "/znodes/v2/", "", "Host: intranet")
	s.want(200, "", "GET", "/znodes/v2/", "", "Host: localhost:8080")
	if own, err := os.Hostname(); err == nil {
		s.want(200, "", "GET", "/znodes/v2/", "", "Host: "+own+":8080")
	}
	s.want(200, "", "GET", "/znodes/v2/", "", "Host: [::1]:8080")
	// The caller sends an empty header, and the proxy adds a line of its own.
	s.want(200, `"role":"none"`, "GET", "/identity/v2", "", "X-Forwarded-For: ", "X-Forwarded-For: 10.0.0.1")
}

// users is a configuration with the superuser and a SASL user bob.
func users(log *trail) server.Config {
	u := make(sasl.DigestUsers)
	u.Set("bob", "secret")
	cfg := server.Config{SuperDigest: "super:xQJmxLMiHGwaqBvst5y6rkB6HQs="} // admin
	cfg.Auth.SASL, cfg.Auth.ACLSchemes = sasl.NewDigest(u), []string{"sasl"}
	if log != nil {
		cfg.Audit = log
	}
	return cfg
}

func basic(user, password string) string {
	return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

const elsewhere = "X-Forwarded-For: 10.0.0.1" // not on this machine

func roles(t *testing.T, list string) map[string]web.Role {
	t.Helper()
	r, err := web.ParseRoles(list)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestIdentity_ByPassword(t *testing.T) {
	log := new(trail)
	s := open(t, users(log), web.Options{Roles: roles(t, "write=sasl:bob; read=digest:ann:RYbu6l5aZwqon8VWmkcGvezdzfc=")})
	who := func(header, want string) {
		t.Helper()
		s.want(200, want, "GET", "/identity/v2", "", header)
	}
	who(basic("bob", "secret"), `{"scheme":"sasl","id":"bob"}`)
	who(basic("bob", "secret"), `"role":"write"`)
	who(basic("super", "admin"), `"role":"admin"`)
	who("Authorization: digest super:admin", `"role":"admin"`)
	who(basic("ann", "pw"), `{"scheme":"digest","id":"ann"}`)
	who(basic("ann", "pw"), `"role":"read"`)
	for _, header := range []string{
		basic("bob", "wrong"), basic("ann", "wrong"), basic("eve", "pw"), "Authorization: digest bob:secret", // not a digest user
		"Authorization: Basic !", "Authorization: Bearer x", "Authorization: digest bob", basic("bob", ""),
	} {
		s.want(401, "", "GET", "/znodes/v2/", "", header)
	}
	s.want(401, "encryption", "GET", "/znodes/v2/", "", basic("bob", "secret"), elsewhere)
	s.want(200, "", "GET", "/znodes/v2/", "", "Authorization: digest super:admin", elsewhere)
	s.want(401, "", "GET", "/znodes/v2/", "") // nobody is let in without a login
	if !log.has(func(e *audit.Event) bool {
		return e.Operation == audit.Authenticate && e.Err == proto.ErrAuthFailed && e.Origin == "http" && e.IDs[len(e.IDs)-1].ID == "eve"
	}) {
		t.Error("a failed login is not in the audit log")
	}
}

// W1, W8: the ACLs decide, and the audit log names the caller.
func TestIdentity_ACLs(t *testing.T) {
	log := new(trail)
	s := open(t, users(log), web.Options{Anonymous: web.Write, Roles: roles(t, "write=sasl:bob")})
	s.want(201, "", "POST", "/znodes/v2/?name=a", "")
	s.want(200, "", "PUT", "/znodes/v2/a?acl", `{"acl":[{"scheme":"sasl","id":"bob","perms":"cdrwa"}]}`, "If-Match: *")
	s.want(403, `"code":-102`, "GET", "/znodes/v2/a", "")
	s.want(200, "", "PUT", "/znodes/v2/a", "x", basic("bob", "secret"), "If-Match: *")
	s.want(200, "", "GET", "/znodes/v2/a", "", basic("super", "admin"))
	s.want(403, "", "PUT", "/znodes/v2/a", "x", "If-Match: *")
	for _, want := range []proto.ErrCode{proto.OK, proto.ErrNoAuth} {
		if !log.has(func(e *audit.Event) bool {
			bob := len(e.IDs) > 0 && (e.IDs[0].ID == "bob" || e.IDs[len(e.IDs)-1].ID == "bob")
			return e.Operation == audit.SetData && e.Err == want && e.Origin == "http" && e.Client == "127.0.0.1:0" && bob == (want == proto.OK)
		}) {
			t.Errorf("no event of a write with %v", want)
		}
	}
}

// The audit log tells requests over TLS from others of the same caller.
func TestIdentity_AuditTLS(t *testing.T) {
	log := new(trail)
	s := open(t, users(log), web.Options{Anonymous: web.Write})
	for _, name := range []string{"plain", "tls", "plain2"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/znodes/v2/?name="+name, nil)
		if r.RemoteAddr = "127.0.0.1:1"; name == "tls" {
			r.TLS = new(tls.ConnectionState)
		}
		w := httptest.NewRecorder()
		if s.h.ServeHTTP(w, r); w.Code != http.StatusCreated {
			t.Fatal(w.Code, w.Body)
		}
		if !log.has(func(e *audit.Event) bool {
			return e.Operation == audit.Create && e.Znode == "/"+name && e.TLS == (name == "tls")
		}) {
			t.Errorf("no event of %s with the right tls", name)
		}
	}
}

// W8: a write of a caller without a role, or with a wrong password, is in the audit log.
func TestIdentity_RefusedWrites(t *testing.T) {
	log := new(trail)
	s := open(t, users(log), web.Options{
		Roles: roles(t, "read=sasl:bob"), ProxyHeader: "X-User", Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
		History: &past{},
	})
	s.want(200, "", "GET", "/ui/api/history?path=/", "", "X-User: bob") // without what others did
	s.want(403, "eve has no role", "PUT", "/znodes/v2/a", "", "X-User: eve", "If-Match: *")
	s.want(401, "has not named", "DELETE", "/znodes/v1/b", "")
	s.want(403, "role write", "POST", "/ui/api/import?root=/c", "", "X-User: bob")
	s.want(403, "eve has no role", "GET", "/znodes/v2/d", "", "X-User: eve")
	for detail, user := range map[string]string{"PUT /znodes/v2/a": "eve", "DELETE /znodes/v1/b": "127.0.0.1", "POST /ui/api/import": "bob"} {
		if !log.has(func(e *audit.Event) bool {
			return e.Operation == audit.Admin && e.Err == proto.ErrNoAuth && e.Detail == detail && e.IDs[0].ID == user && e.Origin == "http"
		}) {
			t.Errorf("no event of %s by %s", detail, user)
		}
	}
	if log.has(func(e *audit.Event) bool {
		return strings.HasSuffix(e.Detail, "/d") || strings.HasSuffix(e.Detail, "/history")
	}) {
		t.Error("an event of a read")
	}
}

func TestLogin_Cookie(t *testing.T) {
	log := new(trail)
	s := open(t, users(log), web.Options{Roles: roles(t, "read=sasl:bob")})
	s.want(401, "", "POST", "/ui/api/login", `{"user":"bob","password":"wrong"}`)
	s.want(400, "", "POST", "/ui/api/login", `{"scheme":"x509","user":"bob"}`)
	s.want(401, "encryption", "POST", "/ui/api/login", `{"user":"bob","password":"secret"}`, elsewhere)
	r := s.want(200, `"role":"read"`, "POST", "/ui/api/login", `{"scheme":"sasl","user":"bob","password":"secret"}`)
	c := r.Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || len(c.Value) != 43 || c.Path != "/" {
		t.Errorf("%+v", c)
	}
	cookie := "Cookie: " + c.Name + "=" + c.Value
	s.want(200, `"role":"read"`, "GET", "/identity/v2", "", cookie)
	s.want(403, "gozkd.web.roles", "POST", "/znodes/v2/?name=a", "", cookie)
	s.want(401, "", "GET", "/znodes/v2/", "", cookie+"x")
	s.want(204, "", "POST", "/ui/api/logout", "", cookie)
	if !log.has(func(e *audit.Event) bool { return e.Detail == "web logout" && e.IDs[0].ID == "bob" }) {
		t.Error("the audit log has no logout")
	}
	s.want(401, "", "GET", "/znodes/v2/", "", cookie)
	c = s.want(200, "", "POST", "/ui/api/login", `{"scheme":"sasl","user":"bob","password":"secret"}`).Cookies()[0]
	cookie = "Cookie: " + c.Name + "=" + c.Value
	s.want(200, "", "GET", "/znodes/v2/", "", cookie)
	s.h.EndLogins()
	s.want(401, "", "GET", "/znodes/v2/", "", cookie)
	for _, want := range []proto.ErrCode{proto.OK, proto.ErrAuthFailed} {
		if !log.has(func(e *audit.Event) bool { return e.Operation == audit.Authenticate && e.Err == want }) {
			t.Errorf("no event of a login with %v", want)
		}
	}
	if !log.has(func(e *audit.Event) bool { return e.Operation == audit.Admin && e.Err == proto.ErrNoAuth }) {
		t.Error("no event of the refused write")
	}
}

func TestLogin_Throttle(t *testing.T) {
	s := open(t, users(nil), web.Options{Roles: roles(t, "read=sasl:bob")})
	for range 10 {
		s.want(401, "", "POST", "/ui/api/login", `{"user":"bob","password":"wrong"}`)
	}
	r := s.want(429, "failed logins", "POST", "/ui/api/login", `{"user":"bob","password":"secret"}`)
	if r.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	s.want(429, "", "GET", "/znodes/v2/", "", basic("bob", "secret"))
}

func TestIdentity_ByProxy(t *testing.T) {
	s := open(t, users(nil), web.Options{
		Anonymous: web.Write, Roles: roles(t, "read=sasl:bob"), ProxyHeader: "X-User", Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})
	s.want(200, `[{"scheme":"sasl","id":"bob"},{"scheme":"ip","id":"10.0.0.7"}],"role":"read"`, "GET", "/identity/v2", "", "X-User: bob", "X-Forwarded-For: 1.2.3.4, 10.0.0.7")
	s.want(200, `{"scheme":"ip","id":"10.0.0.7"}]`, "GET", "/identity/v2", "", "X-User: bob", "X-Forwarded-For: 1.2.3.4", "X-Forwarded-For: 10.0.0.7") // a proxy that adds a line
	for _, given := range []string{"10.0.0.7:4711", "[2001:db8::7]:4711", "[2001:db8::7]", "2001:db8::7"} {                                            // some proxies add the port
		want := `"ip","id":"10.0.0.7"}]`
		if strings.Contains(given, "db8") {
			want = `"ip","id":"2001:db8::7"}]`
		}
		s.want(200, want, "GET", "/identity/v2", "", "X-User: bob", "X-Forwarded-For: 1.2.3.4, "+given)
	}
	s.want(403, "eve has no role", "GET", "/znodes/v2/", "", "X-User: eve")
	s.want(401, "X-User", "GET", "/znodes/v2/", "")
	s.want(401, "X-User", "GET", "/znodes/v2/", "", "X-User: bob", "X-User: eve")
	other := open(t, users(nil), web.Options{
		Anonymous: web.Read, Roles: roles(t, "write=sasl:bob"), ProxyHeader: "X-User", Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
	})
	other.want(200, `"anonymous":true`, "GET", "/identity/v2", "", "X-User: bob")
}

// W4: a page of another origin can neither cause a write nor read anything.
func TestProtection_OfOrigins(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Write})
	s.want(403, "another origin", "POST", "/znodes/v2/?name=a", "", "Sec-Fetch-Site: cross-site")
	s.want(403, "another origin", "POST", "/znodes/v2/?name=a", "", "Origin: http://evil.example.org")
	s.want(403, "another origin", "GET", "/znodes/v2/", "", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors")
	s.want(403, "another origin", "GET", "/znodes/v2/", "", "Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document")
	s.want(200, "", "GET", "/ui/", "", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document")
	s.want(403, "", "GET", "/ui/", "", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe")
	s.want(201, "", "POST", "/znodes/v2/?name=a", "", "Sec-Fetch-Site: same-origin", "Origin: "+s.url)
	for _, path := range []string{"/ui/", "/znodes/v2/", "/identity/v2", "/nope"} {
		h := s.ask("GET", path, "").Header
		if !strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'none'") || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %v", path, h)
		}
	}
}

func TestParseRoles(t *testing.T) {
	const hash = "D/InIHSb7yEEbrWz8b9l71RjZJU="
	got := roles(t, ` admin = x509:CN=a\;b,O=c ;read=sasl:bob;; write=sasl:bob;read=digest:a:`+hash)
	for id, role := range map[string]web.Role{`x509:CN=a\;b,O=c`: web.Admin, "sasl:bob": web.Write, "digest:a:" + hash: web.Read} {
		if got[id] != role {
			t.Errorf("%s is %v", id, got[id])
		}
	}
	for list, want := range map[string]string{
		"root=sasl:a": "allowed are read, write, admin", "none=sasl:a": "allowed are", "read=bob": "allowed are digest",
		"read=digest:a": "every password", "read=digest:a:secret!": "digest:a has no hash", "read=digset:a:secret!": "read=digset is not an identity", "read=world:anyone": "allowed are", "read=ip:10.0.0.1": "allowed are", "read=sasl:": "allowed are",
	} {
		if _, err := web.ParseRoles(list); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", list, err)
		}
	}
}

// Who makes the server connect to another ensemble is in the audit log, also if that fails.
func TestCompare_Audited(t *testing.T) {
	log := new(trail)
	s := open(t, users(log), web.Options{Roles: roles(t, "admin=sasl:bob")})
	s.want(400, "connect", "GET", "/ui/api/compare?left=/&right=/&connect=:1:", "", basic("bob", "secret"))
	if !log.has(func(e *audit.Event) bool { return e.Detail == "compare with :1:" && e.IDs[0].ID == "bob" }) {
		t.Error("the audit log does not have it")
	}
}

// Identities that only ACLs are compared with are neither shown nor in the audit log.
func TestIdentity_HiddenIdentities(t *testing.T) {
	log := new(trail)
	cfg := users(log)
	cfg.Auth.LetAnySASLUserDoX = "any"
	s := open(t, cfg, web.Options{Roles: roles(t, "admin=sasl:bob")})
	s.want(200, `"ids":[{"scheme":"sasl","id":"bob"},{"scheme":"ip","id":"127.0.0.1"}]`, "GET", "/identity/v2", "", basic("bob", "secret"))
	s.want(200, `"ids":[{"scheme":"sasl","id":"bob"},{"scheme":"ip","id":"127.0.0.1"}]`, "POST", "/ui/api/login", `{"user":"bob","password":"secret"}`)
	s.want(404, "", "POST", "/ui/api/sessions/0x1/end", "", basic("bob", "secret"))
	if log.has(func(e *audit.Event) bool {
		return slices.ContainsFunc(e.IDs, func(id proto.ID) bool { return strings.HasPrefix(id.Scheme, "sasl-") })
	}) {
		t.Error("such an identity is in the audit log")
	}
}
