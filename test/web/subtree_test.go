package web

import (
	"fmt"
	"testing"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web"
)

// A subtree that changed since the dialog showed it is not deleted.
func TestDelete_ChangedSinceShown(t *testing.T) {
	x := open(t, server.Config{}, web.Options{Anonymous: web.Write})
	zk := x.connect()
	x.fill(map[string]string{"/app/a": "1", "/app/b": ""})
	for what, change := range map[string]func() error{
		"created": func() error {
			x.create(zk, "/app/new", "precious", client.CreateOptions{})
			return nil
		},
		"changed": func() error {
			_, err := zk.Set(t.Context(), "/app/a", []byte("precious"), -1)
			return err
		},
	} {
		b := x.visit(t, "#/z/app")
		b.see(".badges", "children")
		b.press("d")
		b.see("dialog pre", "/app/b")
		if err := change(); err != nil {
			t.Fatal(err)
		}
		b.deleteAll("/app", "dialog .dialog-error", "Nothing was deleted")
		b.see("dialog pre", "/app/a") // what it shows now
		if _, stat, err := zk.Get(t.Context(), "/app/a", false); err != nil {
			t.Errorf("%s: %v, %v", what, stat, err)
		}
	}
	b := x.visit(t, "#/z/app")
	b.see(".badges", "3 children")
	b.press("d")
	b.see("dialog pre", "/app/new")
	b.deleteAll("/app", ".toast", "Deleted 4 znodes")
}

// A subtree is copied and moved, but not over another one, into itself, or away from live clients.
func TestCopy(t *testing.T) {
	x, zk, b := begin(t, web.Write, map[string]string{"/app/a/b": "one", "/other": ""}, "#/z/app")
	say := func(to string, move bool, says string) {
		t.Helper()
		b.see(".crumbs", "app")
		b.see("aside", "cdrwa")
		b.press("m")
		b.see("dialog", "znodes, ")
		b.fill("input", "To", to)
		if move {
			b.click("dialog label", "Move")
		}
		b.click("dialog button", "=Copy")
		b.see("dialog .dialog-error, .toast", says)
	}
	for to, says := range map[string]string{"/app/a/c": "outside of /app", "/other": "exist"} {
		say(to, false, says)
		b.press("Escape")
		b.closed()
	}
	say("/copy", false, "3 znodes copied to /copy")
	b.until("location.hash === '#/z/copy'")
	b.gotoHash("#/z/app")
	x.create(zk, "/app/live", "", client.CreateOptions{Ephemeral: true})
	say("/moved", true, "1 ephemeral znode of a client")
	b.press("Escape")
	b.closed()
	if err := zk.Delete(t.Context(), "/app/live", -1); err != nil {
		t.Fatal(err)
	}
	say("/moved", true, "3 znodes moved to /moved")
	b.until("location.hash === '#/z/moved'")
	b.gone(".tree .tree-name", "app")
	for _, root := range []string{"/copy", "/moved"} {
		if got := x.text(zk, root+"/a/b"); got != "one" {
			t.Errorf("%s: %q", root, got)
		}
	}
	if _, ok, err := zk.Exists(t.Context(), "/app", false); ok || err != nil {
		t.Errorf("the original exists: %v, %v", ok, err)
	}
	// Changed after it was counted: the original stays.
	b.press("m")
	b.see("dialog", "3 znodes, ")
	if _, err := zk.Set(t.Context(), "/moved/a/b", []byte("two"), -1); err != nil {
		t.Fatal(err)
	}
	b.fill("input", "To", "/again")
	b.click("dialog label", "Move")
	b.click("dialog button", "=Copy")
	b.see("dialog .dialog-error", "copied to /again, but the original stays")
	if got := x.text(zk, "/again/a/b") + x.text(zk, "/moved/a/b"); got != "twotwo" {
		t.Errorf("%q", got)
	}
}

// A large subtree goes in rounds, which a person can stop; the window then shows what is left.
func TestDelete_Rounds(t *testing.T) {
	znodes := map[string]string{}
	for i := range 900 {
		znodes[fmt.Sprintf("/app/n-%03d", i)] = ""
	}
	_, zk, b := begin(t, web.Write, znodes, "#/z/app")
	b.see(".badges", "900 children")
	// Rounds of 200 znodes, as if the subtree had 100,000 in each. The second one waits.
	b.eval(`{ const real = fetch; window.rounds = 0; window.fetch = async (u, o) => {
		if (!String(u).includes('/ui/api/delete')) { return real(u, o); }
		if (++rounds === 2) { await new Promise((go, fail) => { window.go = go; o.signal.addEventListener('abort', () => fail(o.signal.reason)); }); }
		return real(u, {...o, body: JSON.stringify({...JSON.parse(o.body), limit: 200})}); }; null }`, nil)
	b.press("d")
	b.see("dialog", "901 znodes")
	b.fill("input", "Type the path to confirm", "/app")
	b.click("button", "Delete all")
	b.see("dialog [role=status]", "199 znodes deleted") // the root has children left
	b.click("dialog button", "=Stop")
	b.see("dialog .dialog-error", "Stopped. 199 znodes were deleted")
	b.see("dialog", "702 znodes")
	if names, _, err := zk.Children(t.Context(), "/app", false); err != nil || len(names) != 701 {
		t.Errorf("%d children are left, %v", len(names), err)
	}
	b.click("button", "Delete all")
	b.see(".toast", "Deleted 702 znodes")
	if rounds := ask[int](b, "rounds"); rounds != 6 {
		t.Errorf("%d rounds", rounds)
	}
}
