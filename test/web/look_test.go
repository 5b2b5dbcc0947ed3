package web

import (
	_ "embed"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web"
)

//go:embed testdata/rules.js
var rulesJS string

// views are the addresses of all views, each with a text that it shows once it is complete.
var views = []struct{ name, hash, text string }{
	{"overview", "#/overview", "What lives here"},
	{"znode", "#/z/app/config", "5432"},
	{"children", "#/z/app", "Children"},
	{"sessions", "#/sessions?filter=0x1", "its client closed it"},
	{"watches", "#/watches?path=/app/*", "shown"},
	{"locks", "#/locks?filter=/fx", "/fx/lock"},
	{"ensemble", "#/ensemble", "this server"},
	{"activity", "#/activity", "Hot paths"},
	{"search", "#/search?root=/app&name=c*", "complete"},
	{"compare", "#/compare?left=/app&right=/old", "differences"},
	{"history", "#/history", "Which znode"},
	{"transfer", "#/transfer?root=/app", "Import"},
}

// furnish opens a view of a site that has something to show, as a caller with a role.
func furnish(t *testing.T, role web.Role, hash string) (*site, *tab) {
	t.Helper()
	x := open(t, server.Config{}, web.Options{Anonymous: role})
	znodes := map[string]string{"/app/config": `{"host": "db1.example", "port": 5432, "options": {"tls": true}}`, "/old/config": `{"host": "db0.example", "port": 5432}`, "/app/empty": ""}
	for i := range 60 {
		znodes[fmt.Sprintf("/app/jobs/job-%010d", i)] = "queued"
	}
	x.fill(znodes)
	kazoo(x)
	zk, ended := x.connect(), x.connect()
	x.create(ended, "/app/lost", "", client.CreateOptions{Ephemeral: true})
	if err := ended.Close(); err != nil {
		t.Fatal(err)
	}
	x.create(zk, "/app/live", "", client.CreateOptions{Ephemeral: true})
	if _, _, err := zk.Get(t.Context(), "/app/config", true); err != nil {
		t.Fatal(err)
	}
	return x, x.visit(t, hash)
}

// show opens a view and waits until it is complete.
func (b *tab) show(hash, text string) {
	b.t.Helper()
	b.gotoHash(hash)
	b.see("main", text)
	b.until("!document.querySelector('main .loading')")
	if strings.HasPrefix(hash, "#/z/") {
		b.until("!document.querySelector('.side').checkVisibility() || document.querySelector('.tree .cursor[aria-selected=true]')")
	}
}

func (b *tab) dark(dark bool) {
	b.t.Helper()
	scheme := map[bool]string{true: "dark", false: "light"}[dark]
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}}})
	b.until("document.documentElement.dataset.theme === " + quote(scheme))
}

// axe returns what the script GOZKD_AXE, that of axe-core, finds on the page; make web-axe sets it.
func (b *tab) axe() []string {
	b.t.Helper()
	file := os.Getenv("GOZKD_AXE")
	if file == "" {
		return nil
	}
	script, err := os.ReadFile(file)
	if err != nil {
		b.t.Fatal(err)
	}
	if !ask[bool](b, "Boolean(window.axe)") {
		b.eval(string(script)+"; null", nil)
	}
	return ask[[]string](b, "axe.run().then((r) => r.violations.map((v) => v.impact + ' ' + v.id + ': ' + v.nodes[0].html))")
}

// The rules of accessibility hold in every view and dialog, in light and in dark.
func TestAccessibility(t *testing.T) {
	_, b := furnish(t, web.Admin, "#/z/")
	check := func(where string) {
		t.Helper()
		for _, broken := range append(ask[[]string](b, rulesJS), b.axe()...) {
			t.Errorf("%s: %s", where, broken)
		}
	}
	for _, dark := range []bool{false, true} {
		b.dark(dark)
		for _, v := range views {
			b.show(v.hash, v.text)
			check(fmt.Sprint(v.name, " dark ", dark))
		}
		b.click("#nav button", "")
		b.see("#nav a", "Import & export")
		check(fmt.Sprint("menu dark ", dark))
		b.press("Escape")
		b.gone("#nav a", "Import & export")
		b.show("#/z/app/empty", "none")
		for key, title := range map[string]string{"e": "Edit", "n": "New child", "d": "Delete", "a": "ACL", "?": "Keyboard"} {
			b.press(key)
			b.see("dialog h2", title)
			check(fmt.Sprint("dialog ", title, " dark ", dark))
			b.press("Escape", "Escape")
			b.closed()
		}
		b.press("f")
		b.see(".tail", "Waiting")
		check("tail")
	}
	out := open(t, server.Config{}, web.Options{}).visit(t, "#/z/")
	out.see("h1", "Log in")
	b = out
	check("login")
}

// No view is wider than the window, only main scrolls, and every view can be used at 360 pixels.
func TestWidths(t *testing.T) {
	_, b := furnish(t, web.Admin, "#/z/")
	for _, width := range []int{360, 768, 1280} {
		b.size(width, 760)
		for _, v := range views {
			b.show(v.hash, v.text)
			wide := ask[[]string](b, `[document.documentElement, document.querySelector('main'), ...document.querySelectorAll('.page .table-wrap')].filter((e) => e.scrollWidth > e.clientWidth || e === document.documentElement && e.scrollHeight > e.clientHeight).map((e) => e.tagName + ' ' + e.scrollWidth + 'x' + e.scrollHeight + ' > ' + e.clientWidth + 'x' + e.clientHeight)
				.concat([...document.querySelectorAll('main button, main input, main select, main h1, main h2, main h3, .top *')].filter((e) => person.seen(e) && !e.closest('.table-wrap, .code, .vlist, .tabs') &&
					(e.getBoundingClientRect().right > innerWidth + 1 || e.getBoundingClientRect().left < -1)).map((e) => 'outside: ' + e.outerHTML.slice(0, 120)))`)
			for _, w := range wide {
				t.Errorf("%s at %d: %s", v.name, width, w)
			}
			if width < 500 && ask[float64](b, "document.getElementById('health').offsetHeight") < 40 {
				t.Errorf("%s at %d: the line of health has no room for a second line, which would move the page", v.name, width)
			}
			// The present view is named among the tabs, or by the button of the menu that has it.
			if !ask[bool](b, "(() => { const [tab] = person.all('#nav [aria-current]'); const r = tab.getBoundingClientRect(); return r.left >= 0 && r.right <= innerWidth && document.elementFromPoint(r.right - 8, r.top + 8).closest('[aria-current]') === tab; })()") {
				t.Errorf("%s at %d: the present tab is not in sight", v.name, width)
			}
		}
	}
	// At 360 pixels a list is short, so that what is below it is in reach, and the completions of a
	// path have all the width.
	b.size(360, 760)
	b.show("#/search?root=/app/jobs&name=job-*", "complete")
	b.until("person.all('tbody tr').length === 40")
	b.click("button", "Show more (20 left)")
	b.until("person.all('tbody tr').length === 60")
	b.press("/")
	b.until("document.getElementById('completions').offsetWidth >= 340")
	b.press("Escape")
	// The tree takes the place of the page, and gives it back.
	b.show("#/z/app", "Children")
	b.gone(".tree", "app")
	b.click("button", "Show the tree")
	b.see(".tree", "old")
	b.click(".tree-row", "old")
	b.until("location.hash === '#/z/old'")
	b.see(".crumbs", "old")
	b.gone(".tree", "app")
	b.click("button", "=Delete")
	b.see("dialog", "Type the path")
	if ask[bool](b, "document.querySelector('dialog').getBoundingClientRect().width > innerWidth") {
		t.Error("the dialog is wider than the window")
	}
}

// Each view has an address that restores it, in a new tab and by the button back.
func TestAddresses(t *testing.T) {
	_, b := furnish(t, web.Admin, "#/z/")
	for _, v := range views {
		b.open(v.hash)
		b.see("main", v.text)
		if got := ask[string](b, "decodeURIComponent(location.hash)"); got != v.hash {
			t.Errorf("%s became %s", v.hash, got)
		}
		for _, pair := range strings.Split(v.hash, "?")[1:] {
			for _, p := range strings.Split(pair, "&") {
				_, value, _ := strings.Cut(p, "=")
				b.until("[...document.querySelectorAll('main input')].some((i) => i.value === " + quote(value) + ")")
			}
		}
	}
	b.open("#/z/app/config")
	b.see("main", "5432")
	b.gotoHash("#/z/old/config")
	b.see("main", "db0.example")
	b.gotoHash("#/locks")
	b.see("main h1", "Locks")
	b.eval("history.back()", nil)
	b.see("main", "db0.example")
	b.eval("history.back()", nil)
	b.see("main", "db1.example")
	b.open("")
	b.see("main h1", "Overview")
	b.click("#nav a", "Znodes")
	b.see("main", "db1.example") // where the person was last
	b.click("#nav button", "=More views")
	b.click("#nav a", "=Activityrates, latencies, hot paths")
	b.see("main h1", "Activity")
	b.gone("#nav a", "rates")
	b.see("#nav button", "Activity")
}

// By default the colors follow the system; a person may choose, and the choice stays.
func TestDark(t *testing.T) {
	_, _, b := begin(t, web.Read, nil, "#/z/")
	ground := func() int {
		return ask[int](b, "Number(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])")
	}
	b.dark(false)
	if n := ground(); n < 200 {
		t.Errorf("a light page has the ground %d", n)
	}
	b.dark(true)
	if n := ground(); n > 50 {
		t.Errorf("a dark page has the ground %d", n)
	}
	b.click("button", "Light colours")
	b.until("document.documentElement.dataset.theme === 'light'")
	b.open("#/locks")
	if n := ground(); n < 200 {
		t.Errorf("the choice was forgotten: %d", n)
	}
}

// tabTo presses Tab until an element has the focus, and returns those that had it on the way.
func (b *tab) tabTo(element string) (reached []string) {
	b.t.Helper()
	for range 40 {
		at := ask[string](b, "person.focused()")
		if at == element {
			return reached
		}
		reached = append(reached, at)
		b.press("Tab")
	}
	b.t.Fatalf("Tab leads to %q, not to %s", reached, element)
	return nil
}

// Everything can be done without a mouse.
func TestKeyboardAlone(t *testing.T) {
	x, b := furnish(t, web.Admin, "#/z/")
	zk := x.connect()
	b.see(".tree", "app")
	b.press("j", "l") // to app, unfold
	b.see(".tree", "config")
	b.press("j", "Enter")
	b.until("location.hash === '#/z/app/config'")
	b.see(".data", "5432")
	b.press("e")
	b.see("dialog", "Edit")
	b.until("person.focused().startsWith('textarea')")
	b.press("Control+a")
	b.write("by keyboard")
	b.press("Tab") // indents
	b.until("document.activeElement.value === 'by keyboard  '")
	b.press("Escape", "Tab") // leaves the text
	b.until("!person.focused().startsWith('textarea')")
	b.tabTo("button Save")
	b.press("Enter")
	b.closed()
	b.see(".data", "by keyboard")
	b.press("u")
	b.until("location.hash === '#/z/app'")
	b.see(".child-list", "config")
	b.press("n")
	b.until("person.focused() === 'input Name'")
	b.write("typed")
	b.press("Enter")
	b.until("location.hash === '#/z/app/typed'")
	b.see(".badges", "version 0")
	b.press("d")
	b.see("dialog", "A deleted znode comes back only from a backup")
	b.tabTo("button Delete")
	b.press("Enter")
	b.until("location.hash === '#/z/app'")
	if _, ok, err := zk.Exists(t.Context(), "/app/typed", false); ok || err != nil {
		t.Error(ok, err)
	}
	b.press("?")
	b.see("dialog", "Jump to a path")
	b.press("Escape")
	b.closed()
	b.press("Control+k")
	b.until("person.focused().startsWith('input')")
	b.see("#completions", "/app/typed recent")
	b.write("watch")
	b.see("#completions", "Watches view")
	b.see("#completions", "Search for names with")
	b.press("Enter")
	b.see("main h1", "Watches")
	b.press("[", "[")
	b.see("main h1", "Ensemble")
	b.press("[", "[")
	b.see("main h1", "Sessions")
	b.see("th button", "Timeout")
	// Sort and filter; the order of Tab leads from the head of the page to the table.
	if reached := b.tabTo("button Timeout"); !slices.Contains(reached, "input Filter by id, client or identity") {
		t.Errorf("Tab leads to %q", reached)
	}
	b.press("Enter")
	b.until("person.all('th[aria-sort]', 'Timeout').length === 1")
	b.press("[")
	b.until("location.hash.startsWith('#/z/')")
}

// The palette offers what a person has pinned, and what can be done with the open znode.
func TestPalette(t *testing.T) {
	_, b := furnish(t, web.Write, "#/z/app/config")
	b.see(".data", "5432")
	b.press("p")
	b.see(".toast", "Pinned /app/config")
	b.until("person.all('button[aria-pressed=true]', 'Pin the path').length === 1")
	b.gotoHash("#/z/old")
	b.see(".crumbs", "old")
	b.press("Control+k")
	b.see("#completions li:first-child", "/app/config pinned")
	b.write("new ch")
	b.see("#completions li:first-child", "New child action")
	b.press("Enter")
	b.see("dialog h2", "New child of /old")
	b.press("Escape")
	b.closed()
	b.press("Control+k")
	b.see("#completions li:nth-child(4)", "action") // after the pinned and the recent paths
	b.write("co")
	b.see("#completions li:nth-child(1)", "Compare view")
	b.see("#completions li:nth-child(2)", "Copy the path action")
	b.see("#completions li:nth-child(4)", "Dark colours action")
	b.see("#completions li:nth-child(5)", "/app/config pinned")
	b.press("Control+a")
	b.write("dark col")
	b.see("#completions", "Dark colours action")
	b.press("Enter")
	b.until("document.documentElement.dataset.theme === 'dark'")
	b.gotoHash("#/locks")
	b.see("main h1", "Locks")
	b.press("Control+k")
	b.write("pinned no more")
	b.gone("#completions", "action") // that of a znode
	b.press("Control+a")
	b.write("/config")
	b.press("Control+a")
	b.write("config")
	b.see("#completions", "/app/config pinned")
	b.press("ArrowDown", "Enter")
	b.see(".data", "5432")
	b.press("p")
	b.see(".toast", "No longer pinned: /app/config")
}

// Without an archive the page says how to switch one on, and without values when they come.
func TestEmptyStates(t *testing.T) {
	_, _, b := begin(t, web.Read, nil, "#/overview")
	b.see(".numbers", "A line appears within 20 s.")
	b.until("person.all('.numbers svg').length === 0")
	for _, hash := range []string{"#/history?path=/zookeeper", "#/z/"} {
		b.gotoHash(hash)
		if hash == "#/z/" {
			b.click("button", "Show znodes as they were")
		}
		b.see("main", "No archive keeps earlier versions")
		b.see("main", "Write gozkd.archive.url=file:///backups/zk")
		b.gone("main [role=alert]", "")
	}
}

// Below a prefix of a proxy with a password, the explorer asks for nothing outside of it.
func TestPrefix(t *testing.T) {
	x := open(t, server.Config{}, web.Options{Anonymous: web.Write})
	x.fill(map[string]string{"/app/a": "one"})
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "ann" || password != "secret" {
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		r.Header.Del("Authorization")
		r.Header.Set("X-Forwarded-Prefix", "/zk")
		http.StripPrefix("/zk", x.handler).ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	x.origin, x.user = proxy.URL+"/zk", "ann:secret@"
	b := x.visit(t, "#/z/app/a")
	b.see(".data", "one")
	b.follows("/app/a?watch=")
	b.press("e")
	b.fill("textarea", "Data", "two")
	b.click("button", "=Save")
	b.see(".data", "two")
	b.gotoHash("#/overview")
	b.see(".verdict", "All is well")
}
