package shell

import (
	"bufio"
	"context"
	"errors"
	stdflag "flag"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/clientflags"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/shell/console"
	"github.com/gozkd/gozkd/internal/printable"
)

// Main is gozkd cli. It executes the command in its arguments. Without a command it reads lines
// from env.In: with a line editor at a terminal, as a script otherwise.
func Main(ctx context.Context, args []string, env cli.Env) int {
	set, words, err := parseSettings(args)
	if err != nil {
		cli.Print(env.Err, "gozkd cli: "+printable.Error(err)+"\n"+Usage+"\n")
		return cli.Usage
	}
	if set.security, err = set.secure.Resolve(env); err != nil && !set.help {
		return cli.Command{Env: env, Name: "cli", Usage: Usage + "\n"}.End(err)
	}
	var s *Shell
	var lines lineReader = newScriptReader(env.In)
	printing := env
	if len(words) == 0 && !set.help {
		complete := func(ctx context.Context, before string) console.Completion { return s.complete(ctx, before) }
		if t := newTerminalReader(env, complete); t != nil {
			defer t.stop()
			lines, printing = t, t.redirect(env)
		}
	}
	s = newShell(terminalSafe(printing.Out, env.Out), terminalSafe(printing.Err, env.Err), set)
	s.env = env
	_, isScript := lines.(*scriptReader)
	s.terminal = !isScript
	if set.help {
		s.say(s.out, Usage+"\n\n"+s.usage())
		return cli.OK
	}
	defer s.end()
	if len(words) > 0 {
		return s.runCommand(ctx, words)
	}
	return s.runLines(ctx, lines)
}

// end closes the session. The events of the closing are not printed.
func (s *Shell) end() {
	s.printWatches.Store(false)
	s.close()
}

// runCommand executes a command in a session of its own and returns the exit status. Only the
// result of the command goes to standard output.
func (s *Shell) runCommand(ctx context.Context, words []string) int {
	s.singleCommand = true
	s.printWatches.Store(false)
	if c := s.find(words[0]); c != nil && !c.offline {
		// Report a wrong command line without connecting.
		if _, _, err := c.parse(words[1:]); err != nil {
			s.fail(words[0], err)
			return cli.Usage
		}
		if err := s.connect(ctx, s.host); err != nil {
			s.fail("", err)
			return status(err)
		}
	}
	err := s.execute(ctx, words)
	if errors.Is(err, errQuit) {
		err = nil
	}
	return status(err)
}

// runLines executes all lines in a session. Like zkCli.sh it returns the last command's status.
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
		words := split(text)
		if len(words) == 0 { // no command, so the exit status stays
			continue
		}
		command, done := lines.running(ctx)
		err = s.line(command, text, words)
		done()
		if errors.Is(err, errQuit) {
			return last
		}
		last = status(err)
	}
}

// greet writes a line, unless standard output is for JSON only.
func (s *Shell) greet(text string) {
	if s.json == nil {
		s.say(s.out, text)
	}
}

// lineReader reads lines from a terminal, which shows the prompt, or from a script.
type lineReader interface {
	// readLine returns io.EOF after the last line.
	readLine(ctx context.Context, prompt func() string) (string, error)
	// running returns the ctx for executing a line. The caller must call done afterwards.
	running(ctx context.Context) (command context.Context, done func())
}

// scriptReader reads standard input that is no terminal, each line when the shell needs it.
type scriptReader struct{ lines *cli.Input[string] }

func newScriptReader(from io.Reader) *scriptReader {
	in := bufio.NewReader(from)
	return &scriptReader{cli.NewInput(func() (string, error) {
		text, err := in.ReadString('\n')
		if text != "" && errors.Is(err, io.EOF) {
			err = nil // the last line need not end in a newline
		}
		return strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r"), err
	})}
}

func (r *scriptReader) readLine(ctx context.Context, _ func() string) (string, error) {
	return r.lines.Next(ctx)
}

func (r *scriptReader) running(ctx context.Context) (context.Context, func()) { return ctx, func() {} }

// Usage is the usage text of gozkd cli.
const Usage = `usage: gozkd cli [flags] [command [arguments]]

  -server host:port[,host:port ...][/chroot]  servers, and the path that all other paths are below
                                              (localhost:2181)
  -timeout TIME                               session timeout, and how long to wait for a session
                                              (30s); a number is milliseconds, as for zkCli.sh
  -r                                          accept a server without a quorum, which answers reads
                                              only
  -waitforconnection                          try again until a server accepts the session
  --output text|json                          output format (text)
` + clientflags.Usage + `
Without a command, gozkd cli reads lines from standard input. The command help lists all commands.`

type settings struct {
	server   string
	timeout  time.Duration
	readOnly bool
	wait     bool // for servers that do not answer yet
	json     bool
	help     bool
	secure   clientflags.Flags
	security *clientflags.Security
}

// parseSettings reads the flags, which precede the command, and returns the words of the command.
func parseSettings(args []string) (set settings, words []string, err error) {
	set = settings{timeout: 30 * time.Second}
	fs := stdflag.NewFlagSet("cli", stdflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&set.server, "server", "localhost:2181", "")
	fs.Func("timeout", "", func(v string) error {
		if _, err := strconv.ParseInt(v, 10, 32); err == nil {
			v += "ms" // as for zkCli.sh
		}
		d, err := time.ParseDuration(v)
		if set.timeout = d; err != nil || d < time.Millisecond || d.Milliseconds() > math.MaxInt32 {
			return errors.New("must be a duration, such as 30s, or a number of milliseconds")
		}
		return nil
	})
	fs.BoolVar(&set.readOnly, "r", false, "")
	fs.BoolVar(&set.wait, "waitforconnection", false, "")
	set.secure.Register(fs)
	cli.OutputFlag(fs, &set.json)
	err = fs.Parse(args)
	if errors.Is(err, stdflag.ErrHelp) {
		set.help, err = true, nil
	}
	if err != nil {
		return set, nil, fmt.Errorf("command line: %w", err)
	}
	return set, fs.Args(), nil
}
