package top

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/pty"
)

// On a terminal the screen follows the size of the window. The end leaves the terminal as it was.
func TestOnTerminal(t *testing.T) {
	for _, end := range []string{"q", "\x03", "signal"} {
		term := pty.Open(t, 100, 30)
		program := term.Program()
		if _, err := program.WriteString("$ gozkd top\r\n"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w := newWorld(t)
		w.thought = time.Millisecond
		ended := make(chan error, 1)
		// Ended by a key or cancel, and awaited below.
		go func() {
			env := cli.Env{In: program, Getenv: environment("TERM=xterm")}
			ended <- onTerminal(ctx, watching(w, 20*time.Millisecond), options{interval: time.Second}, env, program)
		}()
		fits := func(width, height int) {
			t.Helper()
			term.AwaitFunc("the whole screen", func(screen string) bool {
				lines := strings.Split(screen, "\n")
				title := strings.Fields(lines[0])
				return len(lines) == height && strings.HasPrefix(lines[0], "gozkd top  1 of 3 up") && strings.HasSuffix(lines[0], title[len(title)-1]) &&
					len(lines[0]) == width && strings.HasPrefix(lines[height-1], "1-3 tab panel") && strings.Contains(screen, "connection refused")
			})
		}
		fits(100, 30)
		if term.Cooked() {
			t.Error("the terminal is not raw")
		}
		term.Resize(140, 20)
		fits(140, 20)
		term.Resize(80, 40)
		fits(80, 40)
		if end == "signal" {
			cancel()
		} else {
			term.Type(end)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if !term.Cooked() {
			t.Error("the terminal was left raw")
		}
		term.Await("$ gozkd top")
		term.Type("\r") // for the pending read
	}
}
