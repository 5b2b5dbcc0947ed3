package faultproxy

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

const (
	// readBytes is how much is read at once if frames are incomplete or the server asks for only a
	// few bytes.
	readBytes = 4 << 10
	// fewBytes: a smaller Read by the server is served from a buffer, which saves system calls.
	fewBytes = 64
	// connectBytes is the part of the connect request that is parsed, up to the session; see
	// proto.ConnectRequest.
	connectBytes = 4 + 4 + 8 + 4 + 8
	// minConnectBytes is the length of a connect request with a null password.
	minConnectBytes = 4 + 8 + 4 + 8 + 4
)

// reader is the state of Read. Bytes from the wrapped connection that cannot be judged or delivered
// at once go to held, and from there through ready to the server.
type reader struct {
	buf     []byte // the memory of held, and of ready unless ready is a request of our own
	ready   []byte // judged, to be delivered
	held    []byte // the bytes after ready, not judged yet
	more    bool   // the first frame in held needs more bytes to be judged
	greeted bool   // the connect request, or what came in its place, was judged
	pass    int    // bytes of the first frame that pass unparsed
	swallow int    // bytes of the first frame that are discarded
	next    *verdict
	err     error // the end of the stream, after held
}

// verdict is a fault that applies when the server has read everything before its request.
type verdict struct {
	rule  *Armed
	bytes int   // of the request's frame
	xid   int32 // Fail
	until time.Time
}

// Read reads what the client sent, subject to the rules. Errors: os.ErrDeadlineExceeded;
// net.ErrClosed after Close, or if the gate has broken the connection; those of the wrapped
// connection.
func (c *conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	r := &c.r
	for {
		if err := c.awaitHealed(&c.readDeadline); err != nil {
			return 0, err
		}
		switch {
		case len(r.ready) > 0:
			n := copy(p, r.ready)
			r.ready = r.ready[n:]
			return n, nil
		case r.next != nil:
			if err := c.carryOut(); err != nil {
				return 0, err
			}
		case r.swallow > 0 && len(r.held) > 0:
			n := min(r.swallow, len(r.held))
			r.held = r.held[n:]
			r.swallow -= n
		case len(r.held) > 0 && !r.more:
			n := c.judge(r.held)
			r.ready, r.held = r.held[:n], r.held[n:]
		case r.err != nil && len(r.held) > 0: // the bytes that judge needs will not come
			r.ready, r.held = r.held, nil
		case r.err != nil:
			return 0, r.err
		case len(r.held) > 0 || r.swallow > 0 || len(p) < fewBytes:
			if err := r.fill(c.Conn); err != nil {
				return 0, err
			}
			c.noteEnd()
		default:
			if n, err := c.readInto(p); n > 0 || err != nil {
				return n, err
			}
		}
	}
}

// readInto reads into the server's buffer, judges the bytes there, and holds back those that may
// not pass yet. It may return 0 bytes.
func (c *conn) readInto(p []byte) (int, error) {
	r := &c.r
	n, err := c.Conn.Read(p)
	if err := r.note(n, err); err != nil {
		return 0, err
	}
	c.noteEnd()
	pass := 0
	if c.gate.stall.Load() == nil {
		pass = c.judge(p[:n])
	}
	if pass < n {
		r.held = append(r.buf[:0], p[pass:n]...)
		r.buf = r.held
	}
	return pass, nil
}

// fill reads more bytes into held. An error that ends the stream is kept until held is delivered;
// others are returned.
func (r *reader) fill(nc net.Conn) error {
	if cap(r.held)-len(r.held) < readBytes/4 {
		if cap(r.buf)-len(r.held) < readBytes/4 || cap(r.buf) > 16*readBytes && len(r.held) < readBytes {
			// The buffer doubles as bytes arrive: a false length costs no more than twice what was
			// sent.
			r.buf = make([]byte, 0, max(readBytes, 2*len(r.held)))
		}
		r.held = append(r.buf[:0], r.held...)
	}
	n, err := nc.Read(r.held[len(r.held):cap(r.held)])
	r.held = r.held[:len(r.held)+n]
	if n > 0 {
		r.more = false
	}
	return r.note(n, err)
}

// note keeps an error of the wrapped connection that ends the stream. It returns a deadline's
// error, unless bytes came too.
func (r *reader) note(n int, err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		if n > 0 {
			return nil
		}
		return err
	}
	r.err = err
	return nil
}

// noteEnd detaches the session when the client has closed the connection.
func (c *conn) noteEnd() {
	if c.r.err != nil {
		c.mu.Lock()
		c.session, c.opaque = 0, false
		c.mu.Unlock()
	}
}

// carryOut applies the verdict on the first request in held.
func (c *conn) carryOut() error {
	r, v := &c.r, c.r.next
	if v.rule.fault.Kind == Delay {
		if err := c.readDeadline.wait(v.rule.gone, time.After(time.Until(v.until)), c.closed); err != nil {
			return err
		}
		r.next, r.pass = nil, v.bytes
		return nil
	}
	// The server gets a request that changes nothing instead, and that request's reply is replaced.
	// So the error has the right place among the replies and a zxid.
	b := binary.BigEndian.AppendUint32(nil, 0)
	b = (&proto.RequestHeader{Xid: v.xid, Op: proto.OpExists}).Append(b)
	b = (&proto.PathWatchRequest{Path: "/"}).Append(b)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	r.next, r.ready, r.swallow = nil, b, v.bytes
	return nil
}

// judge parses the frames in b and returns how many of the first bytes may pass. After them comes a
// frame of which more bytes are needed (r.more) or to which a fault applies (r.next).
func (c *conn) judge(b []byte) (pass int) {
	r := &c.r
	c.mu.Lock()
	defer c.mu.Unlock()
	for pass < len(b) && r.next == nil && !r.more {
		switch {
		case c.blindReader || c.blindWriter || c.isShut:
			return len(b)
		case r.pass > 0:
			n := min(r.pass, len(b)-pass)
			r.pass -= n
			pass += n
		default:
			c.judgeFrame(b[pass:])
		}
	}
	return pass
}

// judgeFrame decides about the frame at the start of b. c.mu is held.
func (c *conn) judgeFrame(b []byte) {
	r := &c.r
	if len(b) < 4 {
		r.more = true
		return
	}
	length := int32(binary.BigEndian.Uint32(b))
	switch {
	case !r.greeted && (length < minConnectBytes || length > maxFrameBytes):
		// A four-letter word, or no protocol at all: the replies have no frames.
		c.blindReader, c.blindWriter, c.opaque = true, true, true
		return
	case length < proto.RequestHeaderBytes || length > maxFrameBytes:
		c.blindReader = true
		return
	}
	req := request{bytes: 4 + int(length), connect: !r.greeted, session: int64(c.session)}
	req.seen = b[:min(len(b), req.bytes)]
	if req.connect && len(b) < connectBytes || len(b) < requestBytes {
		r.more = true
		return
	}
	d := jute.NewDecoder(req.seen[4:])
	if req.connect {
		d.Int()
		d.Long()
		d.Int()
		req.session = d.Long()
	} else {
		req.header.Decode(&d)
	}
	rule, body, is := c.gate.rules.find(&req)
	if is == unknown {
		r.more = true
		return
	}
	var m *mark
	r.pass = req.bytes
	if is == yes {
		if rule.fault.Kind != DropReply {
			r.pass = 0
			r.next = &verdict{rule: rule, bytes: req.bytes, xid: req.header.Xid}
		}
		if rule.fault.Kind == Delay {
			r.next.until = time.Now().Add(rule.fault.Delay)
			rule.happened()
		} else {
			m = &mark{rule: rule, body: body}
		}
	}
	if req.connect {
		r.greeted = true
		c.greeting = m
		return
	}
	c.outstanding = append(c.outstanding, unanswered{xid: answerXid(req.header), close: req.header.Op == proto.OpCloseSession, mark: m})
}

// find returns the first rule that takes the request, and the body of the reply if the rule fails
// the request.
func (r *Rules) find(req *request) (rule *Armed, body []byte, is answer) {
	for _, a := range r.armed() {
		switch a.selects(req) {
		case no:
			continue
		case unknown:
			return nil, nil, unknown
		}
		if a.fault.Kind == Fail && req.header.Op == proto.OpMulti {
			if len(req.seen) < req.bytes && req.bytes <= maxMultiBytes {
				return nil, nil, unknown
			}
			body = failedMulti(req, a.fault.PathPrefix, a.fault.Code)
		}
		if a.take() {
			return a, body, yes
		}
	}
	return nil, nil, no
}
