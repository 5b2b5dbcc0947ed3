package exchange

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/proto"
)

// ErrScript is wrapped by the errors of ReadScript and ReadText about their input.
var ErrScript = errors.New("exchange: bad script")

var errOutOfPlace = errors.New("out of place")

// ReadScript reads sequences that people have written, or String, a step a line:
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
func ReadScript(text string) (list []*Sequence, err error) {
	read, err := ReadText(text)
	for _, t := range read {
		list = append(list, t.Sequence)
	}
	return list, err
}

// ReadText reads what WriteText has written: scripts with what arrived below each step.
//
//	session SLOT ID PASSWD   id and password in hex
//	< FRAME # WORDS          what arrived, in hex; the words are for people
//	! NOTE
//	flush SLOT               what arrived at the end on that connection follows
func ReadText(text string) ([]*Transcript, error) {
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
	list  []*Transcript
	xids  map[int]int32 // the last, by slot
	flush int           // the slot of the current flush, -1 in steps
}

func (r *scriptReader) line(line string) {
	word, rest, _ := strings.Cut(line, " ")
	if word == "sequence" {
		r.list = append(r.list, &Transcript{Sequence: &Sequence{Name: rest}, Flush: make(map[int][]Item), Sessions: make(map[int]Session)})
		r.xids, r.flush = make(map[int]int32), -1
		return
	}
	if len(r.list) == 0 {
		must.Do(errOutOfPlace)
	}
	t := r.list[len(r.list)-1]
	switch word {
	case "reconnects":
		t.Sequence.Reconnects = true
	case "session":
		var slot int
		var id uint64
		var passwd []byte
		must.Get(fmt.Sscanf(rest, "%d %x %x", &slot, &id, &passwd))
		t.Sessions[slot] = Session{proto.SessionID(id), passwd}
	case "flush":
		r.flush = must.Get(strconv.Atoi(rest))
		t.Flush[r.flush] = nil
	case "<":
		frame, _, _ := strings.Cut(rest, " # ")
		r.item(t, Item{Frame: must.Get(hex.DecodeString(frame))})
	case "!":
		r.item(t, Item{Note: Note(rest)})
	case "connect", "drop", "raw":
		slot, rest, _ := strings.Cut(rest, " ")
		r.action(t, word, must.Get(strconv.Atoi(slot)), rest)
	default:
		r.requests(t, must.Get(strconv.Atoi(word)), rest)
	}
}

func (r *scriptReader) item(t *Transcript, it Item) {
	last := len(t.Steps) - 1
	switch {
	case r.flush >= 0:
		t.Flush[r.flush] = append(t.Flush[r.flush], it)
	case last < 0:
		must.Do(errOutOfPlace)
	default:
		t.Steps[last] = append(t.Steps[last], it)
	}
}

// add adds a step to which nothing has arrived yet.
func (t *Transcript) add(step Step) {
	t.Sequence.Steps, t.Steps = append(t.Sequence.Steps, step), append(t.Steps, nil)
}

// action adds a step without requests.
func (r *scriptReader) action(t *Transcript, kind string, slot int, rest string) {
	step := Step{Conn: slot, Drop: kind == "drop"}
	switch kind {
	case "connect":
		step.Connect = newSession(slot)
		if rest != "" {
			must.Do(json.Unmarshal([]byte(rest), step.Connect))
		}
		step.Closes = step.Connect.Refused()
	case "raw":
		step.Raw, step.Closes = []byte(must.Get(strconv.Unquote(rest))), true
	}
	t.add(step)
}

// requests adds a request: as a step, or to the last step.
func (r *scriptReader) requests(t *Transcript, slot int, text string) {
	text, same := strings.CutPrefix(text, "& ")
	if !same {
		t.add(Step{Conn: slot})
	}
	steps := t.Sequence.Steps
	if len(steps) == 0 || steps[len(steps)-1].Conn != slot {
		must.Do(errOutOfPlace)
	}
	step := &steps[len(steps)-1]
	req := Request{Xid: r.xids[slot] + 1}
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
				r.xids[slot] = req.Xid
			}
			req.Op, req.Body = must.Get2(ParseRequest(text))
			step.Send = append(step.Send, req)
			return
		}
		text = rest
	}
}

// String returns the sequence as ReadScript reads it.
func (s *Sequence) String() string {
	var b strings.Builder
	s.write(&b, func(int) {})
	return b.String()
}

// write writes the sequence, and calls arrived after each step.
func (s *Sequence) write(b *strings.Builder, arrived func(step int)) {
	fmt.Fprintf(b, "sequence %s\n", s.Name)
	if s.Reconnects {
		b.WriteString("reconnects\n")
	}
	xids := make(map[int]int32)
	for i := range s.Steps {
		step := &s.Steps[i]
		switch inJSON := func(c *Connect) string { return string(must.Get(json.Marshal(c))) }; {
		case step.Connect == nil:
		case inJSON(step.Connect) == inJSON(newSession(step.Conn)):
			fmt.Fprintf(b, "connect %d\n", step.Conn)
		default:
			fmt.Fprintf(b, "connect %d %s\n", step.Conn, inJSON(step.Connect))
		}
		if step.Drop {
			fmt.Fprintf(b, "drop %d\n", step.Conn)
		}
		if step.Raw != nil {
			fmt.Fprintf(b, "raw %d %q\n", step.Conn, step.Raw)
		}
		for k := range step.Send {
			fmt.Fprintln(b, step.Conn, step.options(k, xids)+step.Send[k].words())
		}
		arrived(i)
	}
}

// options returns the options of the k-th request of a step, each followed by a space.
func (s *Step) options(k int, xids map[int]int32) (text string) {
	r := &s.Send[k]
	if k > 0 {
		text = "& "
	} else if s.Closes {
		text = "closes "
	}
	if s.Until != 0 {
		text += fmt.Sprintf("until=%d ", s.Until)
	}
	if r.ZxidOf != nil {
		text += fmt.Sprintf("zxidOf=%d ", *r.ZxidOf)
	}
	if r.Xid == xids[s.Conn]+1 {
		xids[s.Conn]++
		return text
	}
	return text + fmt.Sprintf("xid=%d ", r.Xid)
}

// WriteText writes transcripts that ReadText can read.
func WriteText(w io.Writer, list []*Transcript) error {
	var b strings.Builder
	for _, t := range list {
		b.WriteByte('\n')
		t.Sequence.write(&b, func(step int) { writeItems(&b, t.Steps[step], t.Messages(step)) })
		for _, slot := range slices.Sorted(maps.Keys(t.Sessions)) {
			s := t.Sessions[slot]
			fmt.Fprintf(&b, "session %d %x %x\n", slot, uint64(s.ID), s.Passwd)
		}
		for _, slot := range slices.Sorted(maps.Keys(t.Flush)) {
			fmt.Fprintf(&b, "flush %d\n", slot)
			writeItems(&b, t.Flush[slot], t.Messages(len(t.Steps)+slot))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeItems(b *strings.Builder, items []Item, messages []Message) {
	for i, it := range items {
		if it.Frame == nil {
			fmt.Fprintf(b, "! %s\n", it.Note)
			continue
		}
		fmt.Fprintf(b, "< %x # %s\n", it.Frame, messages[i].brief())
	}
}
