package server

import (
	"runtime"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/server/internal/link"
)

const (
	// maxMultiReads bounds the reply of a multiRead, in multiples of jute.maxbuffer: no client
	// accepts a longer frame, and a short request could ask for a very long reply.
	maxMultiReads = 4
	// maxSliceWork is how much of a multiRead is done under one lock, in reads: about 10 ms.
	maxSliceWork = 32 << 10
	// evaluationWork is the work of deciding about one more list.
	evaluationWork = 16
	// bytesOfWork is how many copied bytes count like one read.
	bytesOfWork = 256
	// longReplyBytes is the length from which on a reply is made neither by Apply nor while an
	// earlier write of the connection waits.
	longReplyBytes = 64 << 10
	// cheapBulkBytes: a bulk read that is not longer needs no turn.
	cheapBulkBytes = 4 << 10
)

// longReply reports whether making the reply to a read takes much work now. Data that is sent by
// reference takes none.
func (s *state) longReply(op proto.OpCode, body []byte) bool {
	if isList(op) {
		d := jute.NewDecoder(body)
		d.AliasStrings()
		path := d.RequiredString()
		return d.Err() == nil && s.tree.ReplyBytes(op, path, datatree.Caller{SkipACL: true}) > longReplyBytes
	}
	return op.Info().Class == proto.ClassBulkRead
}

// bulkRead answers a bulk read, or a read with a long reply, and returns pauseOutput.
//
// Such a read is a short request for much work. If thousands of them waited for a write, all would
// run under the write lock when the write is applied (V2). So each runs only when no request is
// before it, and releases the lock afterwards.
func (c *conn) bulkRead(r *received) pause {
	expensive := true
	switch r.Op {
	case proto.OpMultiRead, proto.OpSetWatches, proto.OpGetEphemerals: // setWatches2 may read the whole history
		expensive = len(r.body) > cheapBulkBytes
	}
	switch {
	case c.queue.len() > 0:
		return pauseAlone
	case expensive && !r.turn:
		return pauseTurn
	case !c.readInTurn(r):
		return pauseTurn
	}
	return pauseOutput
}

// partialRead is a multiRead that is being answered. If it takes long, others go on between its
// slices, and each slice shows one state of the tree; ZooKeeper promises nothing about the states
// that a multiRead shows. The reply goes to the connection's output when it is complete, so that
// events of the changes meanwhile come before it (V3).
type partialRead struct {
	ops  []proto.MultiOp
	next int
	out  link.Output
	code proto.ErrCode
}

// newPartialRead copies the paths: between slices the input may be in another buffer.
func newPartialRead(body []byte) *partialRead {
	d := jute.NewDecoder(body)
	var m proto.MultiRequest
	if m.Decode(&d, proto.OpMultiRead) != nil {
		return &partialRead{code: proto.ErrMarshallingError}
	}
	return &partialRead{ops: m.Ops}
}

// slice does a part of the work, and reports whether all is done.
func (r *partialRead) slice(c *conn, xid int32, who datatree.Caller) (done bool) {
	before, begin, first := who.Known.Evaluations(), len(r.out.Buf), r.next
	for ; r.next < len(r.ops); r.next++ {
		if r.next-first+(who.Known.Evaluations()-before)*evaluationWork+(len(r.out.Buf)-begin)/bytesOfWork >= maxSliceWork {
			return false
		}
		code := r.read(c.server.state.tree, &r.ops[r.next], who)
		c.server.trail.Read(c, r.ops[r.next].Op, xid, r.ops[r.next].Path, who.IDs, code)
		if r.out.Len() > maxMultiReads*int(c.server.cfg.MaxBuffer) {
			r.code = proto.ErrMarshallingError
			return true
		}
	}
	if r.code == proto.OK {
		r.out.Buf = proto.AppendMultiHeader(r.out.Buf, -1, true, -1)
	}
	return true
}

func (r *partialRead) read(tree *datatree.Tree, op *proto.MultiOp, who datatree.Caller) (code proto.ErrCode) {
	o, at := &r.out, r.out.Mark()
	o.Buf = proto.AppendMultiHeader(o.Buf, op.Op, false, proto.OK)
	if op.Op == proto.OpGetData {
		var data []byte
		var st proto.Stat
		if data, st, code = tree.GetData(op.Path, who); code == proto.OK {
			o.AppendData(data)
			o.Buf = st.Append(o.Buf)
		}
	} else {
		o.Buf, _, code = tree.AppendChildren(o.Buf, op.Path, who)
	}
	if code != proto.OK {
		o.Truncate(at)
		o.Buf = jute.AppendInt(proto.AppendMultiHeader(o.Buf, proto.OpError, false, code), int32(code))
	}
	return code
}

// turns bounds how many connections read for long: a write waits for all readers of the tree, so
// only some of them may read for long.
type turns struct {
	expensive chan struct{}
	bursts    chan struct{} // of a server with many connections: each holds a buffer for its replies
	yield     func()        // lets other goroutines go on; tests replace it
}

func newTurns() *turns {
	return &turns{
		expensive: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)-1)), bursts: make(chan struct{}, maxBursts),
		yield: runtime.Gosched,
	}
}

// maxBursts is how many connections are handled at the same time if there are many. Few run then,
// but under a collection hundreds may stand still, or wait for the lock of one that does.
const maxBursts = 32

// burst waits for a turn to handle requests, and returns what ends it. The caller holds no lock,
// and waits for no client and no other turn meanwhile.
func (t *turns) burst() (end func()) {
	t.bursts <- struct{}{}
	return func() { <-t.bursts }
}

// begin waits for a turn to do something expensive. The caller holds no lock, and calls end soon.
func (t *turns) begin() { t.expensive <- struct{}{} }

func (t *turns) end() { <-t.expensive }
