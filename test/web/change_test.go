package web

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web"
)

func TestEdit(t *testing.T) {
	x, zk, b := begin(t, web.Write, map[string]string{"/app/config": "one"}, "#/z/app/config")
	b.see(".znode", "one")
	b.click("button", "=Edit")
	b.see("dialog", "Saved only if the znode still has version 0")
	b.fill("textarea", "Data", "two")
	b.click("button", "Save")
	b.see(".toast", "Saved version 1")
	b.closed()
	b.see(".znode", "two")
	if got := x.text(zk, "/app/config"); got != "two" {
		t.Errorf("%q", got)
	}
	// Unsaved text is not lost by one Escape or click.
	b.press("e")
	b.see("dialog", "Edit /app/config")
	b.write("more")
	b.click("button", "Cancel")
	b.see("dialog", "not saved")
	b.click("button", "Cancel")
	b.closed()
	if got := x.text(zk, "/app/config"); got != "two" {
		t.Errorf("%q", got)
	}
}

// A znode that somebody else has changed is not overwritten: the dialog shows both versions.
func TestEdit_Conflict(t *testing.T) {
	for _, c := range []struct{ choice, want string }{
		{"Keep theirs", "alpha theirs"}, {"Overwrite with mine", "alpha mine"}, {"Edit mine", "alpha mine again"},
	} {
		t.Run(c.choice, func(t *testing.T) {
			x, zk, b := begin(t, web.Write, map[string]string{"/c": "alpha base"}, "#/z/c")
			b.see(".znode", "alpha base")
			b.press("e")
			b.fill("textarea", "Data", "alpha mine")
			if _, err := zk.Set(t.Context(), "/c", []byte("alpha theirs"), 0); err != nil {
				t.Fatal(err)
			}
			b.click("button", "Save")
			b.see("dialog h2", "Somebody else changed /c")
			b.see("dialog .removed", "alpha theirs")
			b.see("dialog .added", "alpha mine")
			b.click("button", "What they changed")
			b.see("dialog .added", "alpha theirs")
			b.see("dialog .removed", "alpha base")
			if got := x.text(zk, "/c"); got != "alpha theirs" {
				t.Fatalf("%q before the person has chosen", got)
			}
			b.click("button", c.choice)
			if c.choice == "Edit mine" {
				b.see("dialog", "still has version 1")
				b.fill("textarea", "Data", "alpha mine again")
				b.click("button", "Save")
			}
			b.closed()
			b.see(".znode", c.want)
			if got := x.text(zk, "/c"); got != c.want {
				t.Errorf("%q", got)
			}
		})
	}
}

func TestCreate(t *testing.T) {
	x, zk, b := begin(t, web.Write, map[string]string{"/app": ""}, "#/z/app")
	for mode, badge := range map[string]string{"persistent": "version 0", "ephemeral": "ephemeral · session", "container": "container", "ttl": "TTL 1 h"} {
		b.gotoHash("#/z/app")
		b.click("button", "=New child")
		b.fill("input", "Name", "a "+mode)
		b.choose("Mode", mode)
		b.fill("textarea", "Data", "data of "+mode)
		b.click("button", "Create")
		b.see(".toast", "Created /app/a "+mode)
		b.until("location.hash === '#/z/app/a%20" + mode + "'")
		b.see(".znode", "data of "+mode)
		b.see(".badges", badge)
		if got := x.text(zk, "/app/a "+mode); got != "data of "+mode {
			t.Errorf("%s: %q", mode, got)
		}
	}
	b.gotoHash("#/z/app")
	b.click("button", "=New child")
	b.click("button", "Create")
	b.see("dialog", "Type a name")
	b.fill("input", "Name", "n-")
	b.click("label", "Append a sequence number")
	b.click("button", "Create")
	b.see(".toast", "Created /app/n-0000000004")
	b.until("location.hash === '#/z/app/n-0000000004'") // else the page goes there after the next line
	// A name that exists.
	b.gotoHash("#/z/app")
	b.until("person.all('.tree-row', 'app').some((row) => row.querySelector('.tree-count')?.textContent === '5')")
	b.click("button", "=New child")
	b.fill("input", "Name", "a ttl")
	b.press("Enter")
	b.see("dialog", "exist")
	b.press("Escape")
	b.closed()
}

// A click counts if the page is drawn anew between the press and the release, and once if it is
// not.
func TestClick_Redrawn(t *testing.T) {
	_, zk, b := begin(t, web.Write, map[string]string{"/app": ""}, "#/z/app")
	b.follows("/app?watch=")
	redrawn := func(css, name, data string) {
		t.Helper()
		px, py := b.point(css, name)
		b.mouse(px, py, "mouseMoved", "mousePressed")
		b.eval(fmt.Sprintf("window.before = person.all(%s, %s)[0]; null", quote(css), quote(name)), nil)
		if _, err := zk.Set(t.Context(), "/app", []byte(data), -1); err != nil {
			t.Fatal(err)
		}
		b.until("!before.isConnected && person.has('.data', " + quote(data) + ")")
		b.mouse(px, py, "mouseReleased")
	}
	redrawn("button", "=New child", "changed")
	b.see("dialog h2", "New child of /app")
	b.press("Escape")
	b.closed()
	b.click("button", "=Follow")
	b.until("person.all('button[aria-pressed=true]', '=Follow').length === 1")
	b.see(".tail", "Waiting for changes")
	redrawn(".links a", "=History", "again")
	b.until("location.hash === '#/history?path=%2Fapp'")
}

// An action that was asked for while the znode is read is not lost when the znode changes
// meanwhile.
func TestAction_ChangedWhileRead(t *testing.T) {
	_, zk, b := begin(t, web.Write, map[string]string{"/app": "", "/app/a": "one"}, "#/z/app")
	b.follows("/app?watch=")
	// Answers are held back, and the pause before the page reads again is over at once.
	b.eval(`window.held = []; window.realFetch = fetch; window.realTimeout = setTimeout;
		window.fetch = (...args) => held ? new Promise((done) => held.push(() => done(realFetch(...args)))) : realFetch(...args);
		window.setTimeout = (f, ms) => ms === 250 ? (f(), 1) : realTimeout(f, ms); null`, nil)
	b.gotoHash("#/z/app/a?follow=1")
	b.follows("/app/a?watch=recursive")
	b.press("e")
	if _, err := zk.Set(t.Context(), "/app/a", []byte("two"), -1); err != nil {
		t.Fatal(err)
	}
	b.see(".tail", "changed /app/a")
	b.eval("const all = held; held = null; all.forEach((answer) => answer()); null", nil)
	b.see("dialog h2", "Edit /app/a")
}

func TestDelete(t *testing.T) {
	x := open(t, server.Config{}, web.Options{Anonymous: web.Write})
	zk := x.connect()
	x.fill(map[string]string{"/app/one": "1", "/app/deep/a/b": "", "/app/deep/c": ""})
	x.create(zk, "/app/deep/live", "", client.CreateOptions{Ephemeral: true})
	b := x.visit(t, "#/z/app/one")
	b.see(".znode", "1")
	b.press("d")
	b.see("dialog", "Version 0")
	// Changed meanwhile: not deleted.
	if _, err := zk.Set(t.Context(), "/app/one", []byte("2"), 0); err != nil {
		t.Fatal(err)
	}
	b.click("dialog button", "=Delete")
	b.see("dialog", "Somebody changed the znode")
	b.click("dialog button", "Cancel")
	b.closed()
	b.see(".znode", "version 1")
	b.press("d")
	b.see("dialog", "Version 1")
	b.click("dialog button", "=Delete")
	b.until("location.hash === '#/z/app'")
	b.gone(".tree", "one")

	// With everything below: the dialog shows what goes, and wants the path.
	b.gotoHash("#/z/app/deep")
	b.see("h2", "Stat")
	b.until("person.has('.crumbs', 'deep') && person.has('.badges', '3 children')")
	b.click("button", "=Delete")
	b.see("dialog", "5 znodes")
	b.see("dialog", "1 ephemeral of 1 session")
	b.see("dialog pre", "/app/deep/a/b")
	b.deleteAll("/app", "dialog", "Type the path /app/deep to confirm")
	b.deleteAll("/app/deep", ".toast", "Deleted 5 znodes")
	b.until("location.hash === '#/z/app'")
	if names, _, err := zk.Children(t.Context(), "/app", false); err != nil || len(names) != 0 {
		t.Errorf("%q, %v", names, err)
	}
}

// deleteAll confirms the deletion of a subtree by typing a path. The page must then say something.
func (b *tab) deleteAll(typed, where, says string) {
	b.t.Helper()
	b.fill("input", "Type the path to confirm", typed)
	b.click("button", "Delete all")
	b.see(where, says)
}

// deleteSelected confirms the deletion of n selected children.
func (b *tab) deleteSelected(n int, where, says string) {
	b.t.Helper()
	b.fill("input", fmt.Sprintf("Type %d to confirm", n), strconv.Itoa(n))
	b.click("dialog button", "=Delete")
	b.see(where, says)
}

// Selected children go in one dialog. One that somebody changed meanwhile stays, and all after it.
func TestDelete_Selected(t *testing.T) {
	_, zk, b := begin(t, web.Write, map[string]string{"/app/a": "1", "/app/b": "2", "/app/c/deep/er": "3", "/app/d": "4"}, "#/z/app")
	for _, name := range []string{"a", "b", "c"} {
		b.click("input[aria-label='Select "+name+"']", "")
	}
	b.see(".child-selection", "3 selected")
	if _, err := zk.Set(t.Context(), "/app/b", []byte("changed"), 0); err != nil {
		t.Fatal(err)
	}
	b.click(".child-selection button", "Delete")
	b.see("dialog", "1 has children")
	b.click("dialog button", "=Delete")
	b.see("dialog", "Type 3 to confirm.")
	b.deleteSelected(3, "dialog", "1 of 3 were deleted")
	b.click("dialog button", "Cancel")
	b.closed()
	b.gone(".child-list .child-name", "a")
	b.see(".child-selection", "2 selected")
	b.click("input[aria-label='Select b']", "") // its row shows the new version, the selection the old one
	b.click("input[aria-label='Select b']", "")
	b.click(".child-selection button", "Delete")
	b.deleteSelected(2, ".toast", "Deleted 2 znodes")
	b.gone(".child-list .child-name", "c")
	if names, _, err := zk.Children(t.Context(), "/app", false); err != nil || !slices.Equal(names, []string{"d"}) {
		t.Errorf("%q, %v", names, err)
	}
}

func TestACL(t *testing.T) {
	_, zk, b := begin(t, web.Write, map[string]string{"/app": ""}, "#/z/app")
	b.see("aside", "world:anyone cdrwa")
	b.press("a")
	b.see("dialog", "lock yourself out")
	b.click("dialog label", "=delete")
	b.click("button", "Add an entry")
	b.until("person.all('dialog .acl-row').length === 2")
	b.eval("person.all('dialog .acl-row')[1].querySelector('input').focus()", nil)
	b.write("ann:aGFzaA==")
	b.click("button", "Add an entry") // with the hash of a password
	b.until("person.all('dialog .acl-row').length === 3")
	b.eval("person.all('dialog .acl-row')[2].querySelector('input').focus()", nil)
	b.write("bob")
	b.eval("person.all('dialog .acl-row')[2].querySelector('[type=password]').focus()", nil)
	b.write("secret")
	b.press("Tab")
	b.until("person.all('dialog .acl-row')[2].querySelector('input').value.endsWith('=')")
	b.click("button", "Save")
	b.see(".toast", "Saved the ACL")
	b.see("aside", "digest:ann:aGFzaA==")
	b.see("aside", digest("bob", "secret"))
	acl, _, err := zk.GetACL(t.Context(), "/app")
	want := "[world:anyone digest:ann:aGFzaA== " + digest("bob", "secret") + "]"
	var got []string
	for _, a := range acl {
		got = append(got, a.ID.Scheme+":"+a.ID.ID)
	}
	if err != nil || fmt.Sprint(got) != want || acl[0].Perms&proto.PermDelete != 0 {
		t.Errorf("%v, %v, want %s", acl, err, want)
	}
}

// Without the role write nothing can be changed, and the page says why.
func TestReadOnly(t *testing.T) {
	_, _, b := begin(t, web.Read, map[string]string{"/app/a": "x"}, "#/z/app/a")
	b.see("#user", "read-only")
	b.see(".znode", "version 0")
	for _, name := range []string{"=Edit", "=New child", "=Delete", "Edit the ACL"} {
		if !ask[bool](b, "person.all('button', "+quote(name)+").every((e) => e.disabled && e.title.includes('may not'))") {
			t.Errorf("%s is not disabled with a reason", name)
		}
	}
	for _, key := range []string{"e", "n", "d", "a"} {
		b.press(key)
		b.see(".toast", "may not change znodes")
		b.click(".toast button", "Dismiss")
		b.gone(".toast", "")
	}
	b.gotoHash("#/transfer")
	b.see("main", "Importing needs the role write")
	b.gotoHash("#/sessions")
	b.see("main", "in the ensemble")
	b.until("person.all('button', 'End').length > 0")
	if !ask[bool](b, "person.all('button', '=End').every((e) => e.disabled)") {
		t.Error("a reader may end sessions")
	}
	for _, r := range b.asked("") {
		if method, _, _ := strings.Cut(r, " "); slices.Contains([]string{"PUT", "DELETE", "PATCH"}, method) {
			t.Errorf("a reader sent %s", r)
		}
	}
}

// What the ACLs do not allow is explained, for the data, the children and a write.
func TestPermissionDenied(t *testing.T) {
	x := open(t, server.Config{}, web.Options{Anonymous: web.Write})
	zk := x.connect(client.Auth{Scheme: "digest", Credential: []byte("ann:secret")})
	mine := []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "auth"}}}
	readable := append(mine, proto.ACL{Perms: proto.PermRead, ID: proto.ID{Scheme: "world", ID: "anyone"}})
	x.create(zk, "/secret", "hidden", client.CreateOptions{ACL: mine})
	x.create(zk, "/fixed", "shown", client.CreateOptions{ACL: readable})
	b := x.visit(t, "#/z/secret")
	b.see("main [role=alert]", "secret")
	b.see("main [role=alert]", "You are ip:127.0.0.1.")
	b.gone("main", "hidden")
	b.click("main [role=alert] button", "Log in")
	b.see("dialog h2", "Log in")
	b.press("Escape")
	b.closed()
	b.see(".tree", "secret")
	b.gotoHash("#/z/fixed")
	b.see(".znode", "shown")
	b.press("e")
	b.fill("textarea", "Data", "changed")
	b.click("button", "Save")
	b.see("dialog .dialog-error", "/fixed")
	b.press("Escape", "Escape", "Escape")
	b.closed()
	// The hash of ann is hidden from whoever may not change the ACL, and must not be saved as an x.
	b.see("aside", "digest:ann:x hash hidden")
	b.press("a")
	b.see(".toast", "hides the hashes")
	if got := x.text(zk, "/fixed"); got != "shown" {
		t.Errorf("%q", got)
	}
}

// A znode that was deleted and created since a person looked at it has the same versions, and is
// another.
func TestChange_CreatedAgain(t *testing.T) {
	x, zk, b := begin(t, web.Write, nil, "#/z/a")
	again := func() {
		t.Helper()
		if err := zk.Delete(t.Context(), "/a", -1); err != nil {
			t.Fatal(err)
		}
		x.create(zk, "/a", "theirs", client.CreateOptions{})
	}
	x.create(zk, "/a", "old", client.CreateOptions{})
	b.see(".data", "old")
	b.press("e")
	b.fill("textarea", "Data", "mine")
	again()
	b.click("button", "=Save")
	b.see("dialog h2", "Somebody else changed /a")
	b.see("dialog .removed", "theirs")
	b.click("button", "Keep theirs")
	b.closed()
	for key, action := range map[string]string{"d": "=Delete", "a": "=Save"} {
		b.see(".data", "theirs")
		b.press(key)
		b.see("dialog", "/a")
		again()
		b.click("dialog button", action)
		b.see("dialog", "Somebody")
		b.click("dialog button", "Cancel")
		b.closed()
	}
	if got := x.text(zk, "/a"); got != "theirs" {
		t.Errorf("%q", got)
	}
}

// Data that were not read cannot be edited: an empty field would replace them.
func TestEdit_Unread(t *testing.T) {
	x := open(t, server.Config{MaxBuffer: 4 << 20}, web.Options{Anonymous: web.Write})
	zk := x.connect(client.Auth{Scheme: "digest", Credential: []byte("ann:secret")})
	blind := []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "auth"}}, {Perms: proto.PermWrite | proto.PermAdmin, ID: proto.ID{Scheme: "world", ID: "anyone"}}}
	x.create(zk, "/blind", "hidden", client.CreateOptions{ACL: blind})
	x.fill(map[string]string{"/large": strings.Repeat("x", 1<<20+1<<19)})
	b := x.visit(t, "#/z/blind")
	for _, path := range []string{"/blind", "/large"} {
		b.gotoHash("#/z" + path)
		b.see(".crumbs", path[1:])
		b.see("aside", "anyone")
		b.until("person.all('button', '=Edit').every((e) => e.disabled)")
		b.press("e")
		b.see(".toast", "cannot be edited")
		b.click(".toast button", "Dismiss")
		b.gone(".toast", "")
	}
	if got := x.text(zk, "/blind"); got != "hidden" {
		t.Errorf("%q", got)
	}
}

// A file is saved as it is, whatever the line ends of the data that it replaces.
func TestEdit_File(t *testing.T) {
	x, zk, b := begin(t, web.Write, map[string]string{"/a": "one\r\ntwo\r\n"}, "#/z/a")
	b.see(".znode", "two")
	b.press("e")
	b.see("dialog h2", "Edit /a")
	b.eval(`const all = new DataTransfer(); all.items.add(new File(['three\nfour\n'], 'a.txt'));
		const input = document.querySelector('dialog input[type=file]'); input.files = all.files; input.dispatchEvent(new Event('change')); null`, nil)
	b.until("document.querySelector('dialog textarea').value.includes('four')")
	b.click("button", "=Save")
	b.see(".toast", "Saved version 1")
	if got := x.text(zk, "/a"); got != "three\nfour\n" {
		t.Errorf("%q", got)
	}
}
