package exchange

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// head describes the step without its requests.
func (s *Step) head() string {
	b := fmt.Sprintf("conn=%d", s.Conn)
	switch {
	case s.Connect != nil:
		c := s.Connect
		b += fmt.Sprintf(" connect session=%d how=%s timeout=%d", c.Session, c.How, c.TimeoutMs)
		if c.ReadOnly != nil {
			b += fmt.Sprintf(" readOnly=%t", *c.ReadOnly)
		}
		if c.LastZxid != "" {
			b += " lastZxid=" + string(c.LastZxid)
		}
	case s.Raw != nil:
		b += fmt.Sprintf(" raw %x", []byte(s.Raw))
	case s.Drop:
		b += " drop"
	default:
		b += " send"
	}
	if s.Closes {
		b += ", closes"
	}
	return b
}

// describe describes the request as far as its body can be decoded.
func (r *Request) describe() string {
	f := requestReader{fieldReader{d: jute.NewDecoder(r.Body)}}
	f.body(r.Op)
	parts := []string{"xid=" + strconv.Itoa(int(r.Xid)), r.Op.String()}
	for _, x := range f.finish(r.Body) {
		parts = append(parts, x.String())
	}
	if r.ZxidOf != nil {
		parts = append(parts, fmt.Sprintf("(relativeZxid is that of step %d)", *r.ZxidOf))
	}
	return strings.Join(parts, " ")
}

// requestReader reads request records as fields.
type requestReader struct{ fieldReader }

func (r *requestReader) body(op proto.OpCode) {
	switch op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		r.string("path")
		r.string("data")
		r.acls()
		r.int("mode")
		if op == proto.OpCreateTTL {
			r.long("ttl", Plain)
		}
	case proto.OpDelete, proto.OpCheck:
		r.string("path")
		r.int("version")
	case proto.OpExists, proto.OpGetData, proto.OpGetChildren, proto.OpGetChildren2:
		r.string("path")
		r.bool("watch")
	case proto.OpSetData:
		r.string("path")
		r.string("data")
		r.int("version")
	case proto.OpSetACL:
		r.string("path")
		r.acls()
		r.int("version")
	case proto.OpGetACL, proto.OpSync, proto.OpGetAllChildrenNumber, proto.OpGetEphemerals, proto.OpDeleteContainer:
		r.string("path")
	case proto.OpReconfig:
		r.string("joining")
		r.string("leaving")
		r.string("members")
		r.long("config", Plain)
	case proto.OpCheckWatches, proto.OpRemoveWatches:
		r.string("path")
		r.int("type")
	case proto.OpAddWatch:
		r.string("path")
		r.int("mode")
	case proto.OpAuth:
		r.int("type")
		r.string("scheme")
		r.string("auth")
	case proto.OpSASL:
		r.string("token")
	case proto.OpSetWatches, proto.OpSetWatches2:
		r.long("relativeZxid", Plain)
		names := []string{"data", "exist", "child", "persistent", "recursive"}
		if op == proto.OpSetWatches {
			names = names[:3]
		}
		for _, name := range names {
			r.list(name)
		}
	case proto.OpMulti, proto.OpMultiRead:
		for i := 0; r.d.Err() == nil; i++ {
			r.prefix = "op" + strconv.Itoa(i) + "."
			typ := proto.OpCode(r.int("type"))
			if done := r.bool("done"); done {
				r.int("err")
				r.prefix = ""
				return
			}
			r.int("err")
			if typ == proto.OpMulti || typ == proto.OpMultiRead {
				return // not nested: the rest stays unnamed
			}
			r.body(typ)
		}
	}
}

// list reads a vector of strings in order.
func (r *requestReader) list(name string) {
	off := r.d.Offset()
	n := r.d.Count(4)
	if n < 0 {
		r.add(name, Plain, off, 0, "null")
		return
	}
	items := make([]string, n)
	for i := range items {
		items[i] = r.quoted()
	}
	r.add(name, Plain, off, 0, fmt.Sprint(items))
}
