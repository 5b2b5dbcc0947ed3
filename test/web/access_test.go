package web

import (
	"crypto/sha1"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web"
)

func roles(t *testing.T, list string) map[string]web.Role {
	t.Helper()
	r, err := web.ParseRoles(list)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// digest returns a user's identity as in an ACL.
func digest(user, password string) string {
	hash := sha1.Sum([]byte(user + ":" + password))
	return "digest:" + user + ":" + base64.StdEncoding.EncodeToString(hash[:])
}

func login(b *tab, user, password string) {
	b.t.Helper()
	b.fill("input", "User", user)
	b.fill("input", "Password", password)
	b.press("Enter")
}

// Without an anonymous role everything needs a login; each role opens more, and the ACLs hold.
func TestLogin(t *testing.T) {
	x := open(t, server.Config{}, web.Options{Roles: roles(t, "read="+digest("rita", "one")+"; admin="+digest("boss", "two"))})
	zk := x.connect(client.Auth{Scheme: "digest", Credential: []byte("boss:two")})
	x.fill(map[string]string{"/open": "for all"})
	x.create(zk, "/mine", "of the boss", client.CreateOptions{ACL: []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "auth"}}}})

	b := x.visit(t, "#/z/mine")
	b.see("main h1", "Log in")
	b.gone("main", "of the boss")
	login(b, "rita", "wrong")
	b.see("main [role=alert]", "")
	b.gone("main", "of the boss")
	login(b, "rita", "one")
	b.see("#user", "read-only")
	b.see("main [role=alert]", "/mine") // the ACL refuses
	b.gone("main", "of the boss")
	b.gotoHash("#/z/open")
	b.see(".data", "for all")
	b.until("person.all('button', '=Edit').every((e) => e.disabled)")
	b.gotoHash("#/sessions")
	b.until("person.all('button', '=End').length > 0 && person.all('button', '=End').every((e) => e.disabled)")
	// The cookie is not for scripts, and lives on after a reload.
	if cookie := ask[string](b, "document.cookie"); cookie != "" {
		t.Errorf("a script reads the cookie %q", cookie)
	}
	b.open("#/z/mine")
	b.see("#user", "read-only")
	b.click("button", "Log out")
	b.see("main h1", "Log in")
	b.open("#/z/open")
	b.see("main h1", "Log in")
	b.gone("main", "for all")
	login(b, "boss", "two")
	b.see("#user", "admin")
	b.see(".data", "for all")
	b.gotoHash("#/z/mine")
	b.see(".data", "of the boss")
	b.press("e")
	b.fill("textarea", "Data", "changed by the boss")
	b.click("button", "Save")
	b.see(".data", "changed by the boss")
	if got := x.text(zk, "/mine"); got != "changed by the boss" {
		t.Errorf("%q", got)
	}
	b.gotoHash("#/sessions")
	b.until("person.all('button', '=End').some((e) => !e.disabled)")
}

// A caller on this machine who may read logs in for more, in a dialog.
func TestLogin_Dialog(t *testing.T) {
	x := open(t, server.Config{}, web.Options{Anonymous: web.Read, Roles: roles(t, "write="+digest("boss", "two"))})
	x.fill(map[string]string{"/a": "x"})
	b := x.visit(t, "#/z/a")
	b.see("#user", "read-only")
	b.click("button", "Log in")
	login(b, "nobody", "wrong")
	b.see("dialog [role=alert]", "")
	if text := ask[string](b, "person.text('dialog [role=alert]')"); !strings.Contains(text, "role") {
		t.Errorf("the refusal says %q", text)
	}
	login(b, "boss", "two")
	b.closed()
	b.see("#user", "write")
	b.until("person.all('button', '=Edit').some((e) => !e.disabled)")
	b.until("location.hash === '#/z/a'")
}

// The heartbeats of a person's ephemeral znodes end with the login, and ask for none. The next
// login has a session of its own.
func TestLogin_Ephemerals(t *testing.T) {
	x := open(t, server.Config{}, web.Options{Anonymous: web.Read, Roles: roles(t, "write="+digest("boss", "two"))})
	x.fill(map[string]string{"/a": "x"})
	b := x.visit(t, "#/z/a")
	b.eval("const real = setInterval; window.setInterval = (f, ms) => real(f, ms === 9000 ? 50 : ms); null", nil)
	for _, name := range []string{"one", "two"} {
		b.gotoHash("#/z/a")
		b.click("button", "Log in")
		login(b, "boss", "two")
		b.see("#user", "write")
		b.click("button", "=New child")
		b.fill("input", "Name", name)
		b.choose("Mode", "ephemeral")
		b.click("button", "Create")
		b.see(".toast", "Created /a/"+name)
		b.until("!document.querySelector('dialog')")
		b.asked("")
		b.click("button", "Log out")
		b.see("#user", "read-only")
		b.asked("")
		b.eval("new Promise((done) => setTimeout(done, 500))", nil)
		if b.count("dialog", "") > 0 {
			t.Fatal("a dialog asks for a login")
		}
		if n := len(b.asked("sessions/v1/")); n > 1 {
			t.Errorf("%d heartbeats of a session that nobody is logged in for", n)
		}
	}
}
