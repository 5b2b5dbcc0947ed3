package shell

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/shell/console"
	"github.com/gozkd/gozkd/internal/subtree"
	"github.com/gozkd/gozkd/proto"
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
		_ = writeJSON(s.json.messages, map[string]jsonEvent{"event": eventOf(e)}) // there is no other place to report it
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

// quoteControls returns p itself if there is nothing to quote.
func quoteControls(p []byte) []byte {
	var out []byte
	from := 0 // everything before it is in out
	for i := 0; i < len(p); {
		r, n := utf8.DecodeRune(p[i:])
		quoted := ""
		switch {
		case r == utf8.RuneError && n == 1:
			quoted = fmt.Sprintf(`\x%02x`, p[i])
		case r == '\n' || r == '\t' || r == '\r' && i+1 < len(p) && p[i+1] == '\n':
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			quoted = fmt.Sprintf(`\u%04x`, r)
		}
		if quoted != "" {
			out = append(append(out, p[from:i]...), quoted...)
			from = i + n
		}
		i += n
	}
	if from == 0 {
		return p
	}
	return append(out, p[from:]...)
}

// jsonOutput holds the streams of --output json, one value per line. Standard output gets a value
// for each successful command, or for each item that the command found. Standard error gets
// everything else: {"error": ...}, {"event": ...}, and {"note": ...} for text beside a result.
type jsonOutput struct{ results, messages io.Writer }

// writeJSON writes a value and a newline in one piece.
func writeJSON(w io.Writer, v any) error {
	line, err := subtree.Line(v)
	if err == nil {
		_, err = w.Write(line)
	}
	return err
}

// marshal returns the JSON of v, like json.Marshal, but without escaping HTML.
func marshal(v any) ([]byte, error) {
	line, err := subtree.Line(v)
	return bytes.TrimSuffix(line, []byte("\n")), err
}

// noteWriter turns each Write into a JSON line.
type noteWriter struct{ to io.Writer }

func (n noteWriter) Write(p []byte) (int, error) {
	text := strings.Trim(string(p), "\n")
	if text == "" {
		return len(p), nil
	}
	return len(p), writeJSON(n.to, map[string]string{"note": text})
}

// jsonError describes why a command failed.
type jsonError struct {
	Code    string `json:"code"`             // ZooKeeper's name, or a code below
	Number  int32  `json:"number,omitempty"` // ZooKeeper's number
	Op      string `json:"op,omitempty"`
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`           // for people
	Unknown bool   `json:"unknown,omitempty"` // a write that may have been applied
	Usage   string `json:"usage,omitempty"`   // of the command, if the line was wrong
}

// Codes of errors that ZooKeeper does not have.
const (
	codeUsage        = "USAGE"        // the line is wrong
	codeNotConnected = "NOTCONNECTED" // there is no session
	codeInterrupted  = "INTERRUPTED"  // by Ctrl-C
	codeFailed       = "FAILED"
)

// errorLine describes the error of the command called name, or of the shell if name is empty.
func (s *Shell) errorLine(name string, err error) map[string]jsonError {
	var wrong usageError
	var e *client.Error
	line := jsonError{Code: codeFailed, Message: message(err)}
	switch {
	case errors.Is(err, errNotConnected) || errors.As(err, new(unreachable)):
		line.Code = codeNotConnected
	case errors.As(err, &wrong):
		line.Code = codeUsage
		if c := s.find(name); c != nil {
			line.Usage = c.usage()
		}
		if wrong == errUsage {
			line.Message = "wrong arguments"
		}
	case errors.As(err, &e):
		line.Code, line.Number, line.Op, line.Path, line.Unknown = javaCode(e.Code), int32(e.Code), e.Op, e.Path, e.Unknown
		if interrupted(e) {
			line.Code, line.Number = codeInterrupted, 0
		}
	}
	line.Message = cmp.Or(line.Message, "failed; the notes before this line say why")
	return map[string]jsonError{"error": line}
}

// jsonEvent is a watch event, or a change of the session's state, whose type is None.
type jsonEvent struct {
	Type  string `json:"type"`
	State string `json:"state"`
	Path  string `json:"path,omitempty"`
	Zxid  string `json:"zxid,omitempty"` // of the change; servers before 3.9 do not send it
}

func eventOf(e client.Event) jsonEvent {
	j := jsonEvent{Type: eventName(e), State: e.State.KeeperState(), Path: e.Path}
	if e.Zxid != proto.NoZxid {
		j.Zxid = e.Zxid.String()
	}
	return j
}

// jsonDate formats a time in Unix milliseconds as JSON has it: in UTC, with milliseconds.
func jsonDate(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// jsonData holds a znode's data under one of two keys, for embedding: "data" is a string, or null
// if the znode has no data; "data_base64" is for data that is not UTF-8.
type jsonData struct {
	Data   json.RawMessage `json:"data,omitempty"`
	Base64 *string         `json:"data_base64,omitempty"`
}

// dataOf returns data as it is if it can be and if encoded is false.
func dataOf(data []byte, encoded bool) jsonData {
	switch {
	case data == nil:
		return jsonData{Data: json.RawMessage("null")}
	case encoded || !utf8.Valid(data):
		return base64Of(data)
	}
	quoted, err := marshal(string(data))
	if err != nil {
		panic(err) // marshalling a string cannot fail
	}
	return jsonData{Data: quoted}
}

func base64Of(data []byte) jsonData {
	text := base64.StdEncoding.EncodeToString(data)
	return jsonData{Base64: &text}
}

// MarshalJSON encodes the Stat without the location.
func (s *stat) MarshalJSON() ([]byte, error) { return marshal(s.Stat.JSON()) }
