// Package access decides who sends a request and in which role, and has the headers of answers.
package access

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/gozkd/gozkd/audit"
	"github.com/gozkd/gozkd/internal/fair"
	"github.com/gozkd/gozkd/internal/guesses"
	"github.com/gozkd/gozkd/internal/httplocal"
	"github.com/gozkd/gozkd/internal/webrole"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/web/internal/answer"
)

// Origin is the origin of callers in the audit log.
const Origin = "http"

// Caller is the sender of a request.
type Caller struct {
	IDs   []proto.ID // besides the address; none: anonymous
	Host  string     // the address without a port
	Local bool       // a program on this machine, not behind a proxy
	TLS   bool
	Page  bool // a page of the explorer reads, says the request; any program can say so
	Role  webrole.Role
	// Cookie is the id of the login that the request came with, "" if there is none.
	Cookie string
}

// Anonymous reports whether the caller has not logged in.
func (c *Caller) Anonymous() bool { return len(c.IDs) == 0 }

// Account is what a caller's use is bounded by: the identity, or for anonymous callers the network.
func (c *Caller) Account() string {
	if c.Anonymous() {
		return fair.Network(c.Host)
	}
	return "\x00" + c.IDs[0].Scheme + ":" + c.IDs[0].ID
}

// Key distinguishes callers with different identities, of which the address is one.
func (c *Caller) Key() string {
	key := c.Host
	for _, id := range c.IDs {
		key += "\x00" + id.Scheme + ":" + id.ID
	}
	return key
}

// All returns all identities of the caller.
func (c *Caller) All() []proto.ID {
	return append(slices.Clone(c.IDs), proto.ID{Scheme: "ip", ID: c.Host})
}

// Realm proves identities. See identity.Authority.
type Realm interface {
	Identify(scheme, user, password string) ([]proto.ID, error)
	IdentifySASL(id string) []proto.ID
	IdentifyCertificate(cert *x509.Certificate) ([]proto.ID, error)
	HasSuper() bool
}

// Config configures a Gate. Fields without a comment are those of web.Options.
type Config struct {
	Realm         Realm
	Audit         func(audit.Event) // records logins
	Anonymous     webrole.Role
	Roles         map[string]webrole.Role
	Administrator func(*x509.Certificate) bool
	Hosts         []string // they may begin with a dot, for all names below
	ProxyHeader   string
	Proxies       []netip.Prefix
	Now           func() time.Time
}

// Gate identifies callers. Its methods may be called from any goroutine.
type Gate struct {
	Config
	logins   logins
	guesses  *guesses.Bounds
	crossing *http.CrossOriginProtection
}

// New returns a Gate.
func New(c Config) *Gate {
	g := &Gate{Config: c, guesses: guesses.New(c.Now), crossing: http.NewCrossOriginProtection()}
	g.logins.now, g.logins.byID = c.Now, make(map[[sha256.Size]byte]*login)
	return g
}

// Identify returns the sender of a request, or a Problem: for wrong credentials, not without any.
func (g *Gate) Identify(r *http.Request) (Caller, error) {
	c := Caller{TLS: r.TLS != nil, Local: httplocal.OnThisMachine(r)}
	c.Page = (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.Header.Get("Gozkd-Page") != ""
	address := httplocal.Address(r.RemoteAddr) // otherwise the address is invalid, and no proxy
	if c.Host = "127.0.0.1"; address.IsValid() {
		c.Host = address.String()
	}
	switch scheme, credentials, given := strings.Cut(r.Header.Get("Authorization"), " "); {
	case g.ofProxy(address):
		return g.proxied(r, c)
	case given:
		return g.authorized(c, strings.ToLower(scheme), strings.TrimSpace(credentials))
	}
	if cookie, err := r.Cookie(g.cookieName(r)); err == nil {
		if ids, ok := g.logins.get(cookie.Value); ok {
			c.IDs, c.Cookie = ids, cookie.Value
			return c, g.assign(&c)
		}
	}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		ids, err := g.Realm.IdentifyCertificate(r.TLS.PeerCertificates[0])
		if err != nil {
			return c, answer.Errorf(http.StatusUnauthorized, "the certificate names nobody: %v", err)
		}
		c.IDs = ids
		if g.Administrator != nil && g.Administrator(r.TLS.PeerCertificates[0]) {
			c.Role = webrole.Admin
			return c, nil
		}
		return c, g.assign(&c)
	}
	if c.Local {
		c.Role = g.Anonymous
	}
	return c, nil
}

// authorized identifies a caller by the header Authorization.
func (g *Gate) authorized(c Caller, scheme, credentials string) (Caller, error) {
	switch scheme {
	case "digest":
	case "basic":
		if !c.Local && !c.TLS {
			return c, answer.Errorf(http.StatusUnauthorized, "a password must not be sent without encryption: use HTTPS (admin.portUnification=true), or a program on this machine")
		}
		text, err := base64.StdEncoding.DecodeString(credentials)
		if err != nil {
			return c, answer.Errorf(http.StatusUnauthorized, "Authorization: Basic needs base64 of USER:PASSWORD")
		}
		credentials = string(text)
	default:
		return c, answer.Errorf(http.StatusUnauthorized, "the scheme of Authorization is unknown: use Basic, or digest USER:PASSWORD")
	}
	user, password, ok := strings.Cut(credentials, ":")
	if !ok {
		return c, answer.Errorf(http.StatusUnauthorized, "Authorization must have USER:PASSWORD")
	}
	schemes := []string{"digest", "sasl"}
	if scheme == "digest" {
		schemes = schemes[:1]
	}
	err := g.prove(&c, schemes, user, password)
	return c, err
}

// prove identifies a caller by a password, in the first of some schemes that gives a role.
func (g *Gate) prove(c *Caller, schemes []string, user, password string) error {
	if len(user) > guesses.MaxText || len(password) > guesses.MaxText {
		return answer.Errorf(http.StatusUnauthorized, "a name or password is longer than %d bytes", guesses.MaxText)
	}
	end, wait, ok := g.guesses.Begin(c.Host, user, password)
	if !ok {
		return answer.Busy(int(wait.Seconds())+1, "too many failed logins: try again in %v", wait.Round(time.Second)+time.Second)
	}
	right := false
	defer func() { end(right) }()
	for _, scheme := range schemes {
		ids, err := g.Realm.Identify(scheme, user, password)
		if err != nil {
			continue
		}
		if role := g.roleOf(ids); role > webrole.None {
			c.IDs, c.Role, right = ids, role, true
			return nil
		}
	}
	g.audit(c, user, "web login", proto.ErrAuthFailed)
	return answer.Errorf(http.StatusUnauthorized, "the name or the password is wrong, or gozkd.web.roles has no role for this user")
}

func (g *Gate) ofProxy(address netip.Addr) bool {
	return g.ProxyHeader != "" && slices.ContainsFunc(g.Proxies, func(p netip.Prefix) bool { return p.Contains(address) })
}

// proxied identifies a caller of a trusted proxy.
func (g *Gate) proxied(r *http.Request, c Caller) (Caller, error) {
	c.Local = false
	_, seen := httplocal.ForwardedFor(r)
	if last := httplocal.Address(seen); last.IsValid() {
		c.Host = last.String()
	}
	users := r.Header.Values(g.ProxyHeader)
	if len(users) != 1 || users[0] == "" || len(users[0]) > guesses.MaxText {
		return c, answer.Errorf(http.StatusUnauthorized, "the proxy has not named a user in the header %s", g.ProxyHeader)
	}
	c.IDs = g.Realm.IdentifySASL(users[0])
	return c, g.assign(&c)
}

func (g *Gate) assign(c *Caller) error {
	if c.Role = g.roleOf(c.IDs); c.Role == webrole.None {
		return answer.Errorf(http.StatusForbidden, "%s has no role: add read=%[1]s, write=%[1]s or admin=%[1]s to gozkd.web.roles", c.IDs[0].Shown())
	}
	return nil
}

func (g *Gate) roleOf(ids []proto.ID) (role webrole.Role) {
	if slices.ContainsFunc(ids, func(id proto.ID) bool { return id.Scheme == "super" }) {
		return webrole.Admin
	}
	for _, id := range ids {
		role = max(role, g.Roles[id.Scheme+":"+id.ID])
	}
	return role
}

// LoginPossible reports whether somebody could log in with a password.
func (g *Gate) LoginPossible() bool { return len(g.Roles) > 0 || g.Realm.HasSuper() }

// Remedy says how a caller could get a role.
func (g *Gate) Remedy(c *Caller, role webrole.Role) string {
	switch {
	case c.Local && c.Anonymous() && g.Anonymous < role:
		return "log in as a user with the role " + role.String() + " in gozkd.web.roles, or set gozkd.web=write for callers on this machine"
	case !g.LoginPossible():
		return "callers from other machines must log in, and nobody can: set gozkd.web.roles (for example admin=sasl:alice), or DigestAuthenticationProvider.superDigest"
	case c.Anonymous():
		return "log in as a user with the role " + role.String() + " in gozkd.web.roles, or as the superuser"
	}
	return "the role of " + c.IDs[0].Shown() + " is " + c.Role.String() + ": gozkd.web.roles must say " + role.String() + "=" + c.IDs[0].Shown()
}

func (g *Gate) audit(c *Caller, user, detail string, code proto.ErrCode) {
	ids := c.All()
	if code != proto.OK {
		ids = append(ids, proto.ID{Scheme: "claimed", ID: user})
	}
	g.Audit(audit.Event{
		Operation: audit.Authenticate, Result: audit.ResultOf(code), Err: code, IDs: ids,
		Client: net.JoinHostPort(c.Host, "0"), Origin: Origin, TLS: c.TLS, Detail: detail,
	})
}
