package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// errQuit ends the shell.
var errQuit = errors.New("quit")

// line executes a line as somebody typed it, and counts it. What it has to say it has printed; the error is for the exit
// status, and errQuit when there is to be no further line. A blank line is nothing.
func (s *Shell) line(ctx context.Context, text string) error {
	words := split(text)
	if len(words) == 0 {
		return nil
	}
	s.history[s.count] = text
	err := s.execute(ctx, words)
	s.count++
	if s.connected() {
		// What happened before the answer is told before the next line, and not at all if that is behind "printwatches off". An
		// error means that nobody wants to wait.
		_ = s.zk.AwaitEvents(ctx)
	}
	return err
}

// execute executes a command and prints what became of it.
func (s *Shell) execute(ctx context.Context, words []string) error {
	s.shown = false
	err := s.dispatch(ctx, words)
	switch {
	case errors.As(err, new(printed)):
	case err != nil && !errors.Is(err, errQuit):
		s.fail(words[0], err)
	case s.settings.json && !s.shown: // each command that succeeds has a value, or lines, of which there may be none
		if c := s.find(words[0]); c == nil || !c.lines {
			return errors.Join(err, s.show(nothing{}))
		}
		s.shown = true
	}
	return err
}

// failText prints an error as ZooKeeper's shell does. name is the command's, or "" for the shell itself.
func (s *Shell) failText(name string, err error) {
	var wrong usageError
	switch {
	case name == "" && errors.As(err, &wrong):
		s.say(s.err, "gozkd cli: "+string(wrong)+"\n"+Usage)
	case name == "":
		s.say(s.err, "gozkd cli: "+message(err))
	case errors.Is(err, errNotConnected):
		s.say(s.out, err.Error())
	case errors.As(err, &wrong):
		s.complain(name, wrong)
	default:
		if m := message(err); m != "" {
			s.say(s.err, m)
		}
	}
}

// dispatch finds the command, reads its flags and runs it.
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
	return c.run(ctx, &call{Shell: s, command: c, args: args, given: given})
}

// unknownCommand is the error of a name that no command has.
func unknownCommand(name string) error {
	return usageError("Command not found: Command not found " + name)
}

// complain says what is wrong with a line and how the command is used; of a command that is unknown, how the shell is.
func (s *Shell) complain(name string, wrong usageError) {
	c := s.find(name)
	switch {
	case c == nil:
		s.say(s.err, s.usage()+string(wrong))
	case wrong == errUsage:
		s.say(s.err, c.usage())
	default:
		s.say(s.err, string(wrong)+"\n"+c.usage())
	}
}

// usage lists how the shell and each of its commands are called.
func (s *Shell) usage() string {
	var b strings.Builder
	b.WriteString("ZooKeeper -server host:port -client-configuration properties-file cmd args\n")
	for _, c := range s.commands {
		b.WriteString("\t" + c.name + " " + c.args + "\n")
	}
	return b.String()
}

// say writes a line. A failure to write has no other place to be told.
func (s *Shell) say(w io.Writer, text string) { _, _ = fmt.Fprint(w, text+"\n") }
