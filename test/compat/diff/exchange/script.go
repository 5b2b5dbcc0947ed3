package exchange

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/proto"
)

// ErrScript is wrapped by the errors of ReadScript about its input.
var ErrScript = errors.New("exchange: bad script")

// ReadScript reads sequences that people have written, a step a line:
//
//	# for people
//	sequence NAME
//	reconnects               see Sequence.Reconnects
//	connect SLOT {JSON}      a handshake on a new connection; the default is that of a new session
//	                         of this slot with a timeout of 30 s
//	drop SLOT                the client closes the connection
//	raw SLOT "BYTES"         bytes after which the server closes the connection
//	SLOT REQUEST             a request in words, with the next xid of the slot
//	SLOT xid=N REQUEST       with this xid
//	SLOT zxidOf=STEP ...     with the last zxid seen up to the end of this step as its first field
//	SLOT closes ...          the server closes the connection after this request
//	SLOT until=CODE REQUEST  again and again until the reply has this code
//	SLOT & REQUEST           in the same segment as the request in the line before
//
// Errors name the line.
func ReadScript(text string) ([]*Sequence, error) {
	var r scriptReader
	n := 0
	for line := range strings.Lines(text) {
		n++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		if err := must.Try(func() { r.line(line) }); err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrScript, n, err)
		}
	}
	return r.list, nil
}

type scriptReader struct {
	list []*Sequence
	xids map[int]int32 // the last, by slot
}

func (r *scriptReader) line(line string) {
	word, rest, _ := strings.Cut(line, " ")
	if word == "sequence" {
		r.list, r.xids = append(r.list, &Sequence{Name: rest}), make(map[int]int32)
		return
	}
	if len(r.list) == 0 {
		must.Do(errOutOfPlace)
	}
	s := r.list[len(r.list)-1]
	if word == "reconnects" {
		s.Reconnects = true
		return
	}
	kind := word
	if kind == "connect" || kind == "drop" || kind == "raw" {
		word, rest, _ = strings.Cut(rest, " ")
	}
	step := Step{Conn: must.Get(strconv.Atoi(word)), Drop: kind == "drop"}
	switch kind {
	case "drop":
	case "connect":
		step.Connect = &Connect{Session: step.Conn, How: HowNew, TimeoutMs: 30000}
		if rest != "" {
			must.Do(json.Unmarshal([]byte(rest), step.Connect))
		}
		step.Closes = step.Connect.Refused()
	case "raw":
		step.Raw, step.Closes = Hex(must.Get(strconv.Unquote(rest))), true
	default:
		if rest, ok := strings.CutPrefix(rest, "& "); ok {
			if len(s.Steps) == 0 || s.Steps[len(s.Steps)-1].Conn != step.Conn {
				must.Do(errOutOfPlace)
			}
			r.request(&s.Steps[len(s.Steps)-1], rest)
			return
		}
		r.request(&step, rest)
	}
	s.Steps = append(s.Steps, step)
}

// request adds a request to a step.
func (r *scriptReader) request(step *Step, text string) {
	var req Request
	numbered := false
	for {
		option, rest, _ := strings.Cut(text, " ")
		name, value, _ := strings.Cut(option, "=")
		number := func() int { return int(must.Get(strconv.ParseInt(value, 10, 32))) }
		switch name {
		case "closes":
			step.Closes = true
		case "xid":
			req.Xid, numbered = int32(number()), true
		case "until":
			step.Until = proto.ErrCode(number())
		case "zxidOf":
			at := number()
			req.ZxidOf = &at
		default:
			if !numbered {
				r.xids[step.Conn]++
				req.Xid = r.xids[step.Conn]
			}
			req.Op, req.Body = must.Get2(ParseRequest(text))
			step.Send = append(step.Send, req)
			return
		}
		text = rest
	}
}
