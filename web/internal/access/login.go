package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/gozkd/gozkd/internal/webrole"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/web/internal/answer"
)

// Bounds on logins.
const (
	maxLogins     = 1024
	maxLoginsEach = 32 // of a user
	loginIdle     = time.Hour
	loginMax      = 12 * time.Hour
)

type logins struct {
	now func() time.Time

	mu sync.Mutex // guards byID
	// byID has the hash of a cookie as key, so that the time of a lookup reveals nothing about it.
	byID map[[sha256.Size]byte]*login
}

type login struct {
	ids         []proto.ID
	begun, used time.Time
}

func (l *login) over(now time.Time) bool {
	return now.Sub(l.used) > loginIdle || now.Sub(l.begun) > loginMax
}

func (l *logins) add(ids []proto.ID) (id string, err error) {
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails
	id = base64.RawURLEncoding.EncodeToString(random[:])
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	var oldest [sha256.Size]byte
	same := 0
	for key, other := range l.byID {
		switch {
		case other.over(now):
			delete(l.byID, key)
		case other.ids[0] == ids[0]:
			if same++; same == 1 || other.used.Before(l.byID[oldest].used) {
				oldest = key
			}
		}
	}
	switch {
	case same >= maxLoginsEach:
		delete(l.byID, oldest)
	case len(l.byID) >= maxLogins:
		return "", answer.Errorf(http.StatusServiceUnavailable, "there are already %d logins: log out elsewhere", maxLogins)
	}
	l.byID[sha256.Sum256([]byte(id))] = &login{ids, now, now}
	return id, nil
}

func (l *logins) get(id string) (ids []proto.ID, ok bool) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	key := sha256.Sum256([]byte(id))
	found := l.byID[key]
	if found == nil || found.over(now) {
		delete(l.byID, key)
		return nil, false
	}
	found.used = now
	return found.ids, true
}

// LoggedIn reports whether the login of a request lasts. Without a cookie, it has proved itself.
func (g *Gate) LoggedIn(c *Caller) bool {
	if c.Cookie == "" {
		return true
	}
	_, ok := g.logins.get(c.Cookie)
	return ok
}

// EndLogins ends all logins. The identities of a login were proved when it began.
func (g *Gate) EndLogins() {
	g.logins.mu.Lock()
	defer g.logins.mu.Unlock()
	clear(g.logins.byID)
}

func (l *logins) remove(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byID, sha256.Sum256([]byte(id)))
}

// Login logs a caller in by password, and sets the cookie. scheme is digest, sasl or "" for both.
func (g *Gate) Login(w http.ResponseWriter, r *http.Request, scheme, user, password string) (Caller, error) {
	c, err := g.Identify(r)
	if err != nil {
		c.IDs, c.Role = nil, webrole.None
	}
	if !c.Local && !c.TLS {
		return c, answer.Errorf(http.StatusUnauthorized, "a password must not be sent without encryption: use HTTPS (admin.portUnification=true), or a browser on this machine")
	}
	schemes := []string{scheme}
	switch scheme {
	case "digest", "sasl":
	case "":
		schemes = []string{"digest", "sasl"}
	default:
		return c, answer.Errorf(http.StatusBadRequest, "the scheme %q has no passwords: use digest or sasl", scheme)
	}
	if err := g.prove(&c, schemes, user, password); err != nil {
		return c, err
	}
	g.logins.remove(c.Cookie)
	if c.Cookie, err = g.logins.add(c.IDs); err != nil {
		return c, err
	}
	g.audit(&c, user, "web login", proto.OK)
	g.setCookie(w, r, c.Cookie, int(loginMax.Seconds()))
	return c, nil
}

// Logout ends the login that a request came with.
func (g *Gate) Logout(w http.ResponseWriter, r *http.Request) {
	if cookie, err := r.Cookie(g.cookieName(r)); err == nil {
		if ids, ok := g.logins.get(cookie.Value); ok {
			c, _ := g.Identify(r) // has the address in any case
			c.IDs = ids
			g.audit(&c, "", "web logout", proto.OK)
		}
		g.logins.remove(cookie.Value)
	}
	g.setCookie(w, r, "", -1)
}

func (g *Gate) setCookie(w http.ResponseWriter, r *http.Request, value string, age int) {
	http.SetCookie(w, &http.Cookie{
		Name: g.cookieName(r), Value: value, Path: "/", MaxAge: age,
		HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode,
	})
}

// cookieName has the port: browsers share cookies between ports, servers may share the host.
func (g *Gate) cookieName(r *http.Request) string {
	port := "0"
	if a, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		if p, err := netip.ParseAddrPort(a.String()); err == nil {
			_, port, _ = net.SplitHostPort(p.String())
		}
	}
	if r.TLS != nil {
		return "__Host-gozkd-" + port // browsers take such a cookie only from this host, by HTTPS
	}
	return "gozkd-" + port
}
