package exchange

import (
	"fmt"

	"github.com/gozkd/gozkd/proto/jute"
)

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
	f := requestReader{fieldReader{d: jute.NewDecoder(r.Body)}}
	f.body(r.Op)
	s := r.Op.String()
	for _, x := range f.fields {
		if x.Name == "mode" || x.Name == "type" || x.Name == "watch" {
			s += " " + x.String()
		}
	}
	return s
}
