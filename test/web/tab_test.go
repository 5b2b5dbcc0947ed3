package web

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/test/web/browser"
	"github.com/gozkd/gozkd/web"
)

//go:embed testdata/person.js
var personJS string

// patience bounds a wait for something on the page. No test measures it.
const patience = 12 * time.Second

// tab is a tab of the browser, used by a person.
type tab struct {
	t *testing.T
	*browser.Page
	x *site

	mu       sync.Mutex
	faults   []string // exceptions, refusals of the policy, requests elsewhere
	requests []string // METHOD path?query
}

// visit opens the explorer at an address such as "#/z/app".
func (x *site) visit(t *testing.T, hash string) *tab {
	t.Helper()
	b := &tab{t: t, x: x}
	p, err := chromium.NewPage(t.Context(), b.event)
	if err != nil {
		t.Fatal(err)
	}
	b.Page = p
	for _, domain := range []string{"Page", "Runtime", "Network", "Log"} {
		b.call(domain+".enable", nil)
	}
	b.call("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": personJS})
	b.call("Emulation.setFocusEmulationEnabled", map[string]any{"enabled": true})
	b.size(1280, 800)
	b.open(hash)
	t.Cleanup(b.end)
	return b
}

// begin starts a server with znodes, and opens the explorer as a caller with a role.
func begin(t *testing.T, role web.Role, znodes map[string]string, hash string) (x *site, zk *client.Client, b *tab) {
	t.Helper()
	x = open(t, server.Config{}, web.Options{Anonymous: role})
	zk = x.connect()
	x.fill(znodes)
	return x, zk, x.visit(t, hash)
}

// end closes the tab and reports what went wrong in it.
func (b *tab) end() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if b.t.Failed() {
		b.keep(ctx)
	}
	if err := b.Page.Close(ctx); err != nil {
		b.t.Error(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.faults {
		b.t.Error("the page: " + f)
	}
}

// shot returns a picture of the page.
func (b *tab) shot(ctx context.Context) ([]byte, error) {
	var shot struct{ Data []byte }
	err := b.Call(ctx, "Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	return shot.Data, err
}

// keep saves a picture of a page on which a test has failed.
func (b *tab) keep(ctx context.Context) {
	raw, err := b.shot(ctx)
	name := filepath.Join(os.TempDir(), strings.ReplaceAll(b.t.Name(), "/", "_")+".png")
	if err == nil && os.WriteFile(name, raw, 0o644) == nil {
		b.t.Log("a picture of the page: " + name)
	}
}

// event notes what a person does not see.
func (b *tab) event(method string, params json.RawMessage) {
	var p struct {
		Request          struct{ Method, URL string }
		Entry            struct{ Source, Level, Text, URL string }
		ExceptionDetails struct {
			Text      string
			Exception struct{ Description string }
		}
		Type string
		Args []struct{ Value any }
	}
	_ = json.Unmarshal(params, &p) // other events have other fields
	b.mu.Lock()
	defer b.mu.Unlock()
	switch method {
	case "Network.requestWillBeSent":
		path, ours := strings.CutPrefix(strings.Replace(p.Request.URL, "//"+b.x.user, "//", 1), b.x.origin)
		b.requests = append(b.requests, p.Request.Method+" "+path)
		scheme, _, _ := strings.Cut(p.Request.URL, ":") // data: the icons of the browser's own calendar
		if !ours && !slices.Contains([]string{"about", "blob", "data"}, scheme) {
			b.faults = append(b.faults, "a request to "+p.Request.URL)
		}
	case "Runtime.exceptionThrown":
		b.faults = append(b.faults, "exception "+p.ExceptionDetails.Text+" "+p.ExceptionDetails.Exception.Description)
	case "Log.entryAdded":
		// Answers such as 409 and lost connections are part of the tests.
		if p.Entry.Level == "error" && p.Entry.Source != "network" {
			b.faults = append(b.faults, p.Entry.Source+": "+p.Entry.Text)
		}
	case "Runtime.consoleAPICalled":
		if p.Type == "error" || p.Type == "assert" {
			b.faults = append(b.faults, fmt.Sprint("console: ", p.Args))
		}
	case "Page.javascriptDialogOpening":
		b.faults = append(b.faults, "a dialog of a script: "+string(params))
	}
}

// asked returns the requests since the last call that contain a text.
func (b *tab) asked(text string) (found []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.requests {
		if strings.Contains(r, text) {
			found = append(found, r)
		}
	}
	b.requests = nil
	return found
}

func (b *tab) call(method string, params map[string]any) {
	b.t.Helper()
	if err := b.Call(b.t.Context(), method, params, nil); err != nil {
		b.t.Fatal(err)
	}
}

// open loads the explorer anew at an address.
func (b *tab) open(hash string) {
	b.t.Helper()
	b.call("Page.navigate", map[string]any{"url": "about:blank"})
	b.call("Page.navigate", map[string]any{"url": strings.Replace(b.x.origin, "//", "//"+b.x.user, 1) + "/ui/" + hash})
	b.until("document.readyState === 'complete' && person.has('#user', '')")
}

// openNoting opens the explorer as open does, and notes in window.asked when the page calls fetch
// for an address with this part. The browser may send one of two requests later than the other.
func (b *tab) openNoting(part, hash string) {
	b.t.Helper()
	b.call("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": `window.asked = []; { const real = fetch; window.fetch = (...args) => {
		if (String(args[0]).includes(` + quote(part) + `)) asked.push(Date.now()); return real(...args); }; }`})
	b.open(hash)
}

// gotoHash changes the address as a link does, and waits until the page has left the one before.
func (b *tab) gotoHash(hash string) {
	b.t.Helper()
	b.eval(`new Promise((done) => { const hash = `+quote(hash)+`; if (location.hash === hash) { done(); return; }
		addEventListener('hashchange', () => done(), {once: true}); location.hash = hash; })`, nil)
}

func (b *tab) size(width, height int) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false})
}

func quote(s string) string {
	q, _ := json.Marshal(s) // a string is always JSON
	return string(q)
}

// eval evaluates an expression in the page.
func (b *tab) eval(expression string, value any) {
	b.t.Helper()
	if err := b.Eval(b.t.Context(), expression, value); err != nil {
		b.t.Fatal(err)
	}
}

func ask[T any](b *tab, expression string) (v T) {
	b.t.Helper()
	b.eval(expression, &v)
	return v
}

// await waits until an expression is true, and returns its value.
func (b *tab) await(expression string) json.RawMessage {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	loop := `new Promise((done) => { const look = () => { let v = null; try { v = (` + expression + `); } catch (e) { v = null; }
		if (v) { done(v); } else { setTimeout(look, 10); } }; look(); })`
	for {
		var v json.RawMessage
		err := b.Eval(ctx, loop, &v)
		if err == nil {
			return v
		}
		if ctx.Err() != nil {
			var shown string
			_ = b.Eval(b.t.Context(), `location.hash + ', focus: ' + person.focused() + '\n' + person.text()`, &shown) // the best that can be told
			b.t.Fatalf("never true: %s\nThe page:\n%.3000s", expression, shown)
		}
		// The page was left while the expression was evaluated.
	}
}

// until waits until an expression is true.
func (b *tab) until(expression string) {
	b.t.Helper()
	b.await("Boolean(" + expression + ")")
}

// see waits until an element in sight has a text.
func (b *tab) see(css, text string) {
	b.t.Helper()
	b.until("person.has(" + quote(css) + ", " + quote(text) + ")")
}

// follows waits until the page is live by the stream of changes whose address ends like this. For a
// moment after a change of view the page is still live by the stream of the view before.
func (b *tab) follows(end string) {
	b.t.Helper()
	b.until("person.follows(" + quote(end) + ")")
}

// gone waits until no element in sight has a text.
func (b *tab) gone(css, text string) {
	b.t.Helper()
	b.until("!person.has(" + quote(css) + ", " + quote(text) + ")")
}

// closed waits until no dialog is left, and the focus is back where it was.
func (b *tab) closed() {
	b.t.Helper()
	b.until("!document.querySelector('dialog') && (document.activeElement?.checkVisibility() ?? true)")
}

// count returns how many elements are in sight.
func (b *tab) count(css, name string) int {
	b.t.Helper()
	return ask[int](b, "person.all("+quote(css)+", "+quote(name)+").length")
}

// point waits until an element may be clicked, and returns where.
func (b *tab) point(css, name string) (x, y float64) {
	b.t.Helper()
	var p struct{ X, Y float64 }
	// At the same place in two frames: not while it moves.
	raw := b.await(fmt.Sprintf(`(() => { const p = person.point(%s, %s); const same = p && window.lastPoint && p.x === lastPoint.x && p.y === lastPoint.y;
		window.lastPoint = p; return same ? p : null; })()`, quote(css), quote(name)))
	if err := json.Unmarshal(raw, &p); err != nil {
		b.t.Fatal(err)
	}
	return p.X, p.Y
}

// click clicks an element with the mouse.
func (b *tab) click(css, name string) {
	b.t.Helper()
	x, y := b.point(css, name)
	b.mouse(x, y, "mouseMoved", "mousePressed", "mouseReleased")
}

func (b *tab) mouse(x, y float64, events ...string) {
	b.t.Helper()
	for _, kind := range events {
		b.call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1})
	}
}

// virtual are the codes of keys that are no letters.
var virtual = map[string]int{"Enter": 13, "Tab": 9, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40,
	"Home": 36, "End": 35, "PageUp": 33, "PageDown": 34, "Backspace": 8, "Delete": 46, " ": 32}

// press presses keys, one after the other: "Shift+Tab", "e", "Control+a".
func (b *tab) press(keys ...string) {
	b.t.Helper()
	for _, key := range keys {
		modifiers := 0
		for prefix, bit := range map[string]int{"Control+": 2, "Shift+": 8} {
			if rest, ok := strings.CutPrefix(key, prefix); ok {
				key, modifiers = rest, bit
			}
		}
		down := map[string]any{"type": "rawKeyDown", "key": key, "modifiers": modifiers, "windowsVirtualKeyCode": virtual[key], "code": key}
		if len(key) == 1 && modifiers != 2 {
			down["type"], down["text"] = "keyDown", key
		}
		if key == "Enter" {
			down["type"], down["text"] = "keyDown", "\r"
		}
		if modifiers == 2 && key == "a" {
			down["commands"] = []string{"selectAll"}
		}
		b.call("Input.dispatchKeyEvent", down)
		b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "modifiers": modifiers, "windowsVirtualKeyCode": virtual[key], "code": key})
	}
}

// fill replaces what an input or text area has.
func (b *tab) fill(css, name, text string) {
	b.t.Helper()
	b.click(css, name)
	b.press("Control+a")
	b.write(text)
}

// write types text where the focus is.
func (b *tab) write(text string) {
	b.t.Helper()
	if text == "" {
		b.press("Delete")
		return
	}
	b.call("Input.insertText", map[string]any{"text": text})
}

// choose selects an option of a select element.
func (b *tab) choose(name, value string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`(() => { const s = person.all('select', %s)[0]; if (!s || s.disabled) return false; s.value = %s;
		s.dispatchEvent(new Event('change', {bubbles: true})); return s.value === %[2]s; })()`, quote(name), quote(value)))
}
