package exchange

import (
	"bufio"
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

// ErrText is wrapped by every error of ReadText about its input.
var ErrText = errors.New("exchange: bad recording")

// The text of a recording, line by line. Text after # is for people.
//
//	sequence NAME
//	session SLOT ID PASSWD          id and password in hex
//	step JSON                       a Step without its requests
//	> XID OP BODY [zxidOf=STEP]     a request; op as a number, body in hex or - for none
//	< FRAME                         what arrived, in hex
//	! NOTE
//	flush SLOT                      what arrived at the end on that connection follows

// WriteText writes transcripts that ReadText can read.
func WriteText(w io.Writer, list []*Transcript) error {
	b := bufio.NewWriter(w)
	for _, t := range list {
		t.writeText(b)
	}
	return b.Flush()
}

func (t *Transcript) writeText(b *bufio.Writer) {
	fmt.Fprintf(b, "\nsequence %s\n", t.Sequence.Name)
	for _, slot := range slices.Sorted(maps.Keys(t.Sessions)) {
		s := t.Sessions[slot]
		fmt.Fprintf(b, "session %d %x %x\n", slot, uint64(s.ID), s.Passwd)
	}
	for i := range t.Steps {
		step := &t.Sequence.Steps[i]
		fmt.Fprintf(b, "step %s\n", step.head())
		for k := range step.Send {
			r := &step.Send[k]
			body := "-"
			if len(r.Body) > 0 {
				body = hex.EncodeToString(r.Body)
			}
			fmt.Fprintf(b, "> %d %d %s", r.Xid, r.Op, body)
			if r.ZxidOf != nil {
				fmt.Fprintf(b, " zxidOf=%d", *r.ZxidOf)
			}
			fmt.Fprintf(b, " # %s\n", r.words())
		}
		writeItems(b, t.Steps[i], t.Messages(i))
	}
	for _, slot := range slices.Sorted(maps.Keys(t.Flush)) {
		fmt.Fprintf(b, "flush %d\n", slot)
		writeItems(b, t.Flush[slot], t.Messages(len(t.Steps)+slot))
	}
}

func writeItems(b *bufio.Writer, items []Item, messages []Message) {
	for i, it := range items {
		if it.Frame == nil {
			fmt.Fprintf(b, "! %s\n", it.Note)
			continue
		}
		fmt.Fprintf(b, "< %x # %s\n", it.Frame, messages[i].brief())
	}
}

// ReadText reads the output of WriteText. Errors name the line.
func ReadText(r io.Reader) ([]*Transcript, error) {
	p := textReader{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), " # ")
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := must.Try(func() { p.line(line) }); err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrText, n, err)
		}
	}
	return p.list, lines.Err()
}

// textReader is the state of ReadText.
type textReader struct {
	list []*Transcript
	slot int // of the current flush, -1 in steps
}

var errOutOfPlace = errors.New("out of place")

func (p *textReader) line(line string) {
	word, rest, _ := strings.Cut(line, " ")
	if word == "sequence" {
		p.list = append(p.list, &Transcript{Sequence: &Sequence{Name: rest}, Flush: make(map[int][]Item), Sessions: make(map[int]Session)})
		p.slot = -1
		return
	}
	if len(p.list) == 0 {
		must.Do(errOutOfPlace)
	}
	t := p.list[len(p.list)-1]
	switch word {
	case "session":
		var slot int
		var id uint64
		var passwd []byte
		must.Get(fmt.Sscanf(rest, "%d %x %x", &slot, &id, &passwd))
		t.Sessions[slot] = Session{proto.SessionID(id), passwd}
	case "step":
		var step Step
		must.Do(json.Unmarshal([]byte(rest), &step))
		t.Sequence.Steps = append(t.Sequence.Steps, step)
		t.Steps = append(t.Steps, nil)
	case "flush":
		p.slot = must.Get(strconv.Atoi(rest))
		t.Flush[p.slot] = nil
	case ">":
		t.readRequest(rest)
	case "<":
		p.item(t, Item{Frame: must.Get(hex.DecodeString(rest))})
	case "!":
		p.item(t, Item{Note: Note(rest)})
	default:
		must.Failf("unknown word %q", word)
	}
}

func (p *textReader) item(t *Transcript, it Item) {
	last := len(t.Steps) - 1
	switch {
	case p.slot >= 0:
		t.Flush[p.slot] = append(t.Flush[p.slot], it)
	case last < 0:
		must.Do(errOutOfPlace)
	default:
		t.Steps[last] = append(t.Steps[last], it)
	}
}

func (t *Transcript) readRequest(text string) {
	words := strings.Fields(text)
	if len(words) < 3 || len(t.Sequence.Steps) == 0 {
		must.Do(errOutOfPlace)
	}
	xid, op := must.Get(strconv.ParseInt(words[0], 10, 32)), must.Get(strconv.ParseInt(words[1], 10, 32))
	r := Request{Xid: int32(xid), Op: proto.OpCode(op)}
	if words[2] != "-" {
		r.Body = must.Get(hex.DecodeString(words[2]))
	}
	if len(words) > 3 {
		r.ZxidOf = new(int)
		must.Get(fmt.Sscanf(words[3], "zxidOf=%d", r.ZxidOf))
	}
	last := &t.Sequence.Steps[len(t.Sequence.Steps)-1]
	last.Send = append(last.Send, r)
}
