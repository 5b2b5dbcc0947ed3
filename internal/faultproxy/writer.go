package faultproxy

import (
	"encoding/binary"
	"net"
	"slices"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// replyBytes is the part of every reply and event that is parsed: its length and header. In the
// reply to a connect request the same number of bytes reaches to the end of the session id.
const replyBytes = 4 + proto.ReplyHeaderBytes

// writer is the state of Write.
type writer struct {
	begun   []byte // the first bytes of a frame, held back until there are replyBytes
	greeted bool   // the reply to the connect request has passed
	pass    int    // bytes of the present frame that pass unparsed
	swallow int    // bytes of the present frame that are discarded because it was replaced
}

// Write writes what the server sends, subject to the rules. Up to 19 bytes of an incomplete frame
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

// answers returns the bytes for the client, and whether the reply after them is to be lost. It may
// return p itself.
func (c *conn) answers(p []byte) (out []byte, lost bool) {
	w := &c.w
	c.mu.Lock()
	defer c.mu.Unlock()
	b := p
	if len(w.begun) > 0 {
		b = append(w.begun, p...)
		w.begun = nil
	}
	i, kept := 0, 0 // b[kept:i] is sent unchanged, after out
	for i < len(b) {
		rest := b[i:]
		switch {
		case c.blindWriter:
			i = len(b)
		case w.pass > 0:
			n := min(w.pass, len(rest))
			w.pass -= n
			i += n
		case w.swallow > 0: // here kept is i: the frame was replaced
			n := min(w.swallow, len(rest))
			w.swallow -= n
			i += n
			kept = i
		case len(rest) >= 4 && int32(binary.BigEndian.Uint32(rest)) < proto.ReplyHeaderBytes:
			c.blindWriter = true
		case len(rest) < replyBytes:
			w.begun = slices.Clone(rest)
			return join(out, b[kept:i]), false
		default:
			bytes := 4 + int(binary.BigEndian.Uint32(rest))
			replaced, lost := c.answer(rest[4:replyBytes])
			switch {
			case lost:
				return join(out, b[kept:i]), true
			case replaced != nil:
				out = append(append(out, b[kept:i]...), replaced...)
				kept = i
				w.swallow = bytes
			default:
				w.pass = bytes
			}
		}
	}
	return join(out, b[kept:]), false
}

// join appends b to a, and returns b itself if a is empty.
func join(a, b []byte) []byte {
	if len(a) == 0 {
		return b
	}
	return append(a, b...)
}

// answer decides about a reply or event that begins with head: it passes, is replaced by a whole
// frame, or is lost. c.mu is held.
func (c *conn) answer(head []byte) (replaced []byte, lost bool) {
	d := jute.NewDecoder(head)
	if !c.w.greeted {
		c.w.greeted = true
		return nil, c.welcome(&d)
	}
	var h proto.ReplyHeader
	h.Decode(&d)
	if h.Xid == proto.XidEvent {
		return nil, false
	}
	u := c.outstanding.answered(h.Xid)
	if u.close && h.Err == proto.OK {
		c.session = 0
	}
	switch {
	case u.mark == nil:
		return nil, false
	case u.mark.rule.fault.Kind == DropReply:
		return nil, u.mark.rule.happened()
	}
	u.mark.rule.happened()
	if u.mark.body == nil {
		h.Err = u.mark.rule.fault.Code
	} else {
		h.Err = proto.OK
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(proto.ReplyHeaderBytes+len(u.mark.body)))
	return append(h.Append(b), u.mark.body...), false
}

// welcome records the reply to a connect request and reports whether the reply is to be lost.
func (c *conn) welcome(d *jute.Decoder) (lost bool) {
	d.Int() // protocol version
	timeout, session := d.Int(), proto.SessionID(d.Long())
	m := c.greeting
	c.greeting = nil
	if m != nil && m.rule.happened() {
		return true
	}
	if timeout > 0 && !c.isShut {
		c.session = session
	}
	return false
}
