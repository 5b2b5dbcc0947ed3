//go:build linux

package console

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/pty"
)

// person types at a Console that reads line after line.
type person struct {
	*pty.Terminal
	console *Console
	lines   chan string // results of ReadLine, or "error: " and the error
}

func sit(t *testing.T, history *History, complete func(context.Context, string) Completion) *person {
	t.Helper()
	term := pty.Open(t, 40, 12)
	program := term.Program()
	p := &person{Terminal: term, console: New(Config{In: program, Out: program, History: history, Complete: complete}), lines: make(chan string)}
	if !IsTerminal(program, program) {
		t.Error("a pseudo-terminal is none")
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	// Stopped by cancel, which the cleanup waits for.
	go func() {
		defer close(done)
		for {
			line, err := p.console.ReadLine(ctx, func() string { return "> " })
			if err != nil {
				line = "error: " + err.Error()
			}
			if ctx.Err() != nil {
				return
			}
			select {
			case p.lines <- line:
			case <-ctx.Done():
				return
			}
			if errors.Is(err, io.EOF) {
				return
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		term.Type("\r") // for the pending read
	})
	p.Await(">")
	return p
}

func (p *person) want(t *testing.T, line string) {
	t.Helper()
	if got := <-p.lines; got != line {
		t.Errorf("read %q, want %q", got, line)
	}
}

func TestConsole_Editing(t *testing.T) {
	h := new(History)
	record(t, h, "older")
	record(t, h, "old")
	for _, c := range []struct{ name, keys, line string }{
		{"typed", "get /a", "get /a"},
		{"in the middle", "get /a\x1b[D\x1b[Db", "get b/a"},
		{"home, end", "et /\x1b[1~g\x1bOFa", "get /a"},
		{"a word back", "get /a\x1b\x7fls", "get ls"},
		{"words left", "get /a /b\x1bbx\x1b[1;5Dy", "get /a yx/b"},
		{"history", "x\x1b[A\x1b[A\x1b[B\x1b[B\x1b[A", "old"},
		{"search", "er\x12", "older"},
		{"pasted", "\x1b[200~get\t/\x1b[201~a", "get /a"},
		{"nothing", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := sit(t, h, nil)
			p.Type(c.keys)
			if c.line != "" {
				p.Await("> " + c.line)
			}
			p.Type("\r")
			p.want(t, c.line)
		})
	}
}

func TestConsole_WriteWhileTyping(t *testing.T) {
	p := sit(t, new(History), nil)
	p.Type("get /a")
	p.Await("> get /a")
	if _, err := p.console.Write([]byte("an event\nof two lines\n")); err != nil {
		t.Fatal(err)
	}
	p.Await("an event", "of two lines", "> get /a")
	p.Type("\x1b[D/b")
	p.Await("an event", "of two lines", "> get //ba")
	p.Type("\r")
	p.want(t, "get //ba")
	p.Await("> get //ba", ">") // before the prompt the terminal itself echoes the input
	// A line that spans several rows.
	long := strings.Repeat("0123456789", 5)
	p.Type(long)
	p.Await("> 01234567890123456789012345678901234567", "890123456789")
	if _, err := p.console.Write([]byte("an event\n")); err != nil {
		t.Fatal(err)
	}
	p.Await("> get //ba", "an event", "> 01234567890123456789012345678901234567", "890123456789")
}

func TestConsole_Interrupt(t *testing.T) {
	p := sit(t, new(History), nil)
	p.Type("get /a\x1b[D\x1b[D\x03")
	p.want(t, "error: "+ErrInterrupted.Error())
	p.Await("> get /a^C", ">")
	p.Type("x\ry\r") // both lines arrive before the first is read
	p.want(t, "x")
	p.want(t, "y")
	p.Await("> y", ">") // between two lines the terminal is not raw and handles Ctrl-D itself
	p.Type("\x04")
	p.want(t, "error: EOF")
	if !p.Cooked() {
		t.Error("the terminal was left raw")
	}
}

func TestConsole_LineDone(t *testing.T) {
	term := pty.Open(t, 40, 12)
	files := term.Program()
	calls := 0
	c := New(Config{In: files, Out: files, History: new(History), LineDone: func() {
		calls++
		if term.Cooked() {
			t.Error("Ctrl-C is a signal again before LineDone")
		}
	}})
	for i, keys := range []string{"ls /\r", "ls\x03"} {
		line, err := c.ReadLine(t.Context(), func() string {
			term.Type(keys) // the terminal is raw by now
			return "> "
		})
		if i == 0 && (line != "ls /" || err != nil) || i == 1 && !errors.Is(err, ErrInterrupted) {
			t.Errorf("%q: read %q, %v", keys, line, err)
		}
		if calls != i+1 {
			t.Errorf("%q: called %d times", keys, calls)
		}
	}
}

func TestConsole_Tab(t *testing.T) {
	p := sit(t, new(History), func(_ context.Context, before string) Completion {
		switch before {
		case "l":
			return Completion{0, "ls ", []string{"ls"}}
		case "ls ":
			return Completion{3, "/z", []string{"/zoo", "/zebra"}}
		case "ls /z":
			return Completion{3, "/z", []string{"/zoo", "/zebra"}}
		}
		return Completion{}
	})
	p.Type("l\t")
	p.Await("> ls")
	p.Type("\t")
	p.Await("> ls /z")
	p.Type("\t")
	p.Await("/zoo    /zebra", "> ls /z")
	p.Type("e\t\t\r")
	p.want(t, "ls /ze")
}

func TestConsole_Resize(t *testing.T) {
	p := sit(t, new(History), nil)
	p.Type(strings.Repeat("a", 60))
	p.Await("> "+strings.Repeat("a", 38), strings.Repeat("a", 22))
	p.Resize(80, 12)
	p.Type("b")
	p.Await("> " + strings.Repeat("a", 60) + "b")
}

func TestConsole_CtxEnds(t *testing.T) {
	term := pty.Open(t, 40, 12)
	program := term.Program()
	c := New(Config{In: program, Out: program, History: new(History)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.ReadLine(ctx, func() string { return "> " }); !errors.Is(err, context.Canceled) {
		t.Errorf("ReadLine returned %v", err)
	}
	if !term.Cooked() {
		t.Error("the terminal was left raw")
	}
	term.Type("later\n")
	if line, err := c.ReadLine(t.Context(), func() string { return "> " }); line != "later" || err != nil {
		t.Errorf("the next ReadLine returned %q, %v", line, err)
	}
}
