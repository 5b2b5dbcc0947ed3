package top

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

// terminal records what is drawn; tests wait for its content.
type terminal struct {
	mu    sync.Mutex
	drawn strings.Builder
	more  chan struct{} // capacity 1: holds a value after a Write
}

func newTerminal() *terminal { return &terminal{more: make(chan struct{}, 1)} }

func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case t.more <- struct{}{}:
	default:
	}
	return t.drawn.Write(p)
}

// await waits until text has been drawn and returns all output.
func (t *terminal) await(tb testing.TB, text string) string {
	tb.Helper()
	late := watchdog.After(tb, 20*time.Second)
	for {
		t.mu.Lock()
		drawn := t.drawn.String()
		t.mu.Unlock()
		if strings.Contains(drawn, text) {
			return drawn
		}
		select {
		case <-t.more:
		case <-late:
			tb.Fatalf("never drawn: %q in\n%q", text, drawn)
		}
	}
}

func sized() (width, height int, err error) { return 100, 30, nil }

// environment returns the Getenv of variables.
func environment(vars ...string) func(string) string {
	return func(name string) string {
		for _, v := range vars {
			if value, found := strings.CutPrefix(v, name+"="); found {
				return value
			}
		}
		return ""
	}
}

// TestShow runs the whole program without a real terminal: it draws, handles keys, exits with q and
// leaks nothing.
func TestShow(t *testing.T) {
	w := newWorld(t)
	w.thought = time.Millisecond
	in, keys := io.Pipe()
	screen := newTerminal()
	ended := make(chan error, 1)
	// Ended by the key q, and awaited below.
	go func() {
		m := newModel(colors(environment("TERM=xterm", "NO_COLOR=1")), time.Second)
		ended <- show(t.Context(), watching(w, 20*time.Millisecond), m, &display{keys: in, out: screen, size: sized})
	}()
	screen.await(t, "127.0.0.1:45420")
	screen.await(t, "connection refused")
	press := func(key string) {
		if _, err := io.WriteString(keys, key); err != nil {
			t.Error(err)
		}
	}
	press("2")
	screen.await(t, "add hotp to")
	press("q")
	if err := <-ended; err != nil {
		t.Error(err)
	}
	drawn := screen.await(t, leaveScreen)
	for _, color := range []string{"\x1b[31m", "\x1b[1;31m", "\x1b[33m", "\x1b[1;32m", "\x1b[36m"} {
		if strings.Contains(drawn, color) {
			t.Errorf("a color, %q, where none may be", color)
		}
	}
	if !strings.HasPrefix(drawn, enterScreen) || !strings.HasSuffix(drawn, leaveScreen) || !strings.Contains(drawn, "\x1b[1m") {
		t.Errorf("drawn: %q", drawn)
	}
	if err := keys.Close(); err != nil {
		t.Error(err)
	}
}

// A signal ends the program like q. It goes on without keys where there is no input.
func TestShow_Signal(t *testing.T) {
	w := newWorld(t)
	w.thought = time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	screen := newTerminal()
	ended := make(chan error, 1)
	// Ended by cancel, and awaited below.
	go func() {
		m := newModel(colors(environment()), time.Second)
		ended <- show(ctx, watching(w, 20*time.Millisecond), m, &display{keys: strings.NewReader(""), out: screen, size: sized})
	}()
	screen.await(t, "127.0.0.1:45420")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if drawn := screen.await(t, leaveScreen); !strings.Contains(drawn, "\x1b[1;31m") {
		t.Errorf("no red in %q", drawn)
	}
}

// The error of a terminal that is gone ends the program.
func TestShow_Gone(t *testing.T) {
	w := newWorld(t)
	w.thought = time.Millisecond
	err := show(t.Context(), watching(w, 20*time.Millisecond), newModel(theme{}, time.Second), &display{keys: strings.NewReader(""), out: full{}, size: sized})
	if err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Error(err)
	}
}

// Only lines that have changed are written, all of them after the terminal's size has changed.
func TestDraw(t *testing.T) {
	out := new(strings.Builder)
	d := &display{out: out}
	m := newModel(theme{}, time.Second)
	draw := func() string {
		out.Reset()
		if err := d.draw(m); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if got := draw(); strings.Count(got, "H") < m.height || !strings.Contains(got, ansi.CursorPosition(1, 1)+"gozkd top") {
		t.Errorf("at first: %q", got)
	}
	if got := draw(); got != "" {
		t.Errorf("without a change: %q", got)
	}
	m.paused = true
	if got := draw(); !strings.Contains(got, "PAUSED") || strings.Contains(got, ansi.CursorPosition(1, 2)) || strings.Contains(got, ansi.EraseLineRight) {
		t.Errorf("paused: %q", got) // the title has the width of the screen
	}
	d.shown = nil
	if got := draw(); !strings.Contains(got, ansi.CursorPosition(1, m.height)) {
		t.Errorf("after a change of the size: %q", got)
	}
}

func TestColors(t *testing.T) {
	for _, c := range []struct {
		environment string
		bold, color bool
	}{{"TERM=xterm", true, true}, {"NO_COLOR=1", true, false}, {"NO_COLOR=0", true, false}, {"NO_COLOR=", true, true}, {"TERM=dumb", false, false}} {
		th := colors(environment(c.environment))
		if bold, color := th.bad.Styled("x") != "x", th.trend.Styled("x") != "x"; bold != c.bold || color != c.color {
			t.Errorf("%s: %+v", c.environment, th)
		}
	}
}

func TestNextKey(t *testing.T) {
	for _, c := range []struct{ typed, want, rest string }{
		{"q?h", "q ? h", ""},
		{"\x03\x02\x06\t \x1b[Z", "ctrl+c ctrl+b ctrl+f tab space shift+tab", ""},
		{"\x1b[A\x1b[B\x1bOA\x1bOB", "up down up down", ""},
		{"\x1b[5~\x1b[6~\x1b[15~", "pgup pgdown f5", ""},
		{"\x1b[H\x1bOH\x1b[1~\x1b[7~\x1b[F\x1bOF\x1b[4~\x1b[8~", "home home home home end end end end", ""},
		{"s\x1b", "s \x1b", ""},           // Escape
		{"s\x1b[", "s", "\x1b["},          // half a sequence
		{"s\x1bO", "s", "\x1bO"},          // the same
		{"s\x1b[15", "s", "\x1b[15"},      // the same
		{"\x1bq1", "\x1bq 1", ""},         // Alt-q is not q
		{"\x1b[1;5Aq", "\x1b[1;5A q", ""}, // an arrow with Ctrl has no meaning
		{"ü\x80", "ü \x80", ""},           // nor have these
		{"\x1b\x1b[A", "\x1b\x1b [ A", ""},
		{"\x1b[?1;2c", "\x1b[?1;2c", ""},
		{"\x1b[\x1b[A", "\x1b[\x1b[ A", ""},
	} {
		var names []string
		rest := c.typed
		for {
			key, after := nextKey(rest)
			if key == "" {
				break
			}
			names, rest = append(names, key), after
		}
		if strings.Join(names, " ") != c.want || rest != c.rest {
			t.Errorf("%q: %q and %q", c.typed, names, rest)
		}
	}
}

// Whatever is typed, in whatever pieces, no byte is lost.
func FuzzNextKey(f *testing.F) {
	f.Add("q\x1b[A\x1bOH\x1b[15~\x1b[1;5A\x1bq\x1b")
	f.Fuzz(func(t *testing.T, typed string) {
		for rest := typed; ; {
			key, after := nextKey(rest)
			if key == "" {
				if rest != "" && (rest[0] != '\x1b' || strings.ContainsAny(rest[1:], "~@A")) {
					t.Errorf("of %q, %q is no key", typed, rest)
				}
				return
			}
			if after != rest[len(rest)-len(after):] || len(after) >= len(rest) {
				t.Fatalf("after the first key of %q there is %q", rest, after)
			}
			rest = after
		}
	})
}

// Keys arrive in any pieces. In the help a key does nothing but leave it.
func TestPress(t *testing.T) {
	m := newModel(theme{}, time.Second)
	d := &display{}
	for _, step := range []struct {
		typed string
		help  bool
		panel panel
		quits bool
	}{
		{"?", true, 0, false}, {"\x1b", false, 0, false}, {"?", true, 0, false}, {"\x1b[", true, 0, false}, {"15", true, 0, false},
		{"~3", false, 2, false}, {"\x1b[Z", false, 1, false}, {"\t\t\t", false, 1, false}, {"\x1bq", false, 1, false}, {"1qx", false, 0, true},
	} {
		d.pending += step.typed
		if quits := d.press(m); quits != step.quits || m.help != step.help || m.panel != step.panel {
			t.Errorf("after %q: help %t, panel %d, quits %t", step.typed, m.help, m.panel, quits)
		}
	}
}

// A panic leaves the terminal as it was.
func TestShow_Panic(t *testing.T) {
	screen := newTerminal()
	m := newModel(theme{}, time.Second)
	m.refresh = func() { panic("a bug") }
	defer func() {
		if r := recover(); r != "a bug" {
			t.Errorf("recovered %v", r)
		}
		if drawn := screen.await(t, enterScreen); !strings.HasSuffix(drawn, leaveScreen) {
			t.Errorf("drawn: %q", drawn)
		}
	}()
	err := (&display{keys: strings.NewReader(" "), out: screen, size: sized}).run(t.Context(), m, nil)
	t.Errorf("ended with %v", err)
}
