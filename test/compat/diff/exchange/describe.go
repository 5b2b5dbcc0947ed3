package exchange

import (
	"fmt"
	"strings"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// requestBodies are the fields of request records, as record reads them.
var requestBodies = map[proto.OpCode]string{
	proto.OpCreate:               "path data acls int:mode",
	proto.OpCreate2:              "path data acls int:mode",
	proto.OpCreateContainer:      "path data acls int:mode",
	proto.OpCreateTTL:            "path data acls int:mode long:ttl",
	proto.OpDelete:               "path int:version",
	proto.OpCheck:                "path int:version",
	proto.OpExists:               "path bool:watch",
	proto.OpGetData:              "path bool:watch",
	proto.OpGetChildren:          "path bool:watch",
	proto.OpGetChildren2:         "path bool:watch",
	proto.OpSetData:              "path data int:version",
	proto.OpSetACL:               "path acls int:version",
	proto.OpGetACL:               "path",
	proto.OpSync:                 "path",
	proto.OpGetAllChildrenNumber: "path",
	proto.OpGetEphemerals:        "path",
	proto.OpDeleteContainer:      "path",
	proto.OpReconfig:             "joining leaving members long:config",
	proto.OpCheckWatches:         "path int:type",
	proto.OpRemoveWatches:        "path int:type",
	proto.OpAddWatch:             "path int:mode",
	proto.OpAuth:                 "int:type scheme auth",
	proto.OpSASL:                 "token",
	proto.OpSetWatches:           "long:relativeZxid list:data list:exist list:child",
	proto.OpSetWatches2:          "long:relativeZxid list:data list:exist list:child list:persistent list:recursive",
}

// requestReader reads request records as fields.
type requestReader struct{ fieldReader }

func (r *requestReader) body(op proto.OpCode) {
	if op != proto.OpMulti && op != proto.OpMultiRead {
		r.record(requestBodies[op])
		return
	}
	for i := 0; r.d.Err() == nil; i++ {
		typ, done := r.header("op", i)
		if done {
			return
		}
		if typ == proto.OpMulti || typ == proto.OpMultiRead {
			return // not nested: the rest stays unnamed
		}
		r.body(typ)
	}
}

// fields returns the fields of the request, as far as it is well formed.
func (r *Request) fields() []Field {
	f := requestReader{fieldReader{d: jute.NewDecoder(r.Body)}}
	f.body(r.Op)
	return f.fields
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
