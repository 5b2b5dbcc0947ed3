package client

import (
	"encoding/binary"

	"github.com/gozkd/gozkd/proto"
)

// request is what a method of the Client sends.
type request struct {
	op   proto.OpCode
	path string // for errors
	body func([]byte) []byte
	// Set if the server replies OK, or for exists that there is no such znode.
	watch *watchOn
	// Called with the code of the reply before later replies are handled, with Client.mu held.
	settled func(proto.ErrCode)
}

// call is a request in progress. Client.mu guards it until done is closed; after that it is
// immutable.
type call struct {
	request
	frame []byte // with its length; send fills in the xid. nil: sent
	xid   int32
	done  chan struct{}
	over  bool // done is closed

	code    proto.ErrCode
	cause   error
	unknown bool
	reply   []byte // the body of the reply
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

// endFrame sets the length of the frame that extends from start to the end of b.
func endFrame(b []byte, start int) []byte {
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-frameBytes))
	return b
}

// sent reports whether the request was put on a connection.
func (k *call) sent() bool { return k.frame == nil }

// neverSent records that the request cannot have been executed.
func (k *call) neverSent() {
	if !k.over {
		k.unknown = false
	}
}

// fail completes the call without a reply.
func (k *call) fail(code proto.ErrCode, cause error) {
	if k.over {
		return
	}
	k.code, k.cause, k.over = code, cause, true
	close(k.done)
}

// answer completes the call with the server's reply.
func (k *call) answer(code proto.ErrCode, reply []byte) {
	if k.over {
		return
	}
	k.code, k.reply, k.unknown, k.over = code, reply, false, true
	close(k.done)
}
