package exchange

import (
	"fmt"
	"strings"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// brief describes the request without the parts that every request has.
func (r *Request) brief() string {
	f := requestReader{fieldReader{d: jute.NewDecoder(r.Body)}}
	f.body(r.Op)
	parts := []string{r.Op.String()}
	fields := f.finish(r.Body)
	for i := 0; i < len(fields); i++ {
		x := &fields[i]
		switch {
		case strings.HasSuffix(x.Name, "acls") && x.N == 1 && i+3 < len(fields) && fields[i+1].N == int64(proto.PermAll) &&
			fields[i+2].S == `"world"` && fields[i+3].S == `"anyone"`:
			parts = append(parts, "open")
			i += 3
		case strings.HasSuffix(x.Name, ".done"), strings.HasSuffix(x.Name, ".err"):
		case strings.HasSuffix(x.Name, ".path") || x.Name == "path":
			parts = append(parts, x.S)
		case x.Name == "data" && len(x.S) > 60:
			parts = append(parts, fmt.Sprintf("data=%.50s...", x.S))
		default:
			parts = append(parts, x.String())
		}
	}
	return strings.Join(parts, " ")
}

// brief describes the message without the parts that follow from its bytes.
func (m *Message) brief() string {
	switch m.Kind {
	case MessageReply:
		if err := m.Err(); err != proto.OK {
			return fmt.Sprintf("%v %v", m.Op, err)
		}
		s := fmt.Sprintf("%v zxid=%d", m.Op, m.Field("zxid"))
		for _, f := range m.Fields[min(3, len(m.Fields)):] {
			switch _, last, _ := strings.Cut(f.Name, "."); {
			case f.Name == "path", f.Name == "children", f.Name == "paths", f.Name == "ids", f.Name == "value", f.Name == "data" && len(f.S) < 40:
				s += " " + f.S
				if f.S == "" {
					s += fmt.Sprint(f.N)
				}
			case f.Name == "version" || f.Name == "cversion" || f.Name == "aversion":
				s += fmt.Sprintf(" %s=%d", f.Name, f.N)
			case last == "err" || last == "code":
				s += fmt.Sprintf(" %d", f.N)
			}
		}
		return s
	case MessageEvent:
		path := ""
		if f := fieldNamed(m, "path"); f != nil {
			path = f.S
		}
		return fmt.Sprintf("event zxid=%d %v %s", m.Field("zxid"), proto.EventType(m.Field("type")), path)
	}
	return m.String()
}
