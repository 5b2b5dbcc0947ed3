package server

import (
	"encoding/binary"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// beginReply appends a frame's length, to be patched by endFrame, and a reply header.
func beginReply(b []byte, xid int32, zxid proto.Zxid, code proto.ErrCode) (out []byte, start int) {
	start = len(b)
	b = append(b, 0, 0, 0, 0)
	return (&proto.ReplyHeader{Xid: xid, Zxid: zxid, Err: code}).Append(b), start
}

// endFrame patches the length of the frame that begins at start.
func endFrame(b []byte, start int) []byte {
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	return b
}

func appendStatus(b []byte, xid int32, zxid proto.Zxid, code proto.ErrCode) []byte {
	b, start := beginReply(b, xid, zxid, code)
	return endFrame(b, start)
}

// eventBytes is the length of an event frame without the path: its length, the header, and type,
// state and the path's length.
const eventBytes = 4 + proto.ReplyHeaderBytes + 3*4

func appendEvent(b []byte, zxid proto.Zxid, typ proto.EventType, path string) []byte {
	b, start := beginReply(b, proto.XidEvent, zxid, proto.OK)
	b = (&proto.WatcherEvent{Type: typ, State: proto.StateConnected, Path: path}).Append(b)
	return endFrame(b, start)
}

func appendResult(b []byte, w *clientWrite, res *datatree.Result) []byte {
	b, start := beginReply(b, w.xid, res.Zxid, res.Err)
	if res.Err == proto.OK {
		switch w.req.Op {
		case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
			b = (&proto.CreateResponse{Path: res.Path, Stat: res.Stat}).Append(b, w.req.Op)
		case proto.OpSetData, proto.OpSetACL:
			b = res.Stat.Append(b)
		case proto.OpReconfig:
			b = res.Stat.Append(jute.AppendBuffer(b, res.Data))
		case proto.OpMulti:
			b = (&proto.MultiResponse{Results: res.Multi}).Append(b)
		}
	}
	return endFrame(b, start)
}
