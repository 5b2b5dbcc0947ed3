package shell

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/shell/console"
)

// result is the output of a command in both formats.
type result struct {
	value    any    // for --output json: a line of standard output
	out, err string // for text: what zkCli.sh writes to each stream
}

func (s *Shell) show(r result) error {
	if s.json != nil {
		s.shown = true
		return writeJSON(s.json.results, r.value)
	}
	return errors.Join(writeText(s.err, r.err), writeText(s.out, r.out))
}

// print shows a result whose text goes to standard output.
func (s *Shell) print(value any, text string) error { return s.show(result{value: value, out: text}) }

func writeText(w io.Writer, text string) error {
	if text == "" {
		return nil
	}
	_, err := io.WriteString(w, text)
	return err
}

// say writes a line and ignores an error: there is no other place to report it.
func (s *Shell) say(w io.Writer, text string) { _ = writeText(w, text+"\n") }

// note writes a line as zkCli.sh does, to standard output, or with --output json standard error.
func (s *Shell) note(text string) { s.say(s.out, text) }

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

// explain prints a usage error and the usage of the command or, as zkCli.sh, of all commands.
func (s *Shell) explain(name string, wrong usageError) {
	c := s.find(name)
	switch {
	case c == nil && s.likeZkCli():
		s.say(s.err, s.usage()+string(wrong))
	case c == nil:
		s.say(s.err, string(wrong))
	case wrong == errUsage:
		s.say(s.err, c.usage())
	default:
		s.say(s.err, string(wrong)+"\n"+c.usage())
	}
}

func (s *Shell) usage() string {
	text := "ZooKeeper -server host:port -client-configuration properties-file cmd args\n"
	for _, c := range s.commands {
		text += "\t" + c.name + " " + c.args + "\n"
	}
	return text
}

// printEvent prints an event as zkCli.sh does.
func (s *Shell) printEvent(e client.Event) {
	if s.json != nil {
		_ = writeJSON(s.json.messages, map[string]jsonEvent{"event": eventOf(e)}) // there is no other place to report it
		return
	}
	_ = writeText(s.out, fmt.Sprintf("\nWATCHER::\n\nWatchedEvent state:%s type:%s path:%s zxid: %d\n",
		e.State.KeeperState(), eventName(e), cmp.Or(e.Path, javaNull), int64(e.Zxid)))
}

// lockedWriter passes on the Writes of all writers that share its lock, one at a time.
type lockedWriter struct {
	lock *sync.Mutex
	to   io.Writer
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.to.Write(p)
}

// terminalSafe returns w if at is not a terminal. For a terminal it returns a writer to w that
// quotes control characters: data that others wrote to a znode must not move the cursor, set the
// title or make the terminal send an answer.
func terminalSafe(w, at io.Writer) io.Writer {
	if f, ok := at.(*os.File); ok && console.IsTerminal(f, f) {
		return controlQuoter{w}
	}
	return w
}

// controlQuoter quotes control characters, characters that change the direction of text, and bytes
// that are not UTF-8, as Go and JSON do: \u001b, \x9b. Newlines, CR LF and tabs pass. Each Write
// must consist of whole characters.
type controlQuoter struct{ to io.Writer }

func (v controlQuoter) Write(p []byte) (int, error) {
	if _, err := v.to.Write(quoteControls(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

func quoteControls(p []byte) (out []byte) {
	for n := 0; len(p) > 0; p = p[n:] {
		var r rune
		r, n = utf8.DecodeRune(p)
		passes := r == '\n' || r == '\t' || bytes.HasPrefix(p, []byte("\r\n"))
		switch {
		case r == utf8.RuneError && n == 1:
			out = fmt.Appendf(out, `\x%02x`, p[0])
		case !passes && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)):
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			out = append(out, p[:n]...)
		}
	}
	return out
}
