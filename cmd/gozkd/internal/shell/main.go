package shell

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/shell/console"
)

// Main is gozkd cli. With a command among its arguments it executes that; else it reads lines from env.In, of a terminal
// with an editor, of anything else as a script.
func Main(ctx context.Context, args []string, env cli.Env) int {
	set, words, err := parseArgs(args)
	if err != nil {
		_, _ = io.WriteString(env.Err, "gozkd cli: "+err.Error()+"\n"+Usage+"\n")
		return cli.Usage
	}
	var s *Shell
	var lines lineReader
	if len(words) > 0 || set.help {
		s = newShell(forEyes(env.Out, env.Out), forEyes(env.Err, env.Err), set)
	} else if t := newTypist(env, func(ctx context.Context, before string) console.Completion { return s.complete(ctx, before) }); t != nil {
		defer t.stop()
		typed := t.around(env)
		s, lines = newShell(forEyes(typed.Out, env.Out), forEyes(typed.Err, env.Err), set), t
	} else {
		s, lines = newShell(forEyes(env.Out, env.Out), forEyes(env.Err, env.Err), set), newScriptReader(env.In)
	}
	s.env = env
	if set.help {
		s.say(s.out, Usage+"\n\n"+s.usage())
		return cli.OK
	}
	defer s.end()
	if len(words) > 0 {
		return s.runOnce(ctx, words)
	}
	return s.runLines(ctx, lines)
}

// end closes the session without telling anybody.
func (s *Shell) end() {
	s.printWatches.set(false)
	s.close()
}

// runOnce executes one command in a session of its own, and returns the exit status. Only what the command was asked for
// goes to standard output.
func (s *Shell) runOnce(ctx context.Context, words []string) int {
	s.once = true
	s.printWatches.set(false)
	if c := s.find(words[0]); c != nil && !c.offline {
		// What is wrong with the line is said without a server.
		if args, _, err := c.parse(words[1:]); err == nil && len(args) >= c.minArgs {
			if err := s.connect(ctx, s.host); err != nil {
				s.fail("", err)
				return status(err)
			}
		} else {
			s.fail(words[0], asUsage(err))
			return cli.Usage
		}
	}
	err := s.execute(ctx, words)
	if errors.Is(err, errQuit) {
		err = nil
	}
	return status(err)
}

func asUsage(err error) usageError {
	var wrong usageError
	errors.As(err, &wrong) // without one it stays errUsage
	return wrong
}

// runLines opens a session and executes lines until there are no more. It returns the exit status of the last command, as
// ZooKeeper's shell does.
func (s *Shell) runLines(ctx context.Context, lines lineReader) int {
	s.greet("Connecting to " + s.host)
	connecting, connected := lines.running(ctx)
	err := s.connect(connecting, s.host)
	connected()
	if err != nil {
		s.fail("", err)
		return status(err)
	}
	s.greet("Welcome to ZooKeeper!")
	last := cli.OK
	for {
		text, err := lines.readLine(ctx, s.prompt)
		if err != nil {
			switch {
			case errors.Is(err, io.EOF):
				return last
			case ctx.Err() != nil:
				err = failure("Interrupted")
			}
			s.fail("", err)
			return cli.Failed
		}
		command, done := lines.running(ctx)
		err = s.line(command, text)
		done()
		if errors.Is(err, errQuit) {
			return last
		}
		last = status(err)
	}
}

// greet writes a line that nobody asked for, unless standard output is for JSON only.
func (s *Shell) greet(text string) {
	if !s.settings.json {
		s.say(s.out, text)
	}
}

// lineReader is where lines come from: a terminal, which shows the prompt, or a script. The error is io.EOF when there
// are no more.
type lineReader interface {
	readLine(ctx context.Context, prompt func() string) (string, error)
	// running returns the ctx of a command that a line has asked for, and what to call when it has returned.
	running(ctx context.Context) (command context.Context, done func())
}

// scriptReader reads lines from what is no terminal, each when it is wanted.
type scriptReader struct {
	in    *bufio.Reader
	lines chan scriptLine // 1: the reader must be able to leave when nobody waits any more
	asked bool            // a reader is under way
}

type scriptLine struct {
	text string
	err  error
}

func newScriptReader(in io.Reader) *scriptReader {
	return &scriptReader{in: bufio.NewReader(in), lines: make(chan scriptLine, 1)}
}

func (r *scriptReader) readLine(ctx context.Context, _ func() string) (string, error) {
	if !r.asked {
		r.asked = true
		// Stopped by the next line or the end of the input: a read can't be cut short. Awaited below, or by the next call,
		// or by nobody when the program ends.
		go func() {
			text, err := r.in.ReadString('\n')
			if text != "" && errors.Is(err, io.EOF) {
				err = nil // the last line needs no end
			}
			r.lines <- scriptLine{strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r"), err}
		}()
	}
	select {
	case l := <-r.lines:
		r.asked = false
		return l.text, l.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (r *scriptReader) running(ctx context.Context) (context.Context, func()) { return ctx, func() {} }
