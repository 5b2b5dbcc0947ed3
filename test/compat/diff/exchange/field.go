package exchange

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// Kind selects how a field is compared.
type Kind int

// Kinds of fields.
const (
	Plain   Kind = iota // equal
	ZxidOf              // in the same order and equal in the same places, over the whole transcript
	TimeMs              // equal where its zxid is equal
	Owner               // the same session
	Secret              // the password of the same session
	Unnamed             // bytes after the defined fields: equal
)

// Field is a field of a frame.
type Field struct {
	Name string
	Kind Kind
	N    int64  // value of a number, also of a TimeMs; of a Secret: the id of its session
	S    string // any other value
	Off  int    // offset in the frame; ZxidOf, TimeMs and Owner take 8 bytes there
	Zxid int64  // of a TimeMs: the zxid of its change
}

// String returns the field as name=value.
func (f Field) String() string {
	switch f.Kind {
	case ZxidOf, Owner:
		return fmt.Sprintf("%s=%#x", f.Name, uint64(f.N))
	case Secret, Unnamed:
		return fmt.Sprintf("%s=%x", f.Name, f.S)
	}
	if f.S != "" {
		return f.Name + "=" + f.S
	}
	return f.Name + "=" + strconv.FormatInt(f.N, 10)
}

// fieldReader reads a frame as fields. Strings keep their bytes, so that invalid UTF-8 is visible;
// null is written as null without quotes.
type fieldReader struct {
	d      jute.Decoder
	prefix string
	fields []Field
}

func (r *fieldReader) add(name string, kind Kind, off int, n int64, s string) {
	if r.d.Err() == nil {
		r.fields = append(r.fields, Field{Name: r.prefix + name, Kind: kind, N: n, S: s, Off: off})
	}
}

func (r *fieldReader) int(name string) int32 {
	off := r.d.Offset()
	n := r.d.Int()
	r.add(name, Plain, off, int64(n), "")
	return n
}

func (r *fieldReader) bool(name string) bool {
	off := r.d.Offset()
	v := r.d.Bool()
	r.add(name, Plain, off, 0, strconv.FormatBool(v))
	return v
}

func (r *fieldReader) long(name string, kind Kind) int64 {
	off := r.d.Offset()
	n := r.d.Long()
	r.add(name, kind, off, n, "")
	return n
}

// quoted reads a ustring or a buffer, which have the same encoding.
func (r *fieldReader) quoted() string {
	b := r.d.Buffer()
	if b == nil {
		return "null"
	}
	return strconv.Quote(string(b))
}

func (r *fieldReader) string(name string) {
	off := r.d.Offset()
	r.add(name, Plain, off, 0, r.quoted())
}

// vector reads a vector of items, as a set if their order does not count.
func (r *fieldReader) vector(name string, item func() string, set bool) {
	off := r.d.Offset()
	n := r.d.Count(4)
	if n < 0 {
		r.add(name, Plain, off, 0, "null")
		return
	}
	items := make([]string, n)
	for i := range items {
		items[i] = item()
	}
	if set {
		slices.Sort(items)
	}
	r.add(name, Plain, off, 0, fmt.Sprint(items))
}

func (r *fieldReader) stat() {
	czxid := r.long("czxid", ZxidOf)
	mzxid := r.long("mzxid", ZxidOf)
	r.long("ctime", TimeMs)
	if r.d.Err() == nil {
		r.fields[len(r.fields)-1].Zxid = czxid
	}
	r.long("mtime", TimeMs)
	if r.d.Err() == nil {
		r.fields[len(r.fields)-1].Zxid = mzxid
	}
	r.int("version")
	r.int("cversion")
	r.int("aversion")
	r.long("ephemeralOwner", Owner)
	r.int("dataLength")
	r.int("numChildren")
	r.long("pzxid", ZxidOf)
}

func (r *fieldReader) acls() {
	n := r.d.Count(12)
	r.add("acls", Plain, r.d.Offset(), int64(n), "")
	for i := range n {
		name := "acl" + strconv.Itoa(i)
		r.int(name + ".perms")
		r.string(name + ".scheme")
		r.string(name + ".id")
	}
}

// replyBodies are the fields of response records, as record reads them.
var replyBodies = map[proto.OpCode]string{
	proto.OpCreate:               "path",
	proto.OpCreate2:              "path stat",
	proto.OpCreateContainer:      "path stat",
	proto.OpCreateTTL:            "path stat",
	proto.OpExists:               "stat",
	proto.OpSetData:              "stat",
	proto.OpSetACL:               "stat",
	proto.OpGetData:              "data stat",
	proto.OpReconfig:             "data stat",
	proto.OpGetACL:               "acls stat",
	proto.OpGetChildren:          "set:children",
	proto.OpGetChildren2:         "set:children stat",
	proto.OpGetEphemerals:        "set:paths",
	proto.OpSync:                 "path",
	proto.OpGetAllChildrenNumber: "int:value",
	proto.OpAddWatch:             "int:value",
	proto.OpSASL:                 "token",
}

// record reads fields: "acls", "stat", strings by their names, and others as TYPE:NAME.
func (r *fieldReader) record(fields string) {
	for f := range strings.FieldsSeq(fields) {
		typ, name, _ := strings.Cut(f, ":")
		switch typ {
		case "acls":
			r.acls()
		case "stat":
			r.stat()
		case "int":
			r.int(name)
		case "bool":
			r.bool(name)
		case "long":
			r.long(name, Plain)
		case "set":
			r.vector(name, r.quoted, true)
		case "list":
			r.vector(name, r.quoted, false)
		default:
			r.string(f)
		}
	}
}

// body reads the response record of op.
func (r *fieldReader) body(op proto.OpCode) {
	switch op {
	case proto.OpWhoAmI:
		r.vector("ids", func() string { return r.quoted() + ":" + r.quoted() }, true)
	case proto.OpMulti, proto.OpMultiRead:
		r.results()
	default:
		r.record(replyBodies[op])
	}
}

// header reads the header before the i-th op or result, and reports whether it ends the list.
// Otherwise the fields that follow belong to that op or result.
func (r *fieldReader) header(what string, i int) (op proto.OpCode, done bool) {
	r.prefix = what + strconv.Itoa(i) + "."
	op = proto.OpCode(r.int("type"))
	done = r.bool("done")
	r.int("err")
	if done {
		r.prefix = ""
	}
	return op, done
}

// results reads the response of a multi or multiRead.
func (r *fieldReader) results() {
	for i := 0; r.d.Err() == nil; i++ {
		typ, done := r.header("result", i)
		if done {
			return
		}
		switch typ {
		case proto.OpError:
			r.int("code")
		case proto.OpCreate, proto.OpCreate2, proto.OpSetData, proto.OpGetData, proto.OpGetChildren:
			r.body(typ)
		case proto.OpDelete, proto.OpCheck:
		default:
			r.prefix = ""
			return // the rest stays unnamed
		}
	}
}

// finish adds the remaining bytes of a malformed or long frame.
func (r *fieldReader) finish(frame []byte) []Field {
	at := 0
	if r.d.Err() == nil {
		at = r.d.Offset()
	} else if n := len(r.fields); n > 0 {
		at = r.fields[n-1].Off
		r.fields = append(r.fields, Field{Name: "malformed", Off: at})
	}
	if at < len(frame) {
		r.fields = append(r.fields, Field{Name: "rest", Kind: Unnamed, S: string(frame[at:]), Off: at})
	}
	return r.fields
}

func replyFields(op proto.OpCode, frame []byte) []Field {
	r := fieldReader{d: jute.NewDecoder(frame)}
	r.int("xid")
	r.long("zxid", ZxidOf)
	// ZooKeeper leaves the results so far after the header of a failed multiRead
	// (FinalRequestProcessor). They are read because they contain times and zxids.
	if err := r.int("err"); err == 0 || op == proto.OpMultiRead && r.d.Remaining() > 0 {
		r.body(op)
	}
	return r.finish(frame)
}

func eventFields(frame []byte) []Field {
	r := fieldReader{d: jute.NewDecoder(frame)}
	r.int("xid")
	r.long("zxid", ZxidOf)
	r.int("err")
	r.int("type")
	r.int("state")
	r.string("path")
	return r.finish(frame)
}

// connectFields reads the reply to a handshake.
func connectFields(frame []byte) []Field {
	r := fieldReader{d: jute.NewDecoder(frame)}
	r.int("protocol")
	r.int("timeout")
	session := r.long("session", Owner)
	off := r.d.Offset()
	r.add("passwd", Secret, off, session, string(r.d.Buffer()))
	if r.d.Remaining() > 0 {
		r.bool("readOnly")
	}
	return r.finish(frame)
}
