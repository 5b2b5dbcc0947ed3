package web

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/test/compat/server"
)

// poll calls done again and again until it returns true.
func poll(t *testing.T, what string, done func() bool) {
	t.Helper()
	late, again := watchdog.After(t, time.Minute), time.NewTicker(20*time.Millisecond)
	defer again.Stop()
	for !done() {
		select {
		case <-again.C:
		case <-late:
			t.Fatal("never: " + what)
		}
	}
}

// openEnsemble builds the program and starts three servers with an archive, and returns the site of
// the first.
func openEnsemble(t *testing.T) (*site, *server.Ensemble) {
	t.Helper()
	needBrowser(t)
	gozkd := server.KindNamed(t.Context(), server.Gozkd, "", t.TempDir())
	place := "file:///" + strings.TrimPrefix(filepath.ToSlash(t.TempDir()), "/")
	keys := server.Defaults()
	maps.Copy(keys, map[string]string{
		"admin.enableServer": "true", "admin.serverPort": "0", "gozkd.web": "write", "gozkd.archive.url": place, "gozkd.archive.intervalMs": "100",
	})
	e, err := gozkd.StartEnsemble(t.Context(), server.EnsembleOptions{Members: 3, Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(e.Log())
		}
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	})
	x := &site{t: t}
	served := regexp.MustCompile(`serving REST and the explorer: .*url=(http://\S+)/ui/`)
	poll(t, "the explorer is served", func() bool {
		found := served.FindStringSubmatch(e.Members[0].Log())
		if found != nil {
			x.origin = found[1]
		}
		return found != nil
	})
	return x, e
}

// travels goes from the third newest version of /config to the tree of that time, and back.
func travels(b *tab, zk *client.Client) {
	b.t.Helper()
	if _, _, err := zk.Create(b.t.Context(), "/later", nil, client.CreateOptions{}); err != nil {
		b.t.Fatal(err)
	}
	b.click(".stack .stack > section:nth-child(3) a", "The tree then")
	b.see(".znode", "port=22")
	b.see(".time-bar", "as of zxid 0x")
	b.see(".tree", "config")
	b.gone(".tree", "later")
	b.until("person.all('.actions button', 'Edit')[0].disabled")
	b.click(".crumbs a", "root")
	b.see(".child-list", "config")
	b.gone(".child-list", "later")
	b.until("location.hash.includes('at=0x')")
	b.click(".child-list a", "config")
	b.see(".znode", "port=22")
	b.click(".time-bar button", "Now")
	b.see(".znode", "port=24")
	b.see(".tree", "later")
	b.until("!location.hash.includes('at=') && !person.all('.actions button', 'Edit')[0].disabled")
}

// recent looks at what changed in the last hour, and from there at one of the changes.
func recent(b *tab, zk *client.Client) {
	b.t.Helper()
	if err := zk.Delete(b.t.Context(), "/later", -1); err != nil {
		b.t.Fatal(err)
	}
	stat, err := zk.Set(b.t.Context(), "/config", []byte("host=db2\nport=25"), -1)
	if err != nil {
		b.t.Fatal(err)
	}
	poll(b.t, "the change is in the archive", func() bool { return b.x.archived("/config", int(stat.Version)) })
	b.gotoHash("#/z/")
	b.click(".links a", "Changes below")
	b.until("location.hash === '#/history?below=3600&path=%2F'")
	for i, text := range []string{"changed /config " + id(zk), "deleted /later " + id(zk), "created /later " + id(zk), "changed /config " + id(zk)} {
		b.see(fmt.Sprintf("tbody tr:nth-child(%d)", i+1), text)
	}
	// The members change /zookeeper/config when they begin, before the archive's base or after it.
	b.until("person.has('main', '28 changes of 2 znodes') || person.has('main', '29 changes of 3 znodes')")
	b.click("tbody tr:nth-child(5) a", "What changed")
	b.see(".removed", "port=22")
	b.see(".added", "port=23")
	b.click("a", "Newer versions")
	b.see(".added", "port=25")
	b.choose("What to show", "86400")
	b.see("main", "26 changes of 1 znode")
}

// between compares a subtree at two moments, before and after it was changed in every way.
func between(b *tab, zk *client.Client) {
	b.t.Helper()
	ctx := b.t.Context()
	read := []proto.ACL{{Perms: proto.PermRead, ID: proto.ID{Scheme: "world", ID: "anyone"}}}
	create := func(paths ...string) {
		for _, p := range paths {
			b.x.create(zk, p, "data of "+p, client.CreateOptions{})
		}
	}
	check := func(err error) {
		if err != nil {
			b.t.Fatal(err)
		}
	}
	set := func(path, data string) {
		_, err := zk.Set(ctx, path, []byte(data), -1)
		check(err)
	}
	create("/two", "/two/kept", "/two/back", "/two/changed", "/two/acl", "/two/gone", "/two/gone/below",
		"/two/gone/below/deep", "/two/anew")
	time.Sleep(20 * time.Millisecond) // moments have milliseconds
	from := time.Now()
	time.Sleep(20 * time.Millisecond)
	create("/two/created", "/two/created/below", "/two/brief")
	set("/two/changed", "port=2")
	set("/two/back", "elsewhere")
	set("/two/back", "data of /two/back")
	_, err := zk.SetACL(ctx, "/two/acl", read, -1)
	check(err)
	check(zk.Delete(ctx, "/two/brief", -1))
	check(zk.Delete(ctx, "/two/anew", -1))
	_, err = zk.Multi(ctx, client.DeleteOp("/two/gone/below/deep", -1), client.DeleteOp("/two/gone/below", -1),
		client.DeleteOp("/two/gone", -1))
	check(err)
	create("/two/anew")
	time.Sleep(20 * time.Millisecond)
	to := time.Now()
	time.Sleep(20 * time.Millisecond)
	create("/two/later")
	set("/two/changed", "port=3")
	poll(b.t, "the changes are in the archive", func() bool { return b.x.archived("/two/changed", 2) })
	const address = "#/history?path=/two&from=%s&to=%s"
	iso := func(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
	differences, err := json.Marshal([]string{"/two/acl changedACL", "/two/anew created anew", "/two/changed changeddata",
		"/two/created created", "/two/created/below created", "/two/gone deleted", "/two/gone/below deleted", "/two/gone/below/deep deleted"})
	check(err)
	b.gotoHash(fmt.Sprintf(address, iso(from), iso(to)))
	b.until("JSON.stringify(person.all('main summary').map((e) => person.normal(e.innerText)).filter((s) => s.startsWith('/')))" +
		" === " + quote(string(differences)))
	numbers := []string{"2 created", "3 deleted", "2 changed", "1 created anew", "2 znodes changed and as before"}
	for _, text := range numbers {
		b.see("main .badge", text)
	}
	for _, width := range []int{390, 1280} { // as TestWidths and TestAccessibility for views without an archive
		b.size(width, 844)
		b.until("document.querySelector('main').scrollWidth <= innerWidth")
		for _, broken := range ask[[]string](b, rulesJS) {
			b.t.Errorf("moments at %d: %s", width, broken)
		}
	}
	b.see(".removed", "data of /two/changed")
	b.see(".added", "port=2")
	b.click("details:nth-child(6) summary", "/two/gone")
	b.see("details:nth-child(6) pre", "data of /two/gone")
	b.click("details:nth-child(6) a", "before")
	b.see(".time-bar", "as of")
	b.see(".znode", "data of /two/gone")

	// The address without the second moment gets the end of the archive, and then stays.
	b.gotoHash("#/history?path=/two&from=" + iso(from))
	b.see("details", "/two/later created")
	b.see(".added", "port=3")
	b.until("new URLSearchParams(location.hash.split('?')[1]).get('to') > " + quote(iso(to)))
	b.gotoHash("#/history?path=/two/later&from=" + iso(from) + "&to=" + iso(to))
	b.see("main", "/two/later did not exist at either moment.")
	b.gotoHash("#/history?path=/two/kept&from=" + iso(from) + "&to=" + iso(to))
	b.see("main", "No difference")
	b.gotoHash("#/history?from=" + iso(from))
	b.see("main", "Which znode?")
	b.gotoHash("#/history?path=/two&from=nonsense")
	b.see("main", "The first moment must be a time before the second.")
	b.gotoHash("#/history?path=/two&below=nonsense")
	b.see("main", "archived up to")
	b.gotoHash("#/history?path=/two&from=" + iso(to) + "&to=" + iso(from))
	b.see("main", "The first moment must be a time before the second.")
	b.gotoHash("#/history?below=3600&path=/two")
	b.click("a", "Compare begin and end")
	b.see("details", "/two/kept created")
}

// The program with three servers and an archive: versions of a znode are compared, and the cards of
// the other members show what they answer.
func TestProgram(t *testing.T) {
	x, e := openEnsemble(t)
	zk, err := client.Connect(t.Context(), client.Config{Servers: e.Addrs()[:1]})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = zk.Close() })                                                // its server may have ended
	poll(t, "the archive has a base", func() bool { return x.archived("/config", -1) }) // without /config
	x.create(zk, "/config", "host=db0\nport=0", client.CreateOptions{})
	const versions = 25 // more than a page
	for i := 1; i < versions; i++ {
		if _, err := zk.Set(t.Context(), "/config", fmt.Appendf(nil, "host=db%d\nport=%d", i/10, i), -1); err != nil {
			t.Fatal(err)
		}
	}
	poll(t, "all versions are in the archive", func() bool { return x.archived("/config", versions-1) })

	b := x.visit(t, "#/z/config")
	b.click(".links a", "=History")
	const card = ".stack .stack > section"
	cards := func(n int) {
		t.Helper()
		b.until(fmt.Sprintf("document.querySelectorAll(%s).length === %d", quote(card), n))
	}
	cards(20)
	b.see(".removed", "port=23")
	b.see(".added", "port=24")
	b.gone(".removed", "host")
	b.click("button", "Older versions")
	cards(versions)
	b.gone("button", "Older versions")
	b.see(card+":last-child", "created")
	b.see(card+":last-child", id(zk))
	b.click(card+":last-child input[name=history-from]", "")
	b.see(".removed", "host=db0")
	b.see(".added", "host=db2")
	b.click(card+":nth-child(2) input[name=history-to]", "")
	b.see(".added", "port=23")
	b.click(card+":nth-child(3) summary", "Data")
	b.see(card+":nth-child(3) pre", "host=db2 port=22")
	travels(b, zk)
	recent(b, zk)
	between(b, zk)

	b.gotoHash("#/ensemble")
	fact := func(name string, member int) string {
		return fmt.Sprintf("person.normal([...document.querySelectorAll('main tbody th')].find((e) => e.textContent === %s)?.parentElement.cells[%d].innerText)", quote(name), member)
	}
	b.see("thead th:nth-child(2)", "Server 1 this server")
	for member := 1; member <= 3; member++ {
		for _, name := range []string{"Reports as", "Version", "Zxid", "Applied", "Znodes", "Data", "Data directory", "Log directory", "Log sync p99", "Digest", "Feature level", "Archive"} {
			b.until("!['', '–'].includes(" + fact(name, member) + ")")
		}
	}
	b.gone("tbody th", "Unknown")
	b.gone("tbody", "differs")
	b.see("main", "all members vote")
	leader, err := e.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lost := 2
	if leader.ID == lost {
		lost = 3
	}
	if err := e.Members[lost-1].Kill(); err != nil {
		t.Fatal(err)
	}
	b.until(fact("Unknown", lost) + ".includes('the rest')")
	b.until(fact("Role", lost) + ".includes('no connection')")
	b.see("main", "no connection to 1")
	b.gone("main", "all members vote")
	b.see("#health", "2 of 3 voting members connected")

	// Without a quorum every page says so, and offers no changes until it is back.
	b.gotoHash("#/z/config")
	b.follows("/config?watch=")
	b.until("!" + edit + ".disabled")
	if err := e.Members[4-lost].Kill(); err != nil { // the one besides the server of the page
		t.Fatal(err)
	}
	b.see("#quorum", "No quorum: this server reaches 1 of 3 members")
	b.size(390, 844)
	b.until("(() => { const e = document.querySelector('#quorum span'); return e.offsetHeight / parseFloat(getComputedStyle(e).lineHeight) < 2.5; })()") // two lines
	b.size(1280, 800)
	b.until("person.all('.live[aria-label=live]').length === 0")
	b.until(edit + ".disabled")
	b.gotoHash("#/locks")
	b.see("#quorum", "No quorum")
	e.Members[4-lost].Start()
	b.until("document.getElementById('quorum').hidden")
	b.gotoHash("#/z/config")
	b.until("!" + edit + ".disabled")
}

const edit = "person.all('.actions button').find((e) => e.textContent.includes('Edit'))"

// archived reports whether the archive has a znode's version, or any state at all for -1.
func (x *site) archived(path string, version int) bool {
	x.t.Helper()
	r, err := http.NewRequestWithContext(x.t.Context(), http.MethodGet, x.origin+"/ui/api/history?limit=1&path="+url.QueryEscape(path), nil)
	if err != nil {
		x.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		x.t.Fatal(err)
	}
	defer answer.Body.Close()
	var page struct{ Versions []struct{ Version int } }
	err = json.NewDecoder(answer.Body).Decode(&page)
	return err == nil && answer.StatusCode == http.StatusOK && (version < 0 || len(page.Versions) == 1 && page.Versions[0].Version == version)
}
