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

	"github.com/gozkd/gozkd/internal/fair"
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

// guesses bounds failed logins: per network, per user, and in all. The failures of others do not
// lock out a user with a recent login from the same network. Nor do failures with other names lock
// out who sends from there what proved right in the last hour. So that this tells nobody which
// password is right, it has a bound of its own: on guesses for that user from that network.
//
// A guess takes its tokens before the password is compared, and a right one gives them back.
// Otherwise guesses that are compared at the same time would all use the same token.
type guesses struct {
	hosts, users, all, known *fair.Rate
	right                    *fair.Rate // a proof that must wait was right within the last hour
	pairs, near              *fair.Rate // guesses of a user who logged in from a network; of all of them
	salt                     [32]byte   // of proofs
	now                      func() time.Time

	mu        sync.Mutex
	compared  sync.Cond      // after each comparison; its lock is mu
	comparing map[string]int // comparisons under way, by network
}

// maxGuessers is how many networks, users and pairs of both are remembered.
const maxGuessers = 4096

func (g *guesses) init(now func() time.Time) {
	g.now = now
	g.hosts = fair.NewRate(10*time.Second, 10, maxGuessers)
	g.users = fair.NewRate(5*time.Second, 20, maxGuessers)
	g.all = fair.NewRate(time.Second/20, 200, 1)
	g.right = fair.NewRate(time.Hour, 1, maxGuessers)
	g.pairs, g.near = fair.NewRate(5*time.Second, 20, maxGuessers), fair.NewRate(5*time.Second, 40, maxGuessers)
	_, _ = rand.Read(g.salt[:])
	g.known = fair.NewRate(30*24*time.Hour, 1, maxGuessers) // a pair that must wait has logged in
	g.compared.L, g.comparing = &g.mu, make(map[string]int)
}

// proof is a key for a name and a password from a network, from which nobody gets them.
func (g *guesses) proof(host, user, password string) string {
	sum := sha256.Sum256(append(g.salt[:], pair(host, user)+"\x00"+password...))
	return string(sum[:])
}

// begin returns a function to call after the comparison of a password, or false and how long to
// wait. It waits for guesses of the same network that may be right and hold its tokens.
func (g *guesses) begin(host, user, password string) (end func(right bool), wait time.Duration, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	proof, guess := g.proof(host, user, password), func() {}
	from, who, spent := network(host), pair(host, user), time.Duration(1)
	if g.known.Wait(who, g.now()) > 0 { // made-up names do not push others out of pairs
		if spent, _ = g.near.Take(from, g.now()); spent == 0 {
			spent, _ = g.pairs.Take(who, g.now())
		}
	}
	if spent == 0 {
		guess = func() {
			g.pairs.Give(who, g.now())
			g.near.Give(from, g.now())
		}
		if g.right.Wait(proof, g.now()) > 0 {
			guess()
			return func(right bool) {
				if !right { // the password was changed
					g.right.Give(proof, g.now())
				}
			}, 0, true
		}
	}
	for {
		giveBack, wait, ok := g.take(host, user)
		if !ok {
			if g.comparing[from] == 0 {
				return nil, wait, false
			}
			g.compared.Wait()
			continue
		}
		g.comparing[from]++
		return func(right bool) {
			g.mu.Lock()
			defer g.mu.Unlock()
			if right {
				giveBack()
				guess()
				g.right.Take(proof, g.now())
				g.known.Take(who, g.now())
			}
			if g.comparing[from]--; g.comparing[from] == 0 {
				delete(g.comparing, from)
			}
			g.compared.Broadcast()
		}, 0, true
	}
}

// take takes the tokens of a guess, or none. A user known in the network needs only the network's.
func (g *guesses) take(host, user string) (giveBack func(), wait time.Duration, ok bool) {
	now := g.now()
	unknown := g.known.Wait(pair(host, user), now) == 0
	var taken []func()
	giveBack = func() {
		for _, give := range taken {
			give()
		}
	}
	for _, b := range []struct {
		rate   *fair.Rate
		key    string
		needed bool
	}{{g.hosts, network(host), true}, {g.users, user, unknown}, {g.all, "", unknown}} {
		switch wait, _ := b.rate.Take(b.key, now); {
		case wait == 0:
			taken = append(taken, func() { b.rate.Give(b.key, g.now()) })
		case b.needed:
			giveBack()
			return nil, wait, false
		}
	}
	return giveBack, 0, true
}

func pair(host, user string) string { return network(host) + " " + user }

// network returns the address whose guesses count together: for IPv6 a network of 64 bits.
func network(host string) string {
	a, err := netip.ParseAddr(host)
	if err != nil || a.Is4() {
		return host
	}
	p, _ := a.Prefix(64) // the error is for a wrong number of bits
	return p.String()
}
