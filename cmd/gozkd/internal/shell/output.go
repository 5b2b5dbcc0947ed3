package shell

import (
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/gozkd/gozkd/client"
)

// result is the output of a command in both formats.
type result struct {
	value    any    // for --output json: a line of standard output
	out, err string // for text: what zkCli.sh writes to each stream
}

// show prints the result of a command.
func (s *Shell) show(r result) error {
	if s.json != nil {
		s.shown = true
		return writeJSON(s.json.results, r.value)
	}
	return errors.Join(writeText(s.err, r.err), writeText(s.out, r.out))
}

// print shows a result whose text goes to standard output.
func (s *Shell) print(value any, text string) error { return s.show(result{value: value, out: text}) }

// writeText writes text in one piece.
func writeText(w io.Writer, text string) error {
	if text == "" {
		return nil
	}
	_, err := io.WriteString(w, text)
	return err
}

// say writes a line and ignores an error: there is no other place to report it.
func (s *Shell) say(w io.Writer, text string) { _ = writeText(w, text+"\n") }

// note writes a line to standard output, as zkCli.sh does, or to standard error if standard output
// is for JSON only.
func (s *Shell) note(text string) {
	to := s.out
	if s.json != nil {
		to = s.err
	}
	s.say(to, text)
}

// fail prints the error of the command called name, or of the shell itself if name is empty.
func (s *Shell) fail(name string, err error) {
	if s.json != nil {
		_ = writeJSON(s.json.messages, s.errorLine(name, err)) // there is no other place to report it
		return
	}
	var wrong usageError
	switch {
	case name == "" && errors.As(err, &wrong):
		s.say(s.err, "gozkd cli: "+string(wrong)+"\n"+Usage)
	case name == "":
		s.say(s.err, "gozkd cli: "+message(err))
	case errors.Is(err, errNotConnected):
		s.say(s.out, err.Error())
	case errors.As(err, &wrong):
		s.explain(name, wrong)
	default:
		if m := message(err); m != "" {
			s.say(s.err, m)
		}
	}
}

// explain prints a usage error and the usage of the command, or of the shell if there is no such
// command.
func (s *Shell) explain(name string, wrong usageError) {
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

// usage lists the usage of all commands under zkCli.sh's heading.
func (s *Shell) usage() string {
	var b strings.Builder
	b.WriteString("ZooKeeper -server host:port -client-configuration properties-file cmd args\n")
	for _, c := range s.commands {
		b.WriteString("\t" + c.name + " " + c.args + "\n")
	}
	return b.String()
}

func (s *Shell) printEvent(e client.Event) {
	if s.json != nil {
		_ = writeJSON(s.json.messages, jsonEventLine{eventOf(e)}) // there is no other place to report it
		return
	}
	_ = writeText(s.out, eventText(e))
}

// lockedWriter passes on one Write at a time. Writers that share a lock do not split each other's
// output on a terminal.
type lockedWriter struct {
	lock *sync.Mutex
	to   io.Writer
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.to.Write(p)
}
