package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/subtree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/election"
	"github.com/gozkd/gozkd/recipes/lock"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web"
)

func id(zk *client.Client) string { return fmt.Sprintf("0x%x", uint64(zk.Session().ID)) }

// Sessions are listed with their clients, and an administrator ends one. It is listed then with the
// reason, which the page of its ephemeral znode leads to.
func TestSessions(t *testing.T) {
	x := open(t, server.Config{}, web.Options{Anonymous: web.Admin})
	one, two := x.connect(client.Auth{Scheme: "digest", Credential: []byte("ann:secret")}), x.connect()
	x.create(one, "/live", "", client.CreateOptions{Ephemeral: true})
	b := x.visit(t, "#/sessions")
	b.see("table", id(one))
	b.see("table", id(two))
	b.see("table", "127.0.0.1:")
	b.see("table", "digest:ann")
	b.fill("input", "Filter by id", id(one))
	b.gone("table", id(two))
	b.until("location.hash.includes('filter=')")
	b.click("tr button", "=End")
	b.see("dialog", "Its ephemeral znode is deleted")
	b.click("button", "Cancel")
	b.closed()
	if _, ok, err := two.Exists(t.Context(), "/live", false); err != nil || !ok {
		t.Fatalf("%v %v: the session has ended without a confirmation", ok, err)
	}
	b.click("tr button", "=End")
	b.click("button", "End the session")
	b.see(".toast", "has ended") // for 5 s, after which the client may still wait to learn it
	<-one.Done()
	b.until("!person.has('.stack > .table-wrap tbody', " + quote(id(one)) + ")")
	if _, ok, err := two.Exists(t.Context(), "/live", false); err != nil || ok {
		t.Errorf("%v %v", ok, err)
	}
	b.see(".card", "gozkd why SESSION")
	b.see(".card tbody", id(one))
	b.fill("input", "Filter by id", id(two))
	b.gone(".card tbody", id(one))
	b.gotoHash("#/z/live")
	b.click("a", "Did its session end?")
	b.until("location.hash === '#/sessions?filter=%2Flive'")
	b.see(".card tbody td div", "an administrator, or the embedding program, ended it at the server")
	b.see(".card tbody td div", "deleted /live")
	const part = `{"ended":[{"session":"0x7","ended_ms":1,"cause":"unknown","story":"session 0x7 ended at 2026-11-22T08:00:00.000Z: server 2 decided that: ask it for the reason, unless it has restarted since"}]}`
	b.eval("{ const real = fetch; window.fetch = (u, o) => (String(u).includes('/ui/api/ended') ? Promise.resolve(new Response("+quote(part)+")) : real(u, o)); }", nil)
	b.press("r")
	b.see(".card tbody code", "gozkd why 0x7") // which asks the other members, too
}

func TestWatches(t *testing.T) {
	x := open(t, server.Config{}, web.Options{Anonymous: web.Admin})
	one, two := x.connect(), x.connect()
	x.fill(map[string]string{"/app/a": "", "/app/b": "", "/other": ""})
	for path, zk := range map[string]*client.Client{"/app/a": one, "/app/b": two, "/other": two} {
		if err := zk.AddWatch(t.Context(), path, proto.AddWatchPersistentRecursive); err != nil {
			t.Fatal(err)
		}
	}
	b := x.visit(t, "#/watches")
	b.see("table", "/app/a")
	b.see("table", "recursive")
	b.fill("input", "Path, or", "/app/*")
	b.gone("table", "/other")
	b.see("table", "/app/b")
	b.fill("input", "Session 0x", id(one))
	b.gone("table", "/app/b")
	b.see("table", "/app/a")
	b.fill("input", "Client address", "10.9.9.9")
	b.see("main", "No watches")
	// The address restores the filters.
	hash := ask[string](b, "location.hash")
	b.open(hash)
	b.see("main", "No watches")
	b.fill("input", "Client address", "127.0.0.1")
	b.see("table", "/app/a")
	b.gone("table", "/app/b")
}

// kazoo recreates what kazoo made on a server, with a session for each of its clients.
func kazoo(x *site) {
	x.t.Helper()
	raw, err := os.ReadFile(filepath.FromSlash("../../web/internal/locks/testdata/kazoo.json"))
	if err != nil {
		x.t.Fatal(err)
	}
	var dirs []struct {
		Path     string
		Data     []byte
		Children []struct {
			Name    string
			Session int
			Data    []byte
		}
	}
	if err := json.Unmarshal(raw, &dirs); err != nil {
		x.t.Fatal(err)
	}
	sessions := map[int]*client.Client{}
	for _, d := range dirs {
		x.fill(map[string]string{d.Path: string(d.Data)})
		for _, c := range d.Children {
			zk := sessions[c.Session]
			if zk == nil {
				zk = x.connect()
				sessions[c.Session] = zk
			}
			x.create(zk, d.Path+"/"+c.Name, string(c.Data), client.CreateOptions{Ephemeral: c.Session != 0})
		}
	}
}

// Locks as kazoo and our recipes make them, which are also Curator's: their queue, and a cycle.
func TestLocks(t *testing.T) {
	x := open(t, server.Config{}, web.Options{Anonymous: web.Admin})
	kazoo(x)
	ctx := t.Context()
	dial := func() *recipes.Client {
		c, err := recipes.Connect(ctx, []string{x.server.Addr().String()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() }) // their locks are in a cycle
		return c
	}
	one, two := dial(), dial()
	hold := func(c *recipes.Client, path, text string) {
		if _, err := lock.NewMutex(c, path, []byte(text)).Lock(ctx); err != nil {
			t.Fatal(err)
		}
	}
	request := func(c *recipes.Client, path, text string) {
		go lock.NewMutex(c, path, []byte(text)).Lock(ctx) //nolint:errcheck // in a cycle until the test ends
	}
	hold(one, "/locks/a", "first")
	hold(two, "/locks/b", "second")
	request(one, "/locks/b", "first, too")
	latch := election.NewLatch(one, "/leader", "node-1")
	if err := latch.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := latch.Await(ctx); err != nil {
		t.Fatal(err)
	}

	b := x.visit(t, "#/locks")
	for _, path := range []string{"/fx/lock", "/fx/rw", "/fx/sem", "/locks/a", "/leader"} {
		b.see(".lock h3", path)
	}
	card := func(path string) string {
		return "person.all('.lock').find((e) => e.querySelector('h3').textContent === " + quote(path) + ")"
	}
	lanes := func(path, want string) {
		t.Helper()
		b.until("[..." + card(path) + ".querySelectorAll('.lane-place')].map((e) => e.textContent).join(' ') === " + quote(want))
	}
	lanes("/fx/lock", "holds 1")
	lanes("/fx/rw", "holds holds 1 2")
	lanes("/fx/sem", "holds holds 1 2")
	lanes("/leader", "leads")
	lanes("/locks/b", "holds 1")
	b.until("person.normal(" + card("/fx/sem") + ".innerText).includes('2 of 2 leases')")
	b.until("person.normal(" + card("/locks/b") + ".innerText).includes('first, too 0x')")
	b.until("document.querySelectorAll('.graph .wait').length >= 3")
	b.see("main", "no deadlocks")

	request(two, "/locks/a", "second, too") // now each waits for the other
	b.press("r")
	b.see("main .cycle", "Deadlock: these sessions wait for each other")
	b.until("document.querySelectorAll('.graph:not(.loop) .wait.stuck').length === 2")
	b.until("document.querySelectorAll('.graph.loop .wait.stuck').length === 2")
	b.until(`[...document.querySelectorAll('.graph')].every((graph) => {
		const ends = [...graph.querySelectorAll('.wait')].map((e) => [0, e.getTotalLength()].map((at) => e.getPointAtLength(at)));
		return ends.every(([begin]) => ends.every(([, tip]) => Math.hypot(begin.x - tip.x, begin.y - tip.y) > 8));
	})`) // no arc begins where another has its tip
	b.see(".cycle li", "waits for")
	b.see("main", "1 deadlock")
	b.fill("input", "Filter by path", "/locks/")
	b.gone(".lock", "/fx/lock")
	b.until("person.all('.lock').length === 2")
	hash := ask[string](b, "location.hash")
	b.open(hash)
	b.until("person.all('.lock').length === 2")
}

// The first screen says whether all is well, and what matters of the applications that it finds.
func TestOverview(t *testing.T) {
	x, _, b := begin(t, web.Read, nil, "")
	b.see("main h1", "Overview")
	b.see(".verdict", "All is well")
	b.see("main", "None yet")
	b.openNoting("/ui/api/ensemble", "")
	b.until("asked.length > 2") // the line below the tabs asks every 3 s, and the overview every 5
	if !ask[bool](b, "asked.every((at, i, all) => i === 0 || at - all[i - 1] > 2000)") {
		t.Errorf("the ensemble was asked twice at once: %v", ask[[]float64](b, "asked"))
	}
	x.fill(map[string]string{
		"/brokers/ids/1": "{}", "/brokers/ids/2": "{}", "/controller_epoch": "1", "/controller": `{"brokerid":2}`,
		"/brokers/topics/a/partitions/0/state": `{"leader":1}`, "/brokers/topics/a/partitions/1/state": `{"leader":-1}`,
		"/solr/live_nodes/n1": "", "/solr/collections/c1": "", "/solr/overseer_elect/leader": `{"id":"72-n1:8983_solr-n_0000000000"}`,
		"/service/main/members/pg-1": "", "/service/main/initialize": "1", "/service/main/leader": "pg-1",
		"/service/main/members/pg-2": `{"xlog_location":5000}`, "/service/main/status": `{"optime":6024}`,
		"/clickhouse/task_queue/ddl": "", "/clickhouse/tables/s1/t1/metadata": "", "/clickhouse/tables/s1/t1/replicas/r1/is_active": "", "/clickhouse/tables/s1/t1/replicas/r2/log": "",
		"/discovery/web/i1": `{"address":"10.0.0.1","enabled":true}`, "/discovery/web/i2": `{"address":"10.0.0.2","enabled":false}`,
		"/discovery/example/shop/i1": `{"address":"10.0.0.3"}`,
		"/other/a":                   "", "/other/b": "four", "/ha/ActiveBreadCrumb": "", "/hadoop-ha/shop/ActiveBreadCrumb": "",
	})
	x.create(x.connect(), "/ha/ActiveStandbyElectorLock", "nn1", client.CreateOptions{ACL: []proto.ACL{
		{Perms: proto.PermDelete, ID: proto.ID{Scheme: "world", ID: "anyone"}},
	}})
	b.open("#/overview")
	for _, app := range [][]string{
		{"Kafka", "1 partition without leader", "2 brokers", "1 topic", "controller is broker 2"},
		{"Solr", "1 live node", "1 collection", "overseer is n1:8983_solr"},
		{"Patroni", "main: leader is pg-1", "main: 2 members", "main: lag 1.0 KiB"},
		{"ClickHouse", "1 replica read-only", "2 replicas"},
		{"Services", "1 service", "2 instances, 1 disabled", "1 instance"},
		{"Hadoop HA", "not all of it is readable"},
	} {
		card := "person.all('.app').find((e) => e.querySelector('h3').textContent === " + quote(app[0]) + ")"
		for _, fact := range app[1:] {
			b.until("person.normal(" + card + "?.innerText || '').includes(" + quote(fact) + ")")
		}
	}
	b.see(".verdict", "Needs attention")
	b.see(".verdict", "Kafka at /: 1 partition without leader.")
	b.see(".app", "shop: no active name node") // in the directory that Hadoop has by default
	b.see(".facts", "/other 3 znodes, 4 B")
	b.click(".verdict a", "Kafka at /")
	b.until("location.hash === '#/z/brokers/topics/a/partitions/1/state'")
	b.gotoHash("#/overview")
	b.click(".app li a", "2 instances, 1 disabled")
	b.until("location.hash === '#/z/discovery'")
	b.gotoHash("#/overview")
	b.click(".app a", "Solr")
	b.until("location.hash === '#/z/solr'")
}

func TestEnsembleAndActivity(t *testing.T) {
	x, zk, b := begin(t, web.Admin, map[string]string{"/hot": ""}, "#/ensemble")
	for _, text := range []string{"Server 1", "this server", "standalone", server.Version, "Znodes", "Digest", "Archive", "Certificate"} {
		b.see("main", text)
	}
	b.gotoHash("#/activity")
	b.see("h2", "Hot paths")
	// What other callers of REST read is hot, what the page itself reads is not.
	const read = "Array.from({length: 50}, () => api.request('GET', 'znodes/v2/zookeeper/quota'))"
	b.eval("import('/ui/js/api.js').then((api) => Promise.all("+read+")).then(() => 0)", nil)
	for range 50 {
		r, err := http.Get(x.origin + "/znodes/v2/zookeeper")
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Body.Close(); err != nil || r.StatusCode != http.StatusOK {
			t.Fatal(r.Status, err)
		}
	}
	b.see("table", "/zookeeper")
	if ask[bool](b, "person.has('table', '/zookeeper/quota')") {
		t.Error("the page's own reads are among the hot paths")
	}
	done := make(chan struct{})
	t.Cleanup(func() { <-done })
	ctx := t.Context()
	go func() { // until the end of the test
		defer close(done)
		for ctx.Err() == nil {
			if _, _, err := zk.Get(ctx, "/hot", false); err != nil {
				return
			}
		}
	}()
	b.see("table", "/hot")
	b.see("table", id(zk))
	b.see("table", "getData")
	b.until("document.querySelectorAll('svg.chart polyline')[0].getAttribute('points').split(' ').length >= 3")
}

// Slow requests name their client and znode, and their table keeps the order that a person chose.
func TestActivity_SlowRequests(t *testing.T) {
	x := open(t, server.Config{SlowRequest: time.Nanosecond}, web.Options{Anonymous: web.Admin})
	zk := x.connect()
	x.create(zk, "/late", "", client.CreateOptions{})
	b := x.visit(t, "#/activity")
	b.see("h2", "Slow requests")
	row := "person.all('tr').filter((e) => e.closest('table').caption.textContent === 'Slow requests').find((e) => e.innerText.includes('/late'))"
	for _, text := range []string{"create", id(zk), "127.0.0.1:"} {
		b.until(row + ".innerText.includes(" + quote(text) + ")")
	}
	b.until(row + ".querySelector('time')")
	b.click("th button", "=Took")
	b.eval("window.row = "+row, nil)
	b.until("window.row !== " + row) // read again
	if b.count("th[aria-sort=descending]", "Took") != 1 {
		t.Error("the order of the table was lost")
	}
	b.click("tr a", "/late")
	b.until("location.hash === '#/z/late'")
}

func TestSearch(t *testing.T) {
	_, _, b := begin(t, web.Read, map[string]string{
		"/app/config": "host=db1", "/app/deep/config-old": "host=db2", "/app/jobs/1": "needle in data", "/elsewhere/config": "",
	}, "#/search?root=/app")
	b.fill("input", "Name", "config*")
	b.press("Enter")
	b.see("table", "/app/config")
	b.see("table", "/app/deep/config-old")
	b.see("main", "2 found")
	b.see("main", "complete")
	b.gone("table", "/elsewhere")
	b.fill("input", "Name", "")
	b.fill("input", "Content", "needle")
	b.click("button", "=Search")
	b.see("table", "needle in data")
	b.see("main", "1 found")
	b.fill("input", "Content", "db[0-9]$")
	b.click("label", "regular expressions")
	b.click("button", "=Search")
	b.see("main", "2 found")
	hash := ask[string](b, "location.hash")
	b.open(hash)
	b.see("main", "2 found")
	b.fill("input", "Content", "db[")
	b.click("button", "=Search")
	b.see("main [role=alert]", "failed")
	b.fill("input", "Content", "db1")
	b.click("button", "=Search")
	b.see("main", "1 found")
	b.click("table a", "/app/config")
	b.see(".data", "host=db1")
}

func TestCompare(t *testing.T) {
	_, _, b := begin(t, web.Admin, map[string]string{"/new/a": "same", "/new/b": "one\ntwo", "/new/c": "", "/old/a": "same", "/old/b": "one\nthree", "/old/d": ""}, "#/compare")
	b.fill("input", "Left", "/new")
	b.fill("input", "Right", "/old")
	b.click("button", "=Compare")
	b.see("main", "3 differences")
	b.see("main", "differs")
	b.see("main", "only left")
	b.see("main", "only right")
	b.see(".removed", "two")
	b.see(".added", "three")
	hash := ask[string](b, "location.hash")
	b.open(hash)
	b.see("main", "3 differences")

	// With another ensemble.
	y := open(t, server.Config{}, web.Options{Anonymous: web.Read})
	y.fill(map[string]string{"/new/a": "same", "/new/b": "one\nfour", "/new/c": ""})
	b.fill("input", "Right", "/new")
	b.fill("input", "On another ensemble", y.server.Addr().String())
	b.click("button", "=Compare")
	b.see("main", "1 difference")
	b.see(".added", "four")
}

// downloads lets the tab save. The function that it returns waits for one of this many lines.
func (b *tab) downloads() func(lines int) (file string) {
	b.t.Helper()
	dir := b.t.TempDir()
	b.call("Browser.setDownloadBehavior", map[string]any{"behavior": "allow", "downloadPath": dir, "browserContextId": b.Profile()})
	return func(lines int) (file string) {
		b.t.Helper()
		for ctx := b.t.Context(); file == "" && ctx.Err() == nil; b.until("true") { // a turn of the browser
			found, err := filepath.Glob(filepath.Join(dir, "*"))
			if err != nil {
				b.t.Fatal(err)
			}
			for _, f := range found {
				if raw, err := os.ReadFile(f); err == nil && strings.Count(string(raw), "\n") >= lines && !strings.HasSuffix(f, ".crdownload") {
					file = f
				}
			}
		}
		return file
	}
}

// Selected children are exported with what is below them, in the format of an export.
func TestChildren_Export(t *testing.T) {
	x, zk, b := begin(t, web.Write, map[string]string{"/app/a": "one", "/app/b/c": "two \u2028 \"quoted\"", "/app/b/bin": "\xff\x00", "/app/left": "", "/app/lost": ""}, "#/z/app")
	for _, name := range []string{"a", "b", "lost"} {
		b.click("input", "=Select "+name)
	}
	if err := zk.Delete(t.Context(), "/app/lost", -1); err != nil {
		t.Fatal(err)
	}
	b.gone(".child-list", "lost")
	b.click("input", "=Select left")
	if err := zk.Delete(t.Context(), "/app/left", -1); err != nil {
		t.Fatal(err)
	}
	files := b.downloads()
	b.click("button", "=Export")
	raw, err := os.ReadFile(files(6))
	if err != nil {
		t.Fatal(err)
	}
	b.see("main", "4 znodes exported")
	loader := subtree.Loader{ZK: zk, To: "/copy", Existing: subtree.Refuse}
	x.fill(map[string]string{"/copy": ""})
	if err := loader.Load(t.Context(), bytes.NewReader(raw)); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	for path, want := range map[string]string{"/copy/a": "one", "/copy/b/c": "two \u2028 \"quoted\"", "/copy/b/bin": "\xff\x00"} {
		if got := x.text(zk, path); got != want {
			t.Errorf("%s is %q", path, got)
		}
	}
}

func TestTransfer(t *testing.T) {
	x, zk, b := begin(t, web.Write, map[string]string{"/app/a": "one", "/app/b/c": "two"}, "#/transfer?root=/app")
	b.click("button", "Count the znodes")
	b.see("main", "4 znodes")
	files := b.downloads()
	b.click("button", "=Download")
	file := files(4)
	b.fill("input", "Into", "/copy")
	var root struct{ Root struct{ NodeID int } }
	if err := b.Call(t.Context(), "DOM.getDocument", nil, &root); err != nil {
		t.Fatal(err)
	}
	var input struct{ NodeID int }
	if err := b.Call(t.Context(), "DOM.querySelector", map[string]any{"nodeId": root.Root.NodeID, "selector": "input[type=file]"}, &input); err != nil {
		t.Fatal(err)
	}
	b.call("DOM.setFileInputFiles", map[string]any{"nodeId": input.NodeID, "files": []string{file}})
	b.click("button", "=Import")
	b.see("main", "4 created")
	if got := x.text(zk, "/copy/b/c"); got != "two" {
		t.Errorf("%q", got)
	}
	b.click("button", "=Import")
	b.see("main [role=alert]", "failed") // it exists
	b.choose("Znodes that exist", "replace")
	if _, err := zk.Set(t.Context(), "/copy/a", []byte("other"), -1); err != nil {
		t.Fatal(err)
	}
	b.click("button", "=Import")
	b.see("dialog", "overwritten, whatever their versions")
	b.click("dialog button", "=Cancel")
	b.closed()
	b.click("button", "=Import")
	b.click("dialog button", "=Replace")
	b.closed()
	b.see("main", "changed")
	if got := x.text(zk, "/copy/a"); got != "one" {
		t.Errorf("%q", got)
	}
}

// differing is an answer about an ensemble whose second member differs from the leader.
const differing = `{"mode":"leader","leader":1,"whole":true,"version":"3.9.5,","zxid":"0x7","digest":"00","znodes":5,"dataBytes":10,
	"values":{"gozkd_applied_index":7,"gozkd_feature_level":4,"gozkd_feature_level_max":4},"members":[{"id":1,"role":"leader","own":true},
	{"id":2,"role":"follower","answers":{"mode":"follower","version":"3.9.4","values":{"gozkd_applied_index":7,"znode_count":6,"approximate_data_size":10}}},
	{"id":3,"role":"follower","answers":{"mode":"leader","version":"3.9.5","values":{"gozkd_applied_index":6,"znode_count":4,"gozkd_feature_level":4,"gozkd_feature_level_max":4}}}]}`

// The table of the ensemble marks what must be equal and is not: other data at the same entry, but
// not those of a member that lags.
func TestEnsemble_Differences(t *testing.T) {
	_, _, b := begin(t, web.Read, nil, "#/z/")
	b.see(".tree", "zookeeper")
	b.eval("{ const real = fetch; window.fetch = (u, o) => (String(u).includes('/ui/api/ensemble') ? Promise.resolve(new Response("+quote(differing)+")) : real(u, o)); }", nil)
	b.gotoHash("#/ensemble")
	b.see("tbody", "Version")
	const marked = "[...document.querySelectorAll('main tbody td .badge')].filter((e) => e.textContent === 'differs').map((e) => e.closest('tr').cells[0].textContent + ' ' + e.closest('td').dataset.label)"
	if got, want := ask[[]string](b, marked), []string{"Reports as Server 3", "Version Server 2", "Znodes Server 2"}; !slices.Equal(got, want) {
		t.Errorf("marked are %q, want %q", got, want)
	}
	// A narrow window leaves out the members that do not tell a fact.
	b.size(390, 844)
	for name, want := range map[string]int{"Zxid": 1, "Feature level": 2, "Applied": 3} {
		b.until(fmt.Sprintf("person.all('main tbody tr', %s).flatMap((e) => [...e.cells]).filter((e) => e.matches('td') && person.seen(e)).length === %d", quote(name), want))
	}
}
