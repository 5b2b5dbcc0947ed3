package shell

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

// useJSON makes the shell print JSON only, one value to a line. Standard output gets one value for each command that
// succeeded, or for each thing that it found. Standard error gets all else: {"error": …}, {"event": …}, and {"note": …} for text that a command has to say
// beside its result.
func (s *Shell) useJSON() {
	results, others := s.out, s.err
	s.out, s.err = notes{others}, notes{others}
	s.show = func(r result) error {
		s.shown = true
		return writeJSON(results, r)
	}
	s.onEvent = func(e client.Event) { _ = writeJSON(others, jsonEventLine{eventOf(e)}) } // there is no other place to tell it
	s.fail = func(name string, err error) { _ = writeJSON(others, s.errorLine(name, err)) }
}

// writeJSON writes a value and a newline, in one piece.
func writeJSON(w io.Writer, v any) error {
	line, err := marshal(v)
	if err == nil {
		_, err = w.Write(append(line, '\n'))
	}
	return err
}

// marshal is json.Marshal without its care for HTML: people read this, and data is often XML.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// notes makes a JSON line of each Write.
type notes struct{ to io.Writer }

func (n notes) Write(p []byte) (int, error) {
	text := strings.Trim(string(p), "\n")
	if text == "" {
		return len(p), nil
	}
	return len(p), writeJSON(n.to, struct {
		Note string `json:"note"`
	}{text})
}

type jsonErrorLine struct {
	Error jsonError `json:"error"`
}

// jsonError says why a command failed.
type jsonError struct {
	Code    string `json:"code"`             // ZooKeeper's name, or one of the codes below
	Number  int32  `json:"number,omitempty"` // ZooKeeper's number
	Op      string `json:"op,omitempty"`
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`           // for people
	Unknown bool   `json:"unknown,omitempty"` // a write that may have been carried out
	Usage   string `json:"usage,omitempty"`   // how the command is used, if the line was wrong
}

// Codes of errors that are not ZooKeeper's.
const (
	codeUsage        = "USAGE"        // the line is wrong
	codeNotConnected = "NOTCONNECTED" // there is no session, or no server gave one
	codeInterrupted  = "INTERRUPTED"  // by Ctrl-C
	codeFailed       = "FAILED"
)

// errorLine describes the error of the command called name; "" is the shell itself.
func (s *Shell) errorLine(name string, err error) jsonErrorLine {
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
			line.Message = "this is not how the command is used"
		}
	case errors.As(err, &e):
		line.Code, line.Number, line.Op, line.Path, line.Unknown = javaCode(e.Code), int32(e.Code), e.Op, e.Path, e.Unknown
		if interrupted(e) {
			line.Code, line.Number = codeInterrupted, 0
		}
	}
	if line.Message == "" {
		line.Message = "failed, as the notes before this say"
	}
	return jsonErrorLine{line}
}

// javaCode returns the name of an error code in Java: NONODE. Source: KeeperException.Code.
func javaCode(code proto.ErrCode) string {
	if code == proto.ErrSessionClosedRequireSASLAuth {
		return "SESSIONCLOSEDREQUIRESASLAUTH"
	}
	words, _, _ := strings.Cut(code.String(), " (")
	return strings.ToUpper(strings.ReplaceAll(words, " ", ""))
}

type jsonEventLine struct {
	Event jsonEvent `json:"event"`
}

// jsonEvent is what a watch told, or a change of the session's state: then the type is None.
type jsonEvent struct {
	Type  string `json:"type"`
	State string `json:"state"`
	Path  string `json:"path,omitempty"`
	Zxid  string `json:"zxid,omitempty"` // of the change; servers before 3.9 do not say
}

func eventOf(e client.Event) jsonEvent {
	j := jsonEvent{Type: eventName(e), State: e.State.KeeperState(), Path: e.Path}
	if e.Zxid != proto.NoZxid {
		j.Zxid = hex(int64(e.Zxid))
	}
	return j
}
