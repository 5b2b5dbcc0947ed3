package web

import (
	"fmt"
	"testing"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web"
)

// A view that reads again by itself leaves the focus, the order of a table and a selection of text
// alone.
func TestPolling_LeavesThePersonAlone(t *testing.T) {
	x := open(t, server.Config{}, web.Options{Anonymous: web.Admin})
	var ids []string
	for i := range 3 {
		zk := x.connect()
		x.create(zk, fmt.Sprintf("/e%d", i), "", client.CreateOptions{Ephemeral: true})
		ids = append(ids, fmt.Sprintf("0x%x", uint64(zk.Session().ID)))
	}
	b := x.visit(t, "#/sessions")
	b.see("table", ids[2])
	b.click("th button", "=Ephemerals") // the largest first
	b.until("person.all('th[aria-sort=descending]', 'Ephemerals').length === 1")
	b.eval("person.all('tr', "+quote(ids[1])+")[0].querySelector('button').focus()", nil)
	polled := func() {
		t.Helper()
		b.asked("")
		// The second answer comes after the first was drawn.
		for range 2 {
			b.eval("window.row = document.querySelector('tbody tr')", nil)
			b.press("r")
			b.until("window.row !== document.querySelector('tbody tr')")
		}
	}
	polled()
	if got := ask[string](b, "document.activeElement.closest('tr').cells[0].textContent + ' ' + document.activeElement.textContent"); got[:len(ids[1])] != ids[1] {
		t.Errorf("the focus is on %q, was on End of %s", got, ids[1])
	}
	if b.count("th[aria-sort=descending]", "Ephemerals") != 1 {
		t.Error("the order of the table was lost")
	}
	// Another session disappears: the focus stays with its own.
	b.click("button", "=Log in") // a click elsewhere must not be undone
	b.press("Escape")
	b.closed()

	// While text is selected, nothing is drawn by polling.
	b.gotoHash("#/activity")
	b.see("h2", "Hot paths")
	b.eval("getSelection().selectAllChildren(document.querySelector('main .badge'))", nil)
	selected := ask[string](b, "getSelection().toString()")
	b.asked("")
	b.until("performance.getEntriesByType('resource').filter((e) => e.name.includes('/ui/api/activity')).length > 3")
	if got := ask[string](b, "getSelection().toString()"); got != selected || got == "" {
		t.Errorf("the selection is %q, was %q", got, selected)
	}
	b.eval("window.chart = document.querySelector('main svg.chart'); getSelection().empty()", nil)
	b.until("window.chart !== document.querySelector('main svg.chart')") // and is drawn again afterwards

	// A live page of a znode.
	zk := x.connect()
	b.gotoHash("#/z/e0")
	b.see(".badges", "version 0")
	b.follows("/e0?watch=")
	b.eval("person.all('button', '=Follow')[0].focus()", nil)
	if _, err := zk.Set(t.Context(), "/e0", []byte("new"), -1); err != nil {
		t.Fatal(err)
	}
	b.see(".badges", "version 1")
	if got := ask[string](b, "person.focused()"); got != "button Follow" {
		t.Errorf("the focus is on %q", got)
	}
}
