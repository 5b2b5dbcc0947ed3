package faultproxy

import (
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

const (
	// readBytes is how much is read at once, or more if the server asks for more.
	readBytes = 4 << 10
	// connectBytes is the part of proto.ConnectRequest that is parsed, up to the session.
	connectBytes = 4 + 4 + 8 + 4 + 8
	// minConnectBytes is the length of a connect request with a null password.
	minConnectBytes = 4 + 8 + 4 + 8 + 4
)

// reader is the state of Read. Bytes go from the wrapped connection to held, then to ready.
type reader struct {
	ready   []byte // judged, to be delivered
	held    []byte // the bytes after ready, not judged yet
	more    bool   // the first frame in held needs more bytes to be judged
	greeted bool   // the connect request, or what came in its place, was judged
	pass    int    // bytes of the first frame that pass unparsed
	err     error  // the end of the stream, after held

	// The fault of the first frame in held, which applies when ready is delivered.
	delay   *Armed // nil: none
	until   time.Time
	instead []byte // a request that the server gets instead of the first one; nil: none
	swallow int    // bytes of the first frame that are discarded
}

// Read reads the client's requests, subject to the rules. Errors: os.ErrDeadlineExceeded;
// net.ErrClosed after Close, or if the gate broke the connection; those of the wrapped connection.
func (c *conn) Read(p []byte) (int, error) {
	for r := &c.r; len(p) > 0; {
		if err := c.awaitHealed(&c.readDeadline); err != nil {
			return 0, err
		}
		switch {
		case len(r.ready) > 0:
			n := copy(p, r.ready)
			r.ready = r.ready[n:]
			return n, nil
		case r.instead != nil:
			r.ready, r.instead = r.instead, nil
		case r.delay != nil:
			if err := c.readDeadline.wait(r.delay.gone, time.After(time.Until(r.until)), c.closed); err != nil {
				return 0, err
			}
			r.delay = nil
		case r.swallow > 0 && len(r.held) > 0:
			n := min(r.swallow, len(r.held))
			r.held = r.held[n:]
			r.swallow -= n
		case len(r.held) > 0 && !r.more:
			c.judge()
		case r.err != nil && len(r.held) > 0: // the bytes that judge needs will not come
			r.ready, r.held = r.held, nil
		case r.err != nil:
			return 0, r.err
		default:
			if err := c.fill(len(p)); err != nil {
				return 0, err
			}
		}
	}
	return 0, nil
}

// fill reads more bytes into held, which gets room for most bytes if it is short of room. An error
// that ends the stream is kept until held is delivered; fill returns a deadline's error, unless
// bytes came too.
func (c *conn) fill(most int) error {
	r := &c.r
	if cap(r.held)-len(r.held) < readBytes/4 {
		r.held = slices.Grow(r.held, max(readBytes, most))
	}
	n, err := c.Conn.Read(r.held[len(r.held):cap(r.held)])
	r.held = r.held[:len(r.held)+n]
	r.more = r.more && n == 0
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded) && n == 0:
		return err
	case err != nil && !errors.Is(err, os.ErrDeadlineExceeded):
		r.err = err
		c.session.Store(0) // the client has closed the connection
	}
	return nil
}

// judge parses the frames in held and moves those that may pass to ready. After them comes a frame
// of which more bytes are needed (more) or to which a fault applies.
func (c *conn) judge() {
	r, n := &c.r, 0
	c.mu.Lock()
	defer c.mu.Unlock()
	for n < len(r.held) && r.delay == nil && r.instead == nil && !r.more {
		switch {
		case c.blindReader || c.blindWriter || c.isShut:
			n = len(r.held)
		case r.pass > 0:
			passed := min(r.pass, len(r.held)-n)
			r.pass -= passed
			n += passed
		default:
			c.judgeFrame(r.held[n:])
		}
	}
	r.ready, r.held = r.held[:n], r.held[n:]
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
		// A four-letter word, TLS, or no protocol at all: the replies have no frames.
		c.blindReader, c.blindWriter = true, true
		return
	case length < proto.RequestHeaderBytes || length > maxFrameBytes:
		c.blindReader = true
		return
	}
	req := request{bytes: 4 + int(length), connect: !r.greeted, session: c.session.Load()}
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
	rule, body := c.gate.rules.find(&req)
	if r.more = req.more; r.more {
		return
	}
	r.greeted, r.pass = true, req.bytes
	u := unanswered{xid: req.answerXid(), rule: rule, body: body}
	switch {
	case rule == nil || rule.fault.Kind == DropReply:
	case rule.fault.Kind == Delay:
		r.delay, r.until, u.rule = rule, time.Now().Add(rule.fault.Delay), nil
		rule.happened()
	default:
		r.instead, r.pass, r.swallow = standIn(req.header.Xid), 0, req.bytes
	}
	c.outstanding = append(c.outstanding, u)
}

// standIn returns a request that changes nothing. The server gets it instead of a request that
// fails, and its reply is replaced: so the error has the right place among the replies and a zxid.
func standIn(xid int32) []byte {
	b := (&proto.RequestHeader{Xid: xid, Op: proto.OpExists}).Append(make([]byte, 4))
	b = (&proto.PathWatchRequest{Path: "/"}).Append(b)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// find returns the first rule that takes the request, and the body of the reply if the rule fails
// the request. There is no result if req.more is set.
func (r *Rules) find(req *request) (rule *Armed, body []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.list {
		is := a.selects(req)
		if is && a.fault.Kind == Fail {
			body = failedMulti(req, a.fault.PathPrefix, a.fault.Code)
		}
		if req.more {
			return nil, nil
		}
		if is && (a.times < 0 || a.taken < a.times) {
			a.taken++
			return a, body
		}
	}
	return nil, nil
}
