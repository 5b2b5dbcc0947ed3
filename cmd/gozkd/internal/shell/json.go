package shell

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

// jsonOutput holds the streams of --output json, one value per line. Standard output gets a value
// for each successful command, or for each item that the command found. Standard error gets
// everything else: {"error": ...}, {"event": ...}, and {"note": ...} for text beside a result.
type jsonOutput struct{ results, messages io.Writer }

// writeJSON writes a value and a newline in one piece.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// marshal returns the JSON of v, like json.Marshal, but without escaping HTML.
func marshal(v any) ([]byte, error) {
	var line bytes.Buffer
	err := writeJSON(&line, v)
	return bytes.TrimSuffix(line.Bytes(), []byte("\n")), err
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
	Data   any     `json:"data,omitempty"`
	Base64 *string `json:"data_base64,omitempty"`
}

// dataOf returns data as it is if it can be and if encoded is false.
func dataOf(data []byte, encoded bool) jsonData {
	switch {
	case data == nil:
		return jsonData{Data: json.RawMessage("null")}
	case encoded || !utf8.Valid(data):
		return base64Of(data)
	}
	return jsonData{Data: string(data)}
}

func base64Of(data []byte) jsonData {
	text := base64.StdEncoding.EncodeToString(data)
	return jsonData{Base64: &text}
}

// MarshalJSON encodes the Stat without the location.
func (s *stat) MarshalJSON() ([]byte, error) { return marshal(s.Stat.JSON()) }
