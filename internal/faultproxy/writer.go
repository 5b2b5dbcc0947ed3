package faultproxy

import (
	"encoding/binary"
	"net"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// replyBytes is the part of every reply and event that is parsed: its length and header.
const replyBytes = 4 + proto.ReplyHeaderBytes

type writer struct {
	begun   []byte // the first bytes of a frame, held back until there are replyBytes
	greeted bool   // the reply to the connect request has passed
	rest    int    // bytes of the present frame that need no parsing
	discard bool   // rest is discarded, because the frame was replaced
}

// Write writes the server's frames, subject to the rules. Up to 19 bytes of an incomplete frame
// wait for the rest. Errors: os.ErrDeadlineExceeded; net.ErrClosed after Close, or if the gate has
// broken the connection; those of the wrapped connection.
func (c *conn) Write(p []byte) (int, error) {
	if err := c.awaitHealed(&c.writeDeadline); err != nil {
		return 0, err
	}
	out, lost := c.answers(p)
	if len(out) > 0 {
		if n, err := c.Conn.Write(out); err != nil {
			return min(n, len(p)), err
		}
	}
	if lost {
		// Without a reset, which would overtake the bytes just written if the client's window is
		// full. An error means that the connection is closed already.
		_ = c.shut(false)
		return 0, net.ErrClosed
	}
	return len(p), nil
}

// answers returns the bytes for the client, and whether the reply after them is to be lost.
func (c *conn) answers(p []byte) (out []byte, lost bool) {
	w := &c.w
	c.mu.Lock()
	defer c.mu.Unlock()
	b := append(w.begun, p...)
	w.begun = nil
	for len(b) > 0 {
		switch {
		case c.blindWriter:
			return append(out, b...), false
		case w.rest > 0:
			n := min(w.rest, len(b))
			if !w.discard {
				out = append(out, b[:n]...)
			}
			b, w.rest = b[n:], w.rest-n
		case len(b) >= 4 && int32(binary.BigEndian.Uint32(b)) < proto.ReplyHeaderBytes:
			c.blindWriter = true
		case len(b) < replyBytes:
			w.begun = b
			return out, false
		default:
			replaced, lost := c.answer(b[4:replyBytes])
			if lost {
				return out, true
			}
			out = append(out, replaced...)
			w.rest, w.discard = 4+int(binary.BigEndian.Uint32(b)), replaced != nil
		}
	}
	return out, false
}

// answer decides about a reply or event that begins with head: it passes, is replaced by a whole
// frame, or is lost. c.mu is held.
func (c *conn) answer(head []byte) (replaced []byte, lost bool) {
	d := jute.NewDecoder(head)
	var h proto.ReplyHeader
	h.Decode(&d)
	if !c.w.greeted {
		c.w.greeted, h.Xid = true, xidConnect
	}
	if h.Xid == proto.XidEvent {
		return nil, false
	}
	u := c.outstanding.answered(h.Xid)
	if u.rule == nil {
		return nil, false
	}
	happened := u.rule.happened()
	if u.rule.fault.Kind == DropReply {
		return nil, happened
	}
	if h.Err = u.rule.fault.Code; u.body != nil {
		h.Err = proto.OK
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(proto.ReplyHeaderBytes+len(u.body)))
	return append(h.Append(b), u.body...), false
}
