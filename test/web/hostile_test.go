package web

import (
	"testing"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web"
)

// Names and data with markup, scripts and addresses are text in every view.
func TestHostileZnodes(t *testing.T) {
	const script = `<img src=x onerror="window.pwned=1"><script>window.pwned=1</script><a href="javascript:window.pwned=1">x</a>`
	x := open(t, server.Config{}, web.Options{Anonymous: web.Admin})
	zk := x.connect(client.Auth{Scheme: "digest", Credential: []byte(`<b onmouseover=window.pwned=1>:x`)})
	names := []string{`<img src=x onerror=window.pwned=1>`, `"><svg onload=window.pwned=1>`, `javascript:window.pwned=1`, `..`, `%2e%2e`, `a#b?c&d=e`,
		`{{7*7}}`, "\u202egnp.exe", `'; DROP TABLE x; --`, `<script>window.pwned=1</script>`}
	znodes := map[string]string{}
	for _, name := range names {
		if name != ".." { // not a name of a znode
			znodes["/evil/"+name] = script
			znodes["/evil2/"+name] = script + "!"
		}
	}
	znodes[`/evil/json`] = `{"<img src=x onerror=window.pwned=1>": "<script>window.pwned=1</script>", "__proto__": {"x": 1}}`
	znodes[`/evil/xml`] = `<?xml version="1.0"?><x:script xmlns:x="http://www.w3.org/1999/xhtml">window.pwned=1</x:script>`
	znodes[`/evil/curator`] = `{"name":"<img src=x onerror=window.pwned=1>","id":"<b>","address":"javascript:window.pwned=1","port":1,"serviceType":"<i>"}`
	znodes[`/evil/kafka/brokers/ids/1`] = `{"endpoints":["<img src=x onerror=window.pwned=1>"],"host":"<img src=x onerror=window.pwned=1>","port":"<b>","version":5,"timestamp":"1"}`
	x.fill(znodes)
	x.create(zk, `/evil/locks<b>`, "", client.CreateOptions{})
	x.create(zk, `/evil/locks<b>/_c_00000000-0000-0000-0000-000000000000-lock-`, script, client.CreateOptions{Ephemeral: true, Sequential: true})
	x.create(zk, "/evil/acl", "", client.CreateOptions{ACL: []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "digest", ID: `<img src=x onerror=window.pwned=1>:x`}},
		{Perms: proto.PermRead, ID: proto.ID{Scheme: "world", ID: "anyone"}}}})
	if err := zk.AddWatch(t.Context(), "/evil/"+names[0], proto.AddWatchPersistentRecursive); err != nil {
		t.Fatal(err)
	}

	b := x.visit(t, "#/z/evil")
	clean := func(where string) {
		t.Helper()
		if bad := ask[string](b, `window.pwned || [...document.querySelectorAll('script, img, iframe, object, embed, base, style, form[action], [onerror], [onload], [onmouseover]')]
			.filter((e) => !e.closest('head') && !e.closest('.brand')).map((e) => e.outerHTML).join() ||
			[...document.querySelectorAll('[href], [src]')].map((e) => e.getAttribute('href') || e.getAttribute('src')).filter((h) => /^(javascript|data|https?):/i.test(h) && !h.startsWith(location.origin)).join() || ''`); bad != "" {
			t.Errorf("%s: %s", where, bad)
		}
	}
	for path := range znodes {
		b.eval("location.hash = '#/z' + "+quote(path)+".split('/').map(encodeURIComponent).join('/')", nil)
		b.until("document.title === " + quote(path) + " + ' – gozkd' && person.has('.badges', 'version 0')")
		b.see(".znode .data", "")
		b.until("person.all('.viewer *').length > 0")
		clean(path)
		for _, viewer := range ask[[]string](b, "[...person.all('select', 'Viewer')[0].options].map((o) => o.value)") {
			b.choose("Viewer", viewer)
			clean(path + " as " + viewer)
		}
		b.choose("Viewer", "")
	}
	b.gotoHash("#/z/evil/acl")
	b.see("aside", "digest:<img")
	clean("ACL")
	b.gotoHash("#/z/evil")
	b.see(".child-list", "<script>")
	b.press("d")
	b.see("dialog pre", "<script>")
	clean("recursive delete")
	b.press("Escape")
	for view, text := range map[string]string{"#/sessions": "<b onmouseover", "#/watches": "<img src=x", "#/locks": "locks<b>", "#/activity": "Hot paths",
		"#/search?root=/evil&name=*script*": "<script>", "#/search?root=/evil&content=pwned": "onerror", "#/compare?left=/evil&right=/evil2": "differs",
		"#/history?path=/evil/<img src=x onerror=window.pwned=1>": "", "#/transfer?root=<img src=x onerror=window.pwned=1>": "Import", "#/<img src=x onerror=window.pwned=1>": "no view"} {
		b.gotoHash(view)
		b.see("main", text)
		b.until("!document.querySelector('main .loading')")
		clean(view)
	}
	b.press("/")
	b.write("/evil/")
	b.see(".completions", "<img")
	clean("completions")
}
