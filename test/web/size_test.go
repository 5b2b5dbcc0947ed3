package web

import (
	"fmt"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web"
)

// stopwatch begins to look in each frame whether the page shows something; elapsed returns when it
// did, in milliseconds of performance.now.
func (b *tab) stopwatch(condition string) {
	b.t.Helper()
	b.eval(`window.watch = new Promise((done) => { performance.clearResourceTimings();
		const look = () => { let shown = false; try { shown = (`+condition+`); } catch (e) { shown = false; }
			requestAnimationFrame(shown ? () => setTimeout(() => done(performance.now()), 0) : look); }; look(); }); null`, nil)
}

func (b *tab) elapsed() float64 {
	b.t.Helper()
	return ask[float64](b, "window.watch")
}

// A parent with 100,000 children: the first rows are painted within 200 ms after their data, only
// rows in sight exist, and a place far away takes a request or two. The times are measured and not
// judged: the machine may be busy. The numbers of rows, requests and bytes are.
func TestManyChildren(t *testing.T) {
	const n = 100_000
	x := open(t, server.Config{MaxBuffer: 4 << 20}, web.Options{Anonymous: web.Read, Rate: 1e6})
	znodes := make(map[string]string, n)
	for i := range n {
		znodes[fmt.Sprintf("/many/child-%07d", i)] = "x"
	}
	x.fill(znodes)
	b := x.visit(t, "#/z/")
	b.see(".tree", "many")
	const page = "performance.getEntriesByType('resource').find((e) => e.name.includes('/znodes/v2/many?') && e.name.includes('children'))"
	b.stopwatch("document.querySelectorAll('.child-row a').length > 10")
	b.click(".tree-row", "many")
	shown := b.elapsed()
	t.Logf("the first rows are painted at %.0f ms, %.0f ms after their data", shown, shown-ask[float64](b, page+".responseEnd"))
	if size := ask[int](b, page+".decodedBodySize"); size > 100<<10 {
		t.Errorf("the first page has %d bytes", size)
	}
	b.press("l")
	b.see(".tree", "child-0000000")
	if rows := b.count(".tree-row, .child-row", ""); rows > 150 {
		t.Errorf("%d rows exist", rows)
	}
	b.asked("")
	began := time.Now()
	b.eval("document.querySelector('.tree').scrollTop = 1e9", nil)
	b.see(".tree", fmt.Sprintf("child-%07d", n-1))
	t.Logf("the last child %v after scrolling to the end, with %d requests", time.Since(began).Round(time.Millisecond), len(b.asked("children")))
	if n := len(b.asked("children")); n > 2 {
		t.Errorf("%d requests for the end of the tree", n)
	}
	b.eval("document.querySelector('.tree').scrollTop = 1e6", nil)
	b.see(".tree", "child-00384")
	b.asked("")
	for _, jump := range []struct{ name, to string }{{fmt.Sprintf("child-%07d", n-1), "1e9"}, {"child-0050000", "50000 * 28"}, {"child-0000000", "0"}} {
		b.stopwatch("person.has('.child-list', " + quote(jump.name) + ")")
		began := ask[float64](b, "performance.now()")
		b.eval("document.querySelector('.child-list').scrollTop = "+jump.to, nil)
		t.Logf("%s of the table is painted %.0f ms after scrolling, of which the request took %.0f", jump.name, b.elapsed()-began,
			ask[float64](b, "performance.getEntriesByType('resource').filter((e) => e.name.includes('skip=')).at(-1)?.duration ?? 0"))
	}
	if n := len(b.asked("children")); n > 4 {
		t.Errorf("%d requests for three places of the table", n)
	}
	if rows := b.count(".tree-row, .child-row", ""); rows > 150 {
		t.Errorf("%d rows exist", rows)
	}
	b.memory()
}

// memory logs and judges the memory of the tab.
func (b *tab) memory() {
	b.t.Helper()
	b.call("HeapProfiler.collectGarbage", nil)
	bytes, err := chromium.Memory(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Logf("%d MB of private memory", bytes>>20)
	if bytes > 150<<20 {
		b.t.Errorf("the tab has %d MB, allowed are 150", bytes>>20)
	}
}

// With a million znodes the explorer stays usable.
func TestMillion(t *testing.T) {
	exhaustive.Only(t)
	x := open(t, server.Config{}, web.Options{Anonymous: web.Admin, Rate: 1e6})
	for part := range 10 {
		znodes := make(map[string]string, 100_000)
		for i := range 100 {
			for j := range 990 { // with the directories just below the bound of a search
				znodes[fmt.Sprintf("/big/part-%d/dir-%03d/znode-%04d", part, i, j)] = fmt.Sprintf("data of %d/%d/%d", part, i, j)
			}
		}
		x.fill(znodes)
	}
	b := x.visit(t, "#/z/")
	b.see(".tree", "big")
	for _, step := range []struct{ hash, shown string }{
		{"#/z/big", "person.has('.child-list', 'part-9')"},
		{"#/z/big/part-5/dir-050", "person.has('.child-list', 'znode-0009') && person.has('.tree', 'dir-050')"},
		{"#/z/big/part-5/dir-050/znode-0989", "person.has('.data', 'data of 5/50/989')"},
		{"#/search?root=/big&name=part-*", "person.has('main', '10 found') && person.has('main', 'complete')"},
		{"#/search?root=/big&content=9%2F99%2F989", "person.has('main', '1 found') && person.has('main', 'complete')"},
		{"#/ensemble", "person.has('main', '991,')"},
		{"#/locks", "person.has('main', 'No locks')"},
	} {
		b.stopwatch(step.shown)
		began := ask[float64](b, "performance.now()")
		b.gotoHash(step.hash)
		t.Logf("%s after %.0f ms", step.hash, b.elapsed()-began)
	}
	b.memory()
}
