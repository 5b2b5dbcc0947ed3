package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/internal/neterr"
	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/proto"
)

// Shell executes commands in turn, in a session with an ensemble. It is not safe for concurrent
// use. The client's goroutine prints the events of the session between the results.
type Shell struct {
	out, err io.Writer   // each Write is complete: other output does not split it
	json     *jsonOutput // nil: output is text
	shown    bool        // the running command has shown a result; only for JSON
	env      cli.Env     // for anything except printing, which goes through out and err
	location *time.Location
	commands []*command
	settings settings
	// singleCommand: the process executes one command, whose result alone goes to out.
	singleCommand bool
	terminal      bool     // lines come from a person, who may have completed them with Tab
	history       []string // lines by number, with the running one; redo's is the repeated line

	zk           *client.Client // nil before the first connect
	auths        []client.Auth  // credentials that addauth gave to zk
	host         string         // connect string of zk
	printWatches atomic.Bool
	watching     atomic.Pointer[eventQueue] // receives the events of a running watch; nil if no watch runs
}

// newShell returns a shell without a session.
func newShell(out, err io.Writer, set settings) *Shell {
	lock := new(sync.Mutex)
	s := &Shell{
		out: &lockedWriter{lock, out}, err: &lockedWriter{lock, err}, location: time.Local,
		commands: allCommands(), settings: set, host: set.server,
	}
	s.printWatches.Store(true)
	slices.SortFunc(s.commands, func(a, b *command) int { return strings.Compare(a.name, b.name) })
	if set.json {
		s.json = &jsonOutput{results: s.out, messages: s.err}
		s.out, s.err = noteWriter{s.err}, noteWriter{s.err}
	}
	return s
}

func (s *Shell) find(name string) *command {
	if name == "exit" {
		name = "quit"
	}
	i := slices.IndexFunc(s.commands, func(c *command) bool { return c.name == name })
	if i < 0 {
		return nil
	}
	return s.commands[i]
}

// connected reports whether there is a session, including one that is reconnecting.
func (s *Shell) connected() bool { return s.zk != nil && !s.zk.State().Ended() }

// readOnlyPatience bounds the look for a server that only answers reads.
const readOnlyPatience = 2 * time.Second

// retryInterval is how soon -waitforconnection tries the servers again.
const retryInterval = 100 * time.Millisecond

// connect closes the session, if any, and waits at most the session timeout for another. The error
// names every address and its cause.
func (s *Shell) connect(ctx context.Context, host string) error {
	s.close()
	s.host, s.auths = host, nil
	servers, chroot, err := client.ParseServers(host)
	if err != nil {
		return usageError(printable.Error(err))
	}
	limited, cancel := context.WithTimeoutCause(ctx, s.settings.timeout, neterr.NoAnswer(s.settings.timeout))
	defer cancel()
	cfg := client.Config{
		Servers:        servers,
		Chroot:         chroot,
		SessionTimeout: s.settings.timeout,
		ConnectTimeout: min(s.settings.timeout/time.Duration(len(servers)), neterr.FirstAnswer),
		ReadOnly:       s.settings.readOnly,
		OnEvent:        s.event,
	}
	s.settings.security.Configure(&cfg)
	zk, err := client.Connect(limited, cfg)
	for err != nil && s.settings.wait && !errors.Is(err, proto.ErrAuthFailed) &&
		backoff.Sleep(limited, retryInterval) {
		again, next := client.Connect(limited, cfg)
		if zk = again; next == nil || limited.Err() == nil { // otherwise next says only that the time is up
			err = next
		}
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return &client.Error{Op: "connect", Code: proto.ErrOperationTimeout, Cause: context.Cause(ctx)}
	case err != nil:
		return unreachable{failure(printable.Error(s.advised(ctx, cfg, err)))}
	}
	s.zk = zk
	return nil
}

// advised adds to an error of connecting what helps against it. It may connect once more.
func (s *Shell) advised(ctx context.Context, cfg client.Config, err error) error {
	explained := s.settings.security.Explain(ctx, cfg.Servers[0], err)
	if explained.Error() != err.Error() || errors.Is(err, proto.ErrAuthFailed) {
		return explained
	}
	if !cfg.ReadOnly {
		cfg.ReadOnly, cfg.OnEvent = true, nil
		ctx, cancel := context.WithTimeout(ctx, readOnlyPatience)
		defer cancel()
		if zk, err := client.Connect(ctx, cfg); err == nil {
			address := zk.Session().Server
			_ = zk.Close() // nothing was done in the session
			return fmt.Errorf("%s answers reads, as a standby or a server without a quorum does: add -r", address)
		}
	}
	if neterr.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("%w; name another server with -server, or start one there, such as gozkd serve", err)
	}
	return err
}

// close ends the session. An error is ignored: if the server was not told, the session expires.
func (s *Shell) close() {
	if s.connected() {
		_ = s.zk.Close()
	}
}

var errQuit = errors.New("quit")

// line executes a line with its words. All output is printed; the error is for the exit
// status, and is errQuit if the shell must end.
func (s *Shell) line(ctx context.Context, text string, words []string) error {
	s.history = append(s.history, text)
	err := s.execute(ctx, words)
	if s.connected() {
		// Print the events that came before the answer, or drop them after "printwatches off",
		// before the next line runs. On an error the wait was interrupted.
		_ = s.zk.AwaitEvents(ctx)
	}
	return err
}

func (s *Shell) execute(ctx context.Context, words []string) error {
	s.shown = false
	err := s.dispatch(ctx, words)
	switch {
	case errors.As(err, new(printed)):
	case err != nil && !errors.Is(err, errQuit):
		s.fail(words[0], err)
	case s.json != nil && !s.shown: // in JSON each successful command has a value, or a list of lines
		if c := s.find(words[0]); c == nil || !c.lines {
			return errors.Join(err, s.print(struct{}{}, ""))
		}
		s.shown = true
	}
	return err
}

func (s *Shell) dispatch(ctx context.Context, words []string) error {
	c := s.find(words[0])
	if c == nil {
		return s.unknownCommand(words[0])
	}
	if !c.offline && !s.connected() {
		return errNotConnected
	}
	args, given, err := c.parse(words[1:])
	if err != nil {
		return err
	}
	if s.terminal {
		c.trimSlash(args, given)
	}
	err = c.run(ctx, &call{Shell: s, command: c, args: args, given: given})
	if e, ok := errors.AsType[*client.Error](err); ok && e.Code == proto.ErrBadArguments && e.Cause != nil { // refused by the client
		if wrong := checkPath(e.Path); wrong != nil {
			return wrong
		}
	}
	return err
}

// trimSlash removes the slash at the end of a path, with which a completed path goes on. That of a
// sequential znode without a name before its number stays.
func (c *command) trimSlash(args []string, given []givenFlag) {
	paths := strings.Count(c.args, "path") + strings.Count(c.args, "source") + strings.Count(c.args, "target")
	if c.name == "create" && slices.ContainsFunc(given, func(f givenFlag) bool { return f.name == "s" }) {
		paths = 0
	}
	for i := range args[:min(paths, len(args))] {
		if len(args[i]) > 1 {
			args[i] = strings.TrimSuffix(args[i], "/")
		}
	}
}

// likeZkCli reports whether the lines are a script, whose output is that of zkCli.sh to the letter.
func (s *Shell) likeZkCli() bool { return !s.singleCommand && !s.terminal && s.json == nil }

func (s *Shell) unknownCommand(name string) error {
	if s.likeZkCli() {
		return usageError("Command not found: Command not found " + name)
	}
	advice := "help lists all commands"
	if near := cli.Nearest(name, commandNames(s.commands), 3); near != "" {
		advice = "did you mean " + near + "? " + advice
	}
	return usageError("Command not found: " + name + "; " + advice)
}

// wordPattern matches a word as zkCli.sh does: it may be quoted as a whole, without escapes.
var wordPattern = regexp.MustCompile("[ \\t\\n\\x0B\\f\\r]*([^\"'][^ \\t\\n\\x0B\\f\\r]*|\"[^\"]*\"|'[^']*')[ \\t\\n\\x0B\\f\\r]*")

// split splits a line into words and removes the quotes. A blank line has no words.
func split(line string) []string {
	var words []string
	for _, m := range wordPattern.FindAllStringSubmatch(line, -1) {
		w := m[1]
		if len(w) >= 2 && (w[0] == '"' || w[0] == '\'') && w[len(w)-1] == w[0] {
			w = w[1 : len(w)-1]
		}
		words = append(words, w)
	}
	if len(words) == 1 && isBlank(words[0]) {
		return nil
	}
	return words
}

func isBlank(s string) bool { return s != "" && strings.Trim(s, " \t\n\v\f\r") == "" }
