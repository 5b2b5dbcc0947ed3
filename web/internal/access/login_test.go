package access

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/audit"
	"github.com/gozkd/gozkd/internal/webrole"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/web/internal/answer"
)

// realm is a Realm whose users have the password right.
type realm struct{}

func (realm) Identify(scheme, user, password string) ([]proto.ID, error) {
	if password != "right" {
		return nil, errors.New("wrong")
	}
	return []proto.ID{{Scheme: scheme, ID: user}}, nil
}

func (realm) IdentifySASL(id string) []proto.ID { return []proto.ID{{Scheme: "sasl", ID: id}} }

func (realm) IdentifyCertificate(cert *x509.Certificate) ([]proto.ID, error) {
	return []proto.ID{{Scheme: "x509", ID: cert.Subject.CommonName}}, nil
}

func (realm) HasSuper() bool { return false }

// gate returns a Gate, and its clock.
func gate() (*Gate, *time.Time) {
	now := time.Unix(1_000_000, 0)
	return New(Config{
		Realm: realm{}, Audit: func(audit.Event) {}, Roles: map[string]webrole.Role{"sasl:ann": webrole.Read, "x509:ann": webrole.Write}, Now: func() time.Time { return now },
	}), &now
}

// from returns a request by HTTPS.
func from(host string, cookies ...*http.Cookie) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "https://zk.example.org/ui/api/login", nil)
	r.RemoteAddr = host + ":1"
	for _, c := range cookies {
		r.AddCookie(c)
	}
	return r
}

func logIn(t *testing.T, g *Gate, r *http.Request, password string) (*http.Cookie, error) {
	t.Helper()
	w := httptest.NewRecorder()
	if _, err := g.Login(w, r, "sasl", "ann", password); err != nil {
		return nil, err
	}
	return w.Result().Cookies()[0], nil
}

func mustLogin(t *testing.T, g *Gate, r *http.Request) *http.Cookie {
	t.Helper()
	c, err := logIn(t, g, r, "right")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func roleWith(t *testing.T, g *Gate, c *http.Cookie) webrole.Role {
	t.Helper()
	who, err := g.Identify(from("192.0.2.1", c))
	if err != nil {
		t.Fatal(err)
	}
	return who.Role
}

// By HTTPS, a cookie is Secure and bound to the host. Its value is the server's own choice.
func TestCookie_Secure(t *testing.T) {
	g, _ := gate()
	planted := &http.Cookie{Name: "__Host-gozkd-0", Value: "planted"}
	c := mustLogin(t, g, from("192.0.2.1", planted))
	if !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || c.Name != planted.Name || c.Value == planted.Value {
		t.Errorf("%+v", c)
	}
	if roleWith(t, g, c) != webrole.Read || roleWith(t, g, planted) != webrole.None {
		t.Error("the planted cookie counts")
	}
	again := mustLogin(t, g, from("192.0.2.1", c))
	if roleWith(t, g, c) != webrole.None || roleWith(t, g, again) != webrole.Read {
		t.Error("a cookie outlives the next login")
	}
}

func TestCookie_Expires(t *testing.T) {
	g, now := gate()
	c := mustLogin(t, g, from("192.0.2.1"))
	for range 12 { // used every 59 minutes
		*now = now.Add(59 * time.Minute)
		if roleWith(t, g, c) != webrole.Read {
			t.Fatalf("over at %v", now)
		}
	}
	*now = now.Add(13 * time.Minute)
	if roleWith(t, g, c) != webrole.None {
		t.Error("a login lasts for more than 12 hours")
	}
	c = mustLogin(t, g, from("192.0.2.1"))
	*now = now.Add(time.Hour + time.Second)
	if roleWith(t, g, c) != webrole.None {
		t.Error("an idle login lasts for more than an hour")
	}
}

// A user has 32 logins, the latest used ones.
func TestCookie_Bound(t *testing.T) {
	g, now := gate()
	first := mustLogin(t, g, from("192.0.2.1"))
	second := mustLogin(t, g, from("192.0.2.1"))
	*now = now.Add(time.Second)
	roleWith(t, g, first)
	for range maxLoginsEach - 1 {
		mustLogin(t, g, from("192.0.2.1"))
	}
	if roleWith(t, g, first) != webrole.Read || roleWith(t, g, second) != webrole.None || len(g.logins.byID) != maxLoginsEach {
		t.Errorf("%d logins", len(g.logins.byID))
	}
}

// Guesses are bounded per network and per user. A user whose name strangers guess with can still
// log in from where the user did before.
func TestGuesses(t *testing.T) {
	g, now := gate()
	mustLogin(t, g, from("192.0.2.1"))
	wrong := func(host string) int {
		t.Helper()
		_, err := logIn(t, g, from(host), "wrong")
		var p *answer.Problem
		if !errors.As(err, &p) {
			t.Fatalf("logged in with a wrong password: %v", err)
		}
		return p.Status
	}
	for i := range 10 {
		if wrong(fmt.Sprintf("[2001:db8::%d]", i)) != http.StatusUnauthorized {
			t.Fatalf("guess %d is not tried", i)
		}
	}
	if wrong("[2001:db8::ffff]") != http.StatusTooManyRequests {
		t.Error("an IPv6 network has as many guesses as addresses")
	}
	tried := 0
	for i := range 100 {
		if wrong(fmt.Sprintf("198.51.100.%d", i)) == http.StatusUnauthorized {
			tried++
		}
	}
	if tried != 10 { // 20 in all
		t.Errorf("%d guesses from other networks", tried)
	}
	if _, err := logIn(t, g, from("203.0.113.1"), "right"); err == nil {
		t.Error("an unknown network is not throttled")
	}
	mustLogin(t, g, from("192.0.2.1"))
	*now = now.Add(10 * time.Second)
	if _, err := logIn(t, g, from("203.0.113.1"), "right"); err != nil {
		t.Error(err)
	}
	for range 10 {
		wrong("192.0.2.1")
	}
	if wrong("192.0.2.1") != http.StatusTooManyRequests {
		t.Error("a known network is not throttled")
	}
	mustLogin(t, g, from("192.0.2.1")) // what proved right is no guess
	for range 20 {
		wrong("192.0.2.1")
	}
	if _, err := logIn(t, g, from("192.0.2.1"), "right"); err == nil {
		t.Error("any number of guesses finds out which password is right")
	}
	*now = now.Add(time.Hour)
	mustLogin(t, g, from("192.0.2.1"))
}

// Failures with another name do not lock out a caller with a right password, nor does the memory of
// it outlive the password.
func TestGuesses_ProvedRight(t *testing.T) {
	g, now := gate()
	ask := func(user, password string) int {
		r := from("192.0.2.1")
		r.SetBasicAuth(user, password)
		_, err := g.Identify(r)
		if p, ok := errors.AsType[*answer.Problem](err); ok {
			return p.Status
		}
		return http.StatusOK
	}
	if s := ask("ann", "right"); s != http.StatusOK {
		t.Fatal(s)
	}
	for ask("eve", "wrong") != http.StatusTooManyRequests {
	}
	if s := ask("ann", "right"); s != http.StatusOK {
		t.Errorf("the right password is answered with %d after the failures of another user", s)
	}
	g.Realm = refusing{}
	if s := ask("ann", "right"); s != http.StatusUnauthorized {
		t.Errorf("%d after the password was changed", s)
	}
	if s := ask("ann", "right"); s != http.StatusTooManyRequests {
		t.Errorf("%d: the old password is still known as right", s)
	}
	g.Realm = realm{}
	*now = now.Add(time.Hour + time.Second)
	if s := ask("ann", "right"); s != http.StatusOK {
		t.Error(s)
	}
}

// The guesses at those who logged in from a network have a bound for all of them, too.
func TestGuesses_ManyUsers(t *testing.T) {
	g, _ := gate()
	ask := func(i int, password string) error {
		r := from("192.0.2.1")
		r.SetBasicAuth(fmt.Sprint("user", i), password)
		_, err := g.Identify(r)
		return err
	}
	const users = 10
	for i := range users {
		g.Roles[fmt.Sprint("sasl:user", i)] = webrole.Read
		if err := ask(i, "right"); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 * users {
		if ask(i%users, "wrong") == nil {
			t.Fatal("a wrong password is right")
		}
	}
	for i := range users {
		if ask(i, "right") == nil {
			t.Errorf("50 guesses leave the password of user %d to be found", i)
		}
	}
}

// refusing knows no password.
type refusing struct{ realm }

func (refusing) Identify(string, string, string) ([]proto.ID, error) { return nil, errors.New("wrong") }

// slowRealm is a realm that compares a password when it may.
type slowRealm struct {
	realm
	comparing chan string
	may       chan bool
}

func (s *slowRealm) Identify(scheme, user, password string) ([]proto.ID, error) {
	s.comparing <- password
	<-s.may
	return s.realm.Identify(scheme, user, password)
}

// Guesses that are compared at the same time count like others. Right passwords have no such bound.
func TestGuesses_AtTheSameTime(t *testing.T) {
	for _, password := range []string{"wrong", "right"} {
		t.Run(password, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, _ := gate()
				s := &slowRealm{comparing: make(chan string, 100), may: make(chan bool)}
				g.Realm = s
				var answered sync.WaitGroup
				for range 30 {
					answered.Go(func() { _, _ = logIn(t, g, from("192.0.2.1"), password) })
				}
				synctest.Wait()
				if n := len(s.comparing); n != 10 {
					t.Errorf("%d passwords are compared at the same time", n)
				}
				close(s.may)
				answered.Wait()
				if n := len(s.comparing); n != map[string]int{"wrong": 10, "right": 30}[password] {
					t.Errorf("%d passwords were compared", n)
				}
			})
		})
	}
}

// A certificate that was verified is an identity; one that the client merely sent is none.
func TestIdentify_Certificate(t *testing.T) {
	g, _ := gate()
	cert := new(x509.Certificate)
	cert.Subject.CommonName = "ann"
	r := from("192.0.2.1")
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}
	if c, err := g.Identify(r); err != nil || c.Role != webrole.None {
		t.Errorf("%+v, %v", c, err)
	}
	r.TLS.VerifiedChains = [][]*x509.Certificate{{cert}}
	if c, err := g.Identify(r); err != nil || c.Role != webrole.Write || c.IDs[0].Scheme != "x509" {
		t.Errorf("%+v, %v", c, err)
	}
	cert.Subject.CommonName = "eve"
	if c, err := g.Identify(r); err == nil || c.Role != webrole.None {
		t.Errorf("%+v", c)
	}
}
