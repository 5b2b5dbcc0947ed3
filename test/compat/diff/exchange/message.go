package exchange

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/proto"
)

// Message is a decoded item of a transcript.
type Message struct {
	Kind   MessageKind
	Note   Note
	Op     proto.OpCode // of a reply: its request
	Index  int          // of a reply: its request's index in the step
	Fields []Field
}

// MessageKind is the kind of a message.
type MessageKind string

// Kinds of messages.
const (
	MessageReply   MessageKind = "reply"
	MessageEvent   MessageKind = "event"
	MessageConnect MessageKind = "connect response"
	MessageNote    MessageKind = "note"
)

// Field returns the value of the number called name, or 0.
func (m *Message) Field(name string) int64 {
	if f := fieldNamed(m, name); f != nil {
		return f.N
	}
	return 0
}

// Err returns the error code of a reply.
func (m *Message) Err() proto.ErrCode { return proto.ErrCode(m.Field("err")) }

// failedResult returns the error code of the operation that failed a multi, or OK.
func (m *Message) failedResult() proto.ErrCode {
	for _, f := range m.Fields {
		if strings.HasPrefix(f.Name, "result") && strings.HasSuffix(f.Name, ".code") && f.N != 0 {
			return proto.ErrCode(f.N)
		}
	}
	return proto.OK
}

// String returns the message on one line.
func (m *Message) String() string {
	if m.Kind == MessageNote {
		return string(m.Note)
	}
	parts := []string{string(m.Kind)}
	if m.Kind == MessageReply {
		parts = append(parts, "to", m.Op.String())
	}
	for _, f := range m.Fields {
		parts = append(parts, f.String())
	}
	return strings.Join(parts, " ")
}

// Messages reads the items of step i, or of the flush of slot i-n if i is at least the number of
// steps n.
func (t *Transcript) Messages(i int) []Message {
	if n := len(t.Steps); i >= n {
		return messages(t.Flush[i-n], []proto.OpCode{proto.OpPing}, false)
	}
	step := &t.Sequence.Steps[i]
	ops := make([]proto.OpCode, len(step.Send))
	for k := range step.Send {
		ops[k] = step.Send[k].Op
	}
	return messages(t.Steps[i], ops, step.Connect != nil)
}

// messages reads items. Replies are in the order of the requests: no sequence contains a request
// whose reply overtakes.
func messages(items []Item, ops []proto.OpCode, handshake bool) []Message {
	list := make([]Message, 0, len(items))
	next := 0
	for _, it := range items {
		switch {
		case it.Frame == nil:
			list = append(list, Message{Kind: MessageNote, Note: it.Note})
		case handshake && len(list) == 0:
			list = append(list, Message{Kind: MessageConnect, Fields: connectFields(it.Frame)})
		case isEvent(it.Frame):
			list = append(list, Message{Kind: MessageEvent, Fields: eventFields(it.Frame)})
		default:
			m := Message{Kind: MessageReply, Op: proto.OpError, Index: next}
			if next < len(ops) {
				m.Op = ops[next]
			}
			next++
			m.Fields = replyFields(m.Op, it.Frame)
			list = append(list, m)
		}
	}
	return list
}

// closeZxids returns the zxids of the transactions that closed sessions in t.
func (t *Transcript) closeZxids() map[int64]bool {
	set := make(map[int64]bool)
	for i := range t.Steps {
		for _, m := range t.Messages(i) {
			if m.Kind == MessageReply && m.Op == proto.OpCloseSession {
				set[m.Field("zxid")] = true
			}
		}
	}
	return set
}

// sortClosing sorts runs of events of a closeSession transaction: a session's ephemerals are
// deleted in the order of a hash set (DataTree.killSession). It moves only adjacent events of the
// same transaction, in both lists where either server's zxids mark them: ZooKeeper 3.8 marks no
// event with a zxid.
func sortClosing(a, b []Message, closeA, closeB map[int64]bool) {
	n := min(len(a), len(b))
	in := func(m *Message, set map[int64]bool) int64 {
		if z := m.Field("zxid"); m.Kind == MessageEvent && set[z] {
			return z
		}
		return 0
	}
	for i := 0; i < n; {
		za, zb := in(&a[i], closeA), in(&b[i], closeB)
		if za == 0 && zb == 0 {
			i++
			continue
		}
		k := i
		for k < n && a[k].Kind == MessageEvent && b[k].Kind == MessageEvent && in(&a[k], closeA) == za && in(&b[k], closeB) == zb {
			k++
		}
		slices.SortStableFunc(a[i:k], compareEvents)
		slices.SortStableFunc(b[i:k], compareEvents)
		i = max(k, i+1)
	}
}

func compareEvents(a, b Message) int {
	key := func(m Message) string {
		s := strconv.FormatInt(m.Field("type"), 10)
		if f := fieldNamed(&m, "path"); f != nil {
			s += f.S
		}
		return s
	}
	return strings.Compare(key(a), key(b))
}

// Reached lists what t shows of the server: each kind of reply to each kind of request. A sequence
// that adds no entry shows nothing new.
func (t *Transcript) Reached() []string {
	var names []string
	for i := range t.Steps {
		step := &t.Sequence.Steps[i]
		kind := "send"
		if step.Connect != nil {
			kind = fmt.Sprintf("connect %s %q", step.Connect.How, step.Connect.LastZxid)
		}
		for _, m := range t.Messages(i) {
			switch m.Kind {
			case MessageReply:
				question := ""
				if m.Index < len(step.Send) {
					question = step.Send[m.Index].kind()
				}
				names = append(names, fmt.Sprintf("%s: %d", question, m.Err()))
				for _, f := range m.Fields {
					if f.Name == "result0.err" || f.Name == "result1.err" {
						names = append(names, fmt.Sprintf("%s %s: %d", m.Op, f.Name, f.N))
					}
				}
			case MessageEvent:
				cause := ""
				if len(step.Send) > 0 {
					cause = step.Send[0].Op.String()
				}
				names = append(names, fmt.Sprintf("event %d before the reply to %s", m.Field("type"), cause))
			case MessageNote:
				names = append(names, kind+" "+string(m.Note))
			case MessageConnect:
				names = append(names, fmt.Sprintf("%s: %t", kind, m.Field("session") != 0))
			}
		}
	}
	return names
}

// kind names the operation together with what selects its handling.
func (r *Request) kind() string {
	s := r.Op.String()
	for _, x := range r.fields() {
		if x.Name == "mode" || x.Name == "type" || x.Name == "watch" {
			s += " " + x.String()
		}
	}
	return s
}
