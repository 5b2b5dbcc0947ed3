package web

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web"
)

// Children are read when a person unfolds their parent, not before.
func TestTree_Lazy(t *testing.T) {
	x := open(t, server.Config{}, web.Options{Anonymous: web.Read})
	x.fill(map[string]string{"/app/config/db": "host", "/app/jobs/1": "a", "/other/deep/down": ""})
	b := x.visit(t, "#/z/")
	b.see(".tree", "app")
	b.gone(".tree", "config")
	if asked := b.asked("children"); slices.ContainsFunc(asked, func(r string) bool { return strings.Contains(r, "/app") || strings.Contains(r, "/other") }) {
		t.Errorf("children were read before they were unfolded: %q", asked)
	}
	b.click(".tree-row", "app")
	b.until("location.hash === '#/z/app'")
	b.see("main", "Children")
	b.press("ArrowRight")
	b.see(".tree", "config")
	b.gone(".tree", "down")
	b.click(".tree-row", "config")
	b.press("ArrowRight")
	b.click(".tree-row", "db")
	b.see(".znode", "host")
	// Fold again.
	b.eval("person.all('.tree-row', 'app')[0].querySelector('.twist').scrollIntoView()", nil)
	b.click(".tree-row[aria-level='2'] .twist", "")
	b.gone(".tree", "config")
}

// A long list of children is read in pages, as far as a person scrolls.
func TestTree_Pages(t *testing.T) {
	x := open(t, server.Config{}, web.Options{Anonymous: web.Read})
	znodes := map[string]string{}
	for i := range 3000 {
		znodes[fmt.Sprintf("/many/n-%05d", i)] = "x"
	}
	x.fill(znodes)
	b := x.visit(t, "#/z/many")
	b.see(".child-list", "n-00000")
	b.see("main", "3,000 children")
	if n := len(b.asked("after=")); n != 0 {
		t.Errorf("%d further pages were read before a person scrolled", n)
	}
	if n := b.count(".child-row", ""); n > 60 {
		t.Errorf("%d rows exist, of which a person sees 14", n)
	}
	b.eval("document.querySelector('.child-list').scrollTop = 250 * 28", nil)
	b.see(".child-list", "n-00250")
	if n := len(b.asked("after=")); n == 0 {
		t.Error("no further page was read")
	}
	b.eval("document.querySelector('.child-list').scrollTop = 1e9", nil)
	b.see(".child-list", "n-02999")
	b.fill("input", "Children whose name begins with", "n-0123")
	b.see(".child-list", "n-01234")
	b.gone(".child-list", "n-02999")
	b.see("main", "(10 match)")
	b.fill("input", "Children whose name begins with", "n-00") // more than a page
	b.see("main", "(200+ match)")
	b.eval("document.querySelector('.child-list').scrollTop = 1e9", nil)
	b.see(".child-list", "n-00203")
	// In the tree, too; an address leads to a child far behind the first page.
	b.open("#/z/many/n-02500")
	b.see(".tree-row[aria-selected='true']", "n-02500")
	b.see(".tree", "n-00000")
	b.gone(".tree", "n-00300")
}

// Children are sorted by each column; for another order than the server's all of them are read.
func TestChildren_Sorted(t *testing.T) {
	x := open(t, server.Config{}, web.Options{Anonymous: web.Read})
	znodes := map[string]string{"/many/n1/child": ""}
	for i := range 450 {
		znodes[fmt.Sprintf("/many/n%d", i)] = strings.Repeat("x", 1000-i)
	}
	x.fill(znodes)
	b := x.visit(t, "#/z/many")
	names := func(first ...string) {
		t.Helper()
		b.until("person.all('.child-list a', '').slice(0, " + fmt.Sprint(len(first)) + ").map((a) => a.title).join() === " + quote(strings.Join(first, ",")))
	}
	names("n0", "n1", "n10", "n100")
	b.click(".child-head button", "Name")
	names("n0", "n1", "n2", "n3")
	b.click(".child-head button", "Size")
	names("n0", "n1", "n2")
	b.click(".child-head button", "Size")
	names("n449", "n448", "n447")
	b.see("[aria-sort='ascending']", "Size")
	b.click(".child-head button", "Children")
	names("n1")
	b.fill("input", "Children whose name begins with", "n44")
	names("n44", "n440", "n441")
}

func TestBadges(t *testing.T) {
	x := open(t, server.Config{}, web.Options{Anonymous: web.Read})
	zk := x.connect()
	x.fill(map[string]string{"/app": ""})
	x.create(zk, "/app/live", "", client.CreateOptions{Ephemeral: true})
	x.create(zk, "/app/box", "", client.CreateOptions{Container: true})
	x.create(zk, "/app/brief", "", client.CreateOptions{TTL: time.Hour})
	x.create(zk, "/app/seen", "", client.CreateOptions{})
	if err := zk.AddWatch(t.Context(), "/app/seen", proto.AddWatchPersistent); err != nil {
		t.Fatal(err)
	}
	x.fill(map[string]string{"/zookeeper/quota/app/zookeeper_limits": "count=5,bytes=-1", "/zookeeper/quota/app/zookeeper_stats": "count=5,bytes=0"})
	b := x.visit(t, "#/z/app")
	b.see(".tree-row[aria-selected='true']", "app")
	b.press("l")
	for name, letter := range map[string]string{"live": "E", "box": "C", "brief": "T"} {
		b.until(fmt.Sprintf("person.all('.tree-row', %s)[0].querySelector('.badge').textContent === %s", quote(name), quote(letter)))
		b.until(fmt.Sprintf("person.all('.child-row', %s)[0].querySelector('.badge').textContent === %s", quote(name), quote(letter)))
	}
	b.see(".badges", "quota app")
	session := fmt.Sprintf("0x%x", uint64(zk.Session().ID))
	b.gotoHash("#/z/app/live")
	b.see(".badges", "ephemeral · session "+session)
	b.see(".badges", "client 127.0.0.1:")
	b.gotoHash("#/z/app/box")
	b.see(".badges", "container")
	b.gotoHash("#/z/app/brief")
	b.see(".badges", "TTL 1 h · 59 min")
	b.gotoHash("#/z/app/seen")
	b.see(".badges", "1 watch")
	b.click(".badges a", "1 watch")
	b.see("table", session)
}

// Jump to a path by the keyboard, with completion.
func TestJump(t *testing.T) {
	x := open(t, server.Config{}, web.Options{Anonymous: web.Read})
	x.fill(map[string]string{"/app/configuration/primary": "one", "/app/configuration/private": "two"})
	b := x.visit(t, "#/z/")
	b.see(".tree", "app")
	b.press("/")
	b.until("person.focused().startsWith('input')")
	b.write("/app/c")
	b.see(".completions", "/app/configuration")
	b.press("Tab")
	b.until("document.activeElement.value === '/app/configuration/'")
	b.write("pri")
	b.see(".completions", "primary")
	b.press("Control+a")
	b.write("/app/configuration/private")
	b.press("Enter")
	b.until("location.hash === '#/z/app/configuration/private'")
	b.see(".znode", "two")
}
