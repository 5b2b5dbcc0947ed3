package shell

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

// errQuit ends the shell.
var errQuit = errors.New("quit")

// line executes and counts a line with its words. All output is printed; the error is for the exit
// status, and is errQuit if the shell must end.
func (s *Shell) line(ctx context.Context, text string, words []string) error {
	s.history[s.count] = text
	err := s.execute(ctx, words)
	s.count++
	if s.connected() {
		// Print the events that came before the answer, or drop them after "printwatches off",
		// before the next line runs. On an error the wait was interrupted.
		_ = s.zk.AwaitEvents(ctx)
	}
	return err
}

// execute executes a command and prints its output.
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

// dispatch finds the command, parses its flags and runs it.
func (s *Shell) dispatch(ctx context.Context, words []string) error {
	c := s.find(words[0])
	if c == nil {
		return unknownCommand(words[0])
	}
	if !c.offline && !s.connected() {
		return errNotConnected
	}
	args, given, err := c.parse(words[1:])
	if err != nil {
		return err
	}
	if len(args) < c.minArgs {
		return errUsage
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

// unknownCommand is the error for a name that no command has.
func unknownCommand(name string) error {
	return usageError("Command not found: Command not found " + name)
}

// wordPattern matches a word as zkCli.sh does: a quote begins a quoted word only at the beginning
// of a word, and a quote cannot be escaped.
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
