package client

import (
	"encoding/binary"

	"github.com/gozkd/gozkd/proto"
)

// request is what a method asks for.
type request struct {
	op      proto.OpCode
	path    string // for errors
	body    func([]byte) []byte
	watch   *watchOn            // set by the server if it answers OK, or to exists that there is no such znode
	settled func(proto.ErrCode) // called at the answer, before what follows it on the connection, with Client.mu held
}

// call is a request on its way. Client.mu guards it until done is closed; from then on it does not change.
type call struct {
	request
	frame []byte // with length; the xid is filled in when it is sent. nil when sent
	xid   int32
	done  chan struct{}
	over  bool // done is closed

	code    proto.ErrCode
	cause   error
	unknown bool
	reply   []byte // what follows the header of the reply
}

const (
	xidOffset  = 4 // in a frame
	frameBytes = 4 // of the length
)

func newCall(r request) *call {
	frame := (&proto.RequestHeader{Op: r.op}).Append(make([]byte, frameBytes, 128))
	if r.body != nil {
		frame = r.body(frame)
	}
	return &call{request: r, frame: endFrame(frame, 0), done: make(chan struct{}), unknown: r.op.Info().Write}
}

// endFrame fills in the length of the frame that begins at start and ends with b.
func endFrame(b []byte, start int) []byte {
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-frameBytes))
	return b
}

// sent reports whether the request was put on a connection.
func (k *call) sent() bool { return k.frame == nil }

// neverSent notes that the request had no chance to be carried out.
func (k *call) neverSent() {
	if !k.over {
		k.unknown = false
	}
}

// fail settles the call without an answer of the server.
func (k *call) fail(code proto.ErrCode, cause error) {
	if k.over {
		return
	}
	k.code, k.cause, k.over = code, cause, true
	close(k.done)
}

// answer settles the call as the server did.
func (k *call) answer(code proto.ErrCode, reply []byte) {
	if k.over {
		return
	}
	k.code, k.reply, k.unknown, k.over = code, reply, false, true
	close(k.done)
}
