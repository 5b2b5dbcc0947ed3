package top

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/internal/probe"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

// watching returns a watcher of a world with a gozkd leader and two members that are down.
func watching(w *world, interval time.Duration) *watcher {
	w.recorded("127.0.0.1:2281", "gozkd-leader", "srvr", "mntr", "cons", "conf")
	return &watcher{roster: newRoster([]string{"127.0.0.1:2281"}, nil), interval: interval, ask: w.ask,
		discover: func(context.Context, string) (probe.Settings, error) { return probe.Settings{}, errors.New("no") }}
}

func TestOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		if err := stream(t.Context(), watching(newWorld(t), time.Second), options{once: true}, &out); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"gozkd top  1 of 3 up  leader 1  epoch 1  zxid 0x100001705",
			"  1 127.0.0.1:2281               leader       0x100001705",
			"  2 127.0.0.1:2282               down       connection refused (for ",
			"127.0.0.1:45420",
			"not in the whitelist: add hotp to 4lw.commands.whitelist in zoo.cfg",
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("no %q in\n%s", want, out.String())
			}
		}
	})
}

func TestOnce_JSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		if err := stream(t.Context(), watching(newWorld(t), time.Second), options{once: true, json: true}, &out); err != nil {
			t.Fatal(err)
		}
		var got struct {
			Leader  string
			Zxid    string
			Members []struct {
				ID                  int
				Server, Role, Error string
				Requests            *float64 `json:"requests_per_s"`
				LatencyMs           *float64 `json:"latency_ms"`
				Znodes, Connections *int
			}
			Clients []struct{ Client, Session string }
			Missing []string
		}
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		if got.Leader != "127.0.0.1:2281" || got.Zxid != "0x100001705" || len(got.Members) != 3 || len(got.Clients) != 2 || len(got.Missing) != 1 {
			t.Fatalf("%s", out.String())
		}
		if m := got.Members[0]; m.ID != 1 || m.Role != "leader" || m.Requests == nil || *m.Requests != 0 || m.LatencyMs != nil || m.Znodes == nil || *m.Znodes != 2137 {
			t.Errorf("%+v", m)
		}
		if m := got.Members[1]; m.Role != "down" || m.Error != "connection refused" || m.Requests != nil || m.Znodes != nil {
			t.Errorf("%+v", m)
		}
	})
}

// Without -once, stream writes a line of JSON per round until the program is interrupted.
func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var out bytes.Buffer
		if err := stream(ctx, watching(newWorld(t), time.Second), options{json: true}, &out); err != nil {
			t.Fatal(err)
		}
		// A round takes the leader's five words and a second.
		if n := bytes.Count(out.Bytes(), []byte("\n")); n < 8 || n > 30 {
			t.Errorf("%d lines in a minute", n)
		}
		for line := range bytes.Lines(out.Bytes()) {
			if !json.Valid(line) {
				t.Errorf("%s", line)
			}
		}
	})
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestOnce_Fails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nobody := &watcher{roster: newRoster([]string{"s:1"}, nil), interval: time.Second, ask: newWorld(t).ask}
		var out bytes.Buffer
		if err := stream(t.Context(), nobody, options{once: true}, &out); err == nil || err.Error() != "no member serves" || !strings.Contains(out.String(), "connection refused") {
			t.Errorf("%v\n%s", err, out.String())
		}
		if err := stream(t.Context(), watching(newWorld(t), time.Second), options{json: true}, full{}); err == nil || !strings.Contains(err.Error(), "disk full") {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := stream(ctx, watching(newWorld(t), time.Hour), options{once: true}, &out); err == nil {
			t.Error("it was ended before it had an answer, and all is well")
		}
	})
}

// terminal records what is drawn; tests wait for its content.
type terminal struct {
	mu    sync.Mutex
	drawn bytes.Buffer
	more  chan struct{} // capacity 1: holds a value after a Write
}

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

// TestShow runs the whole program without a real terminal: it draws, handles keys, exits with q and
// leaks nothing.
func TestShow(t *testing.T) {
	w := newWorld(t)
	w.thought = time.Millisecond
	in, keys := io.Pipe()
	screen := &terminal{more: make(chan struct{}, 1)}
	ended := make(chan error, 1)
	// Ended by the key q, and awaited below.
	go func() {
		ended <- show(t.Context(), watching(w, 20*time.Millisecond), options{interval: time.Second},
			tea.WithInput(in), tea.WithOutput(screen), tea.WithWindowSize(100, 30), tea.WithEnvironment([]string{"TERM=xterm"}), tea.WithColorProfile(colorprofile.Ascii))
	}()
	screen.await(t, "127.0.0.1:45420")
	drawn := screen.await(t, "connection refused")
	for _, color := range []string{"\x1b[31m", "\x1b[32m", "\x1b[1;32m", "\x1b[36m"} {
		if strings.Contains(drawn, color) {
			t.Errorf("a color, %q, where none may be", color)
		}
	}
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
	if err := keys.Close(); err != nil {
		t.Error(err)
	}
}

// A signal ends the program like q.
func TestShow_Signal(t *testing.T) {
	w := newWorld(t)
	w.thought = time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	screen := &terminal{more: make(chan struct{}, 1)}
	ended := make(chan error, 1)
	// Ended by cancel, and awaited below.
	go func() {
		ended <- show(ctx, watching(w, 20*time.Millisecond), options{interval: time.Second},
			tea.WithInput(nil), tea.WithOutput(screen), tea.WithWindowSize(100, 30), tea.WithEnvironment([]string{"TERM=xterm"}))
	}()
	screen.await(t, "127.0.0.1:45420")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestUsage(t *testing.T) {
	call := func(args string) (status int, out, errs string) {
		var o, e strings.Builder
		w := bufio.NewWriter(&o)
		status = Main(t.Context(), strings.Fields(args), cli.Env{Out: w, Err: &e, Getenv: func(string) string { return "" }})
		if err := w.Flush(); err != nil {
			t.Error(err)
		}
		return status, o.String(), e.String()
	}
	for _, args := range []string{"", "-nonsense", "localhost:2181", "-once -interval 1ms", "-once -timeout 0s", "-once -output xml", "-once -server h:port"} {
		if status, out, errs := call(args); status != cli.Usage || out != "" || !strings.HasPrefix(errs, "gozkd top: ") || !strings.Contains(errs, "\nusage: gozkd top ") {
			t.Errorf("%q: status %d\n%s%s", args, status, out, errs)
		}
	}
	if status, out, _ := call("-h"); status != cli.OK || !strings.HasPrefix(out, "usage: gozkd top") {
		t.Errorf("-h: status %d\n%s", status, out)
	}
	if status, out, errs := call("-once -interval 100ms -server 127.0.0.1:1"); status != cli.Failed || !strings.Contains(out, "connection refused") || errs != "gozkd top: no member serves\n" {
		t.Errorf("nobody there: status %d\n%s%s", status, out, errs)
	}
}

func TestEnvironment(t *testing.T) {
	vars := map[string]string{"TERM": "xterm-256color", "NO_COLOR": "1", "SECRET": "x"}
	got := strings.Join(environment(func(name string) string { return vars[name] }), " ")
	if got != "TERM=xterm-256color NO_COLOR=1" {
		t.Error(got)
	}
}
