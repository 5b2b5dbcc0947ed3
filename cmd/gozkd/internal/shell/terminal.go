package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/shell/console"
)

// terminalReader is a lineReader for a user at a terminal. Ctrl-C discards the line being typed or
// ends the running command, and never ends the shell.
type terminalReader struct {
	console    *console.Console
	history    *console.History
	noHistory  error            // why there is no history file; reported once
	interrupts <-chan os.Signal // nil: Ctrl-C ends the shell through its ctx
	stop       func()
}

// newTerminalReader returns nil if standard input and output are not a terminal, or if the terminal
// has no escape sequences (TERM=dumb); then lines are read as from a script. complete is first
// called during readLine. The caller must call stop at the end.
func newTerminalReader(env cli.Env, complete func(ctx context.Context, before string) console.Completion) *terminalReader {
	in, ok := env.In.(*os.File)
	out, ok2 := env.Out.(*os.File)
	if !ok || !ok2 || env.Getenv("TERM") == "dumb" || !console.IsTerminal(in, out) {
		return nil
	}
	t := &terminalReader{stop: func() {}}
	if env.Interrupts != nil {
		t.interrupts, t.stop = env.Interrupts()
	}
	t.history, t.noHistory = console.LoadHistory(historyFile(env.Getenv), mayKeep)
	t.console = console.New(console.Config{In: in, Out: out, History: t.history, Complete: complete, LineDone: t.dropInterrupt})
	return t
}

// redirect returns env with outputs that print above the line being typed.
func (t *terminalReader) redirect(env cli.Env) cli.Env {
	env.Out = t.console
	if f, ok := env.Err.(*os.File); ok && console.IsTerminal(f, f) {
		env.Err = t.console
	}
	return env
}

func (t *terminalReader) readLine(ctx context.Context, prompt func() string) (string, error) {
	for {
		if t.noHistory != nil {
			cli.Print(t.console, fmt.Sprintf("the history is not saved: %v\n", t.noHistory))
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

// dropInterrupt drops an interrupt that was meant for the previous command.
func (t *terminalReader) dropInterrupt() {
	select {
	case <-t.interrupts:
	default:
	}
}

// running returns a ctx for a command, which Ctrl-C ends, also a Ctrl-C since the end of the line:
// output may be on the screen already. The caller must call done afterwards.
func (t *terminalReader) running(ctx context.Context) (command context.Context, done func()) {
	command, cancel := context.WithCancelCause(ctx)
	var waiting sync.WaitGroup
	waiting.Go(func() { // stopped and awaited by done
		select {
		case <-t.interrupts:
			_, _ = io.WriteString(t.console, "\n") // the terminal has printed ^C
			cancel(errInterrupted)
		case <-command.Done():
		}
	})
	return command, func() { cancel(nil); waiting.Wait() }
}

// prompt returns zkCli.sh's prompt: the servers, the state of the session, the number of the line.
func (s *Shell) prompt() string {
	state := "CLOSED"
	if s.zk != nil {
		state = s.zk.State().String()
	}
	return fmt.Sprintf("[zk: %s(%s) %d] ", s.host, state, len(s.history))
}

func historyFile(getenv func(string) string) string {
	if state := getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "gozkd", "history")
	}
	home := cmp.Or(getenv("HOME"), getenv("USERPROFILE")) // the latter on Windows
	return filepath.Join(home, ".gozkd_history")
}

// mayKeep reports whether the file may keep a line: addauth, even mistyped, has a password.
func mayKeep(line string) bool {
	words := split(line)
	return len(words) == 0 || !strings.HasPrefix(strings.ToLower(words[0]), "addauth")
}
