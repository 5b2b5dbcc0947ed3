package proto_test

import (
	"reflect"
	"testing"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// FuzzDecode decodes any bytes as every record. There is no panic, the memory kept is bounded by
// the input, and a record decoded without an error equals the decoding of its own encoding.
func FuzzDecode(f *testing.F) {
	acls := (&proto.SetACLRequest{Path: "/a", ACL: proto.OpenACL()}).Append(nil)
	multi := (&proto.MultiRequest{Ops: []proto.MultiOp{{Op: proto.OpCreate, Path: "/a", Data: []byte{1}}, {Op: proto.OpCheck, Path: "/b"}}}).Append(nil)
	f.Add(acls)
	f.Add(multi)
	f.Add((&proto.MultiResponse{Results: []proto.MultiResult{{Op: proto.OpDelete}, {Op: proto.OpError, Err: -101}}}).Append(nil))
	f.Add((&proto.SetWatchesRequest{Data: []string{"/a", "", "/b"}}).Append(nil, proto.OpSetWatches2))
	f.Add((&proto.ConnectRequest{Passwd: passwd(), HasReadOnly: true}).Append(nil))
	f.Add([]byte{0x7f, 0xff, 0xff, 0xff})                                              // an excessive length
	f.Add(append(make([]byte, 8), 0x7f, 0xff, 0xff, 0xff))                             // an excessive count
	f.Add(jute.AppendInt(jute.AppendBuffer(jute.AppendString(nil, "/a"), nil), 1<<28)) // ACLs that are missing
	all := codecs()
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, c := range all {
			for _, alias := range []bool{false, true} {
				value, _, err := decode(c, b, alias)
				// The most expensive bytes are those of a result of a multi: 9 bytes encoded,
				// sizeof(MultiResult) in memory, in a slice that append has made up to twice as
				// long as needed.
				if size := retained(reflect.ValueOf(value).Elem()); size > 1024+64*len(b) {
					t.Fatalf("%s keeps %d bytes after reading %d", c.name, size, len(b))
				}
				if err != nil {
					continue
				}
				again, rest, err := decode(c, value2record(c, value).Append(nil), alias)
				if err != nil || rest != 0 || !reflect.DeepEqual(again, value) {
					t.Fatalf("%s: %+v was read back as %+v, %d bytes left, %v", c.name, value, again, rest, err)
				}
			}
		}
	})
}

// value2record returns the record of c with this value.
func value2record(c codec, value any) record {
	rec, empty, _ := c.make()
	reflect.ValueOf(empty).Elem().Set(reflect.ValueOf(value).Elem())
	return rec
}

// retained sums up the memory that v refers to, by capacity.
func retained(v reflect.Value) int {
	size := int(v.Type().Size())
	switch v.Kind() {
	case reflect.String:
		size += v.Len()
	case reflect.Pointer:
		if !v.IsNil() {
			size += retained(v.Elem())
		}
	case reflect.Slice:
		size += (v.Cap() - v.Len()) * int(v.Type().Elem().Size())
		for i := range v.Len() {
			size += retained(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			size += retained(v.Field(i)) - int(v.Field(i).Type().Size())
		}
	}
	return size
}
