package server_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// BenchmarkRequest measures one client that waits for each reply, over the loopback, with the log
// on disk. The client allocates nothing, so that all allocations are the server's.
func BenchmarkRequest(b *testing.B) {
	data := make([]byte, 100)
	set := func(path string) []byte {
		return (&proto.SetDataRequest{Path: path, Data: data, Version: -1}).Append(nil)
	}
	var multi proto.MultiRequest
	for i := range 10 {
		multi.Ops = append(multi.Ops, proto.MultiOp{Op: proto.OpSetData, Path: fmt.Sprintf("/ten/n%d", i), Data: data, Version: -1})
	}
	for _, row := range []struct {
		name string
		op   proto.OpCode
		body []byte
	}{
		{"ping", proto.OpPing, nil},
		{"getData", proto.OpGetData, (&proto.PathWatchRequest{Path: "/ten/n1"}).Append(nil)},
		{"exists", proto.OpExists, (&proto.PathWatchRequest{Path: "/ten/n1"}).Append(nil)},
		{"getChildren=10", proto.OpGetChildren, (&proto.PathWatchRequest{Path: "/ten"}).Append(nil)},
		{"setData", proto.OpSetData, set("/ten/n1")},
		{"createSequential", proto.OpCreate, (&proto.CreateRequest{Path: "/made/n", Data: data, ACL: proto.OpenACL(), Mode: proto.ModePersistentSequential}).Append(nil, proto.OpCreate)},
		{"multi=10", proto.OpMulti, multi.Append(nil)},
	} {
		b.Run(row.name, func(b *testing.B) {
			s, err := server.New(server.Config{Dir: b.TempDir(), Listen: "127.0.0.1:0"})
			if err != nil {
				b.Fatal(err)
			}
			if err := s.Start(b.Context()); err != nil {
				b.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			znodes := map[string][]byte{"/made": nil}
			for i := range 10 {
				znodes[fmt.Sprintf("/ten/n%d", i)] = data
			}
			if err := s.Load(b.Context(), znodes); err != nil {
				b.Fatal(err)
			}
			nc, err := net.Dial("tcp", s.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			r := &raw{t: b, nc: nc}
			defer func() { _ = nc.Close() }()
			r.connect(30000, 0, nil)
			frame := binary.BigEndian.AppendUint32(nil, uint32(8+len(row.body)))
			frame = binary.BigEndian.AppendUint32(frame, 1)
			frame = append(binary.BigEndian.AppendUint32(frame, uint32(row.op)), row.body...)
			reply := make([]byte, 64<<10)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := nc.Write(frame); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(nc, reply[:20]); err != nil {
					b.Fatal(err)
				}
				if code := int32(binary.BigEndian.Uint32(reply[16:])); code != 0 {
					b.Fatalf("code %d", code)
				}
				if _, err := io.ReadFull(nc, reply[:binary.BigEndian.Uint32(reply)-16]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
