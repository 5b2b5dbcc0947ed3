package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/shell/console"
)

// typist is a lineReader: somebody in front of a terminal.
//
// Ctrl-C ends the line that is typed, or the command that runs, and never the shell.
type typist struct {
	console    *console.Console
	history    *console.History
	noHistory  error            // why there is no file; told once
	interrupts <-chan os.Signal // nil: Ctrl-C ends the shell with the ctx
	stop       func()
}

// newTypist returns nil unless somebody sits there. A terminal without escape sequences, TERM=dumb, is read as a script is:
// there can be no editor. complete may be called as soon as readLine is. stop must be called at the end.
func newTypist(env cli.Env, complete func(ctx context.Context, before string) console.Completion) *typist {
	in, ok := env.In.(*os.File)
	out, ok2 := env.Out.(*os.File)
	if !ok || !ok2 || env.Getenv("TERM") == "dumb" || !console.IsTerminal(in, out) {
		return nil
	}
	t := &typist{stop: func() {}}
	if env.Interrupts != nil {
		t.interrupts, t.stop = env.Interrupts()
	}
	t.history, t.noHistory = console.LoadHistory(historyFile(env.Getenv), keepsNoSecret)
	t.console = console.New(console.Config{In: in, Out: out, History: t.history, Complete: complete, LineDone: t.forget})
	return t
}

// around returns env with the terminal's outputs replaced by ones that a line being typed survives.
func (t *typist) around(env cli.Env) cli.Env {
	env.Out = t.console
	if f, ok := env.Err.(*os.File); ok && console.IsTerminal(f, f) {
		env.Err = t.console
	}
	return env
}

func (t *typist) readLine(ctx context.Context, prompt func() string) (string, error) {
	for {
		if t.noHistory != nil {
			_, _ = fmt.Fprintf(t.console, "lines are not kept for the next time: %v\n", t.noHistory) // for the eye only
			t.noHistory = nil
		}
		line, err := t.console.ReadLine(ctx, prompt)
		if errors.Is(err, console.ErrInterrupted) {
			continue
		}
		if err == nil {
			t.noHistory = t.history.Record(strings.TrimSpace(line))
		}
		return line, err
	}
}

// errInterrupted is the cause of a ctx that Ctrl-C ended.
var errInterrupted = errors.New("interrupted")

// forget drops an interrupt that was meant for a command before the line that is typed.
func (t *typist) forget() {
	select {
	case <-t.interrupts:
	default:
	}
}

// running returns a ctx for a command, which Ctrl-C ends, also when it came since the line before was typed: what the
// command does may be on the screen already. done must be called when the command has returned.
func (t *typist) running(ctx context.Context) (command context.Context, done func()) {
	command, cancel := context.WithCancelCause(ctx)
	listened := make(chan struct{})
	// Stopped by done, which waits for it.
	go func() {
		defer close(listened)
		select {
		case <-t.interrupts:
			_, _ = io.WriteString(t.console, "\n") // the system has shown a ^C
			cancel(errInterrupted)
		case <-command.Done():
		}
	}()
	return command, func() { cancel(nil); <-listened }
}

// prompt is what ZooKeeper's shell asks with: the servers, the state of the session, the number of the next line.
func (s *Shell) prompt() string {
	state := "CLOSED"
	if s.zk != nil {
		state = s.zk.State().String()
	}
	return fmt.Sprintf("[zk: %s(%s) %d] ", s.host, state, s.count)
}

// historyFile is where lines are kept from one shell to the next.
func historyFile(getenv func(string) string) string {
	if state := getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "gozkd", "history")
	}
	home := getenv("HOME")
	if home == "" {
		home = getenv("USERPROFILE") // Windows
	}
	return filepath.Join(home, ".gozkd_history")
}

// keepsNoSecret reports whether a line may be written to a file: addauth has a password in it, mistyped or not.
func keepsNoSecret(line string) bool {
	words := split(line)
	return len(words) == 0 || !strings.HasPrefix(strings.ToLower(words[0]), "addauth")
}
