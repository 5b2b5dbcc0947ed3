package web

import (
	"net/url"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web"
)

// A server that accepts requests but never answers is not shown as well.
func TestHealth_Hangs(t *testing.T) {
	b := open(t, server.Config{}, web.Options{Anonymous: web.Read}).visit(t, "#/sessions")
	b.see("#health", "standalone server")
	ask[bool](b, `window.answers = fetch, !!(window.fetch = (url, {signal}) => new Promise((ok, fail) => {
		signal?.addEventListener('abort', () => fail(signal.reason));
	}))`)
	b.until("document.getElementById('health').hidden")
	b.see("#banner", "The server does not answer")
	ask[bool](b, "!!(window.fetch = window.answers)")
	b.see("#health", "standalone server")
	b.until("document.getElementById('banner').hidden")
}

// Changes appear by themselves, highlighted, and in the tail of a subtree.
func TestLive(t *testing.T) {
	x, zk, b := begin(t, web.Read, map[string]string{"/app/a": "one"}, "#/z/app/a")
	b.see(".znode", "one")
	b.follows("/app/a?watch=")
	if _, err := zk.Set(t.Context(), "/app/a", []byte("two"), 0); err != nil {
		t.Fatal(err)
	}
	b.see(".znode .card.flash", "two")
	b.see(".badges", "version 1")

	b.gotoHash("#/z/app")
	b.see(".child-list", "a")
	b.press("f")
	b.see(".tail", "Waiting for changes")
	b.until("location.hash.includes('follow=1')")
	b.follows("/app?watch=recursive")
	x.create(zk, "/app/b", "", client.CreateOptions{})
	b.see(".tail", "created /app/b")
	b.until("person.all('.child-row', 'b').length > 0")
	b.until("person.all('.tree-row', '=b').length > 0")
	x.create(zk, "/app/b/c", "", client.CreateOptions{})
	b.see(".tail", "created /app/b/c")
	if _, err := zk.Set(t.Context(), "/app/a", []byte("three"), 1); err != nil {
		t.Fatal(err)
	}
	b.see(".tail", "changed /app/a")
	if err := zk.Delete(t.Context(), "/app/b/c", -1); err != nil {
		t.Fatal(err)
	}
	b.see(".tail", "deleted /app/b/c")
	b.see(".tail", "per second")
	b.click(".tail button", "Pause")
	x.create(zk, "/app/paused", "", client.CreateOptions{})
	b.until("person.all('.child-row', 'paused').length > 0")
	b.gone(".tail", "paused")
	b.click(".tail button", "Stop following")
	b.gone(".tail", "")

	// Deleted while a person looks at it.
	b.gotoHash("#/z/app/a")
	b.see(".znode", "three")
	b.follows("/app/a?watch=")
	if err := zk.Delete(t.Context(), "/app/a", -1); err != nil {
		t.Fatal(err)
	}
	b.see(".znode", "It was deleted while you looked at it")
	b.click("a", "Go to /app")
	b.until("location.hash === '#/z/app'")
}

// The server is lost: a banner says so, and the page comes back by itself with what has changed.
func TestServerLost(t *testing.T) {
	x, zk, b := begin(t, web.Write, map[string]string{"/app/a": "before"}, "#/z/app/a")
	b.see(".znode", "before")
	b.follows("/app/a?watch=")
	address := strings.TrimPrefix(x.origin, "http://")
	x.stop()
	b.see("#banner", "The server does not answer")
	b.until("person.all('.live[aria-label=lost]').length === 1")
	// Still readable, after the page has tried to read again, too.
	b.eval(`const real = fetch; window.failed = 0; window.fetch = (url, options) => { const r = real(url, options);
		if (String(url).includes('znodes/v2')) r.catch(() => failed++); return r; }; null`, nil)
	b.press("r")
	b.until("failed >= 3")
	b.see(".znode", "before")
	b.gone(".znode", "No connection")
	// A change fails with a message, and nothing typed is lost.
	b.press("e")
	b.fill("textarea", "Data", "typed while the server was away")
	b.click("button", "Save")
	b.see("dialog .dialog-error", "does not answer")
	if _, err := zk.Set(t.Context(), "/app/a", []byte("meanwhile"), 0); err != nil {
		t.Fatal(err)
	}
	x.serve(address)
	b.until("document.getElementById('banner').hidden")
	b.see("dialog", "Edit /app/a")
	b.click("button", "Save")
	b.see("dialog", "Somebody else changed /app/a") // not overwritten
	b.see("dialog .added", "typed while the server was away")
	b.click("button", "Keep theirs")
	b.closed()
	b.see(".znode", "meanwhile")
	b.follows("/app/a?watch=")
	if _, err := zk.Set(t.Context(), "/app/a", []byte("live again"), 1); err != nil {
		t.Fatal(err)
	}
	b.see(".znode", "live again")
	if u, err := url.Parse(x.origin); err != nil || u.Host != address {
		t.Fatal(u, err)
	}
}

// Opened while the server is away, the explorer says so and tries again at a click.
func TestServerLost_OtherViews(t *testing.T) {
	x, _, b := begin(t, web.Read, nil, "#/ensemble")
	b.see("th", "Server 1")
	address := strings.TrimPrefix(x.origin, "http://")
	x.stop()
	b.gotoHash("#/sessions")
	b.see("main [role=alert]", "")
	b.see("#banner", "The server does not answer")
	x.serve(address)
	b.see("main", "in the ensemble")
}

// A change after the znode was read and before its changes are followed is shown, and the page does
// not say that it is live before it is.
func TestLive_BeforeTheStream(t *testing.T) {
	_, zk, b := begin(t, web.Read, map[string]string{"/app/a": "one"}, "#/z/app")
	b.follows("/app?watch=")
	b.eval(`window.EventSource = class extends EventTarget { constructor() { super(); window.opened = () => this.onopen(); } close() {} }; null`, nil)
	b.gotoHash("#/z/app/a")
	b.see(".data", "one")
	if _, err := zk.Set(t.Context(), "/app/a", []byte("two"), -1); err != nil {
		t.Fatal(err)
	}
	b.until("person.all('.live[aria-label=connecting]').length === 1")
	b.eval("window.opened(); null", nil)
	b.see(".data", "two")
	b.until("person.all('.live[aria-label=live]').length === 1")
}

// After an answer other than 200 the browser gives up, and a new stream knows no last id: all is
// read again.
func TestLive_GivenUp(t *testing.T) {
	_, zk, b := begin(t, web.Read, map[string]string{"/app/a": "one"}, "#/z/app")
	b.see("[role=tree]", "a")
	b.eval(`window.made = 0; window.EventSource = class extends EventTarget { static CLOSED = 2; readyState = 1;
		constructor() { super(); window.made++; window.opened = () => this.onopen(); window.fail = () => { this.readyState = 2; this.onerror(); }; } close() {} }; null`, nil)
	b.gotoHash("#/z/app/a")
	b.until("window.made === 1")
	b.eval("window.opened(); null", nil)
	b.until("person.all('.live[aria-label=live]').length === 1")
	b.eval("window.fail(); null", nil)
	if _, _, err := zk.Create(t.Context(), "/app/new", nil, client.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.until("window.made === 2")
	b.eval("window.opened(); null", nil)
	b.see("[role=tree]", "new")
}
