package client

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/gozkd/gozkd/internal/bodyread"
	"github.com/gozkd/gozkd/internal/clientauth"
	"github.com/gozkd/gozkd/internal/neterr"
	"github.com/gozkd/gozkd/internal/wakeup"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

type link struct {
	conn     net.Conn
	in       *bufio.Reader
	address  string
	response proto.ConnectResponse
	patience time.Duration // bounds the silence of the server and each part of a write
	wake     chan struct{} // capacity 1: out is not empty. Never closed

	breakOnce sync.Once
	cause     error // why the connection broke; read after serve has returned

	// The fields below are guarded by Client.mu.
	out     []byte  // frames for the writer
	pending []*call // sent or in out, in the order of their replies
	auths   []*auth // the same for credentials, whose replies may overtake others
	// rearming counts setWatches without a reply. If some of the watches are persistent, the event
	// of the connection follows the last reply. caughtUp says that they have missed nothing.
	rearming int
	caughtUp bool
	told     bool   // the event of the connection was pushed
	mark     *Event // of proto.ReplayMark, came last: an answer if the reply to a setWatches follows
	// What the server can do besides ZooKeeper's protocol; nil: it was not asked. Immutable.
	features *proto.Features

	answered bool // a request or a ping was answered; used only by serve's goroutine
}

// storyPatience bounds how long the story of an ended session is waited for.
const storyPatience = time.Second

const (
	inputBytes     = 32 << 10
	handshakeBytes = 4 << 10  // more than any server's first reply
	storyBytes     = 64 << 10 // more than any story
	chunkBytes     = 64 << 10 // of a long write or reply, which takes time or memory in these steps
	keepOutBytes   = 1 << 20  // a larger output buffer is not kept
)

// open connects to a server and resumes the session there, or creates a session.
func (c *Client) open(ctx context.Context, address string) (*link, error) {
	limit := c.cfg.ConnectTimeout
	if timeout := c.timeout(); timeout > 0 {
		limit = min(limit, timeout/3)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, neterr.NoAnswer(limit))
	defer cancel()
	conn, err := c.cfg.Dial(ctx, address)
	if err != nil {
		return nil, neterr.Ended(ctx, err)
	}
	l := &link{conn: conn, address: address, wake: make(chan struct{}, 1)}
	l.in = bufio.NewReaderSize(patient{l}, inputBytes)
	l.patience = 2 * limit // ctx ends first
	interrupt := context.AfterFunc(ctx, func() { l.fail(neterr.Ended(ctx, ctx.Err())) })
	if err = c.handshake(l); err == nil {
		err = c.authenticate(l)
	}
	if err == nil {
		err = c.cfg.OnConnect(l.session())
	}
	if !interrupt() && err == nil { // ctx ended and closed the connection
		err = neterr.Ended(ctx, ctx.Err())
	}
	if err != nil {
		if l.fail(err); errors.Is(err, proto.ErrSessionExpired) {
			return nil, err // although ctx may have ended since the server said so
		}
		return nil, l.cause
	}
	l.patience = l.session().Timeout / 2 // leaves as long to find another server
	return l, nil
}

func (l *link) session() Session {
	r := &l.response
	return Session{
		ID: int64(r.SessionID), Password: r.Passwd, Timeout: time.Duration(r.TimeoutMs) * time.Millisecond,
		Server: l.address, ReadOnly: r.ReadOnly,
	}
}

// timeout returns the negotiated timeout of a session to resume, and otherwise 0.
func (c *Client) timeout() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.global {
		return 0
	}
	return c.session.Timeout
}

// errNoAnswer describes a silent close, ZooKeeper's reply in several situations.
var errNoAnswer = errors.New("closed the connection without giving a session: it is no ZooKeeper server, has no quorum, is behind what this client has seen, " +
	"takes no more connections, or expects TLS on this port")

func (c *Client) handshake(l *link) error {
	c.mu.Lock()
	req := proto.ConnectRequest{
		LastZxidSeen: max(c.lastZxid, c.latest.zxid),
		TimeoutMs:    int32(min(c.cfg.SessionTimeout.Milliseconds(), 1<<31-1)),
		Passwd:       make([]byte, proto.PasswdBytes),
		ReadOnly:     c.cfg.ReadOnly,
		HasReadOnly:  true,
	}
	if c.global {
		req.SessionID, req.Passwd = proto.SessionID(c.session.ID), c.session.Password
	}
	c.mu.Unlock()
	if err := l.write(endFrame(req.Append(make([]byte, frameBytes)))); err != nil {
		return clientauth.Reason(patient{l}, err)
	}
	head, err := l.in.Peek(frameBytes)
	if wrong := neterr.AsWrongPort(head); wrong != nil {
		return wrong
	}
	var frame []byte
	if err == nil {
		frame, err = readFrame(l.in, handshakeBytes)
	}
	if errors.Is(err, io.EOF) || neterr.Is(err, syscall.ECONNRESET) {
		return errNoAnswer
	}
	if err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	d := jute.NewDecoder(frame)
	if l.response.Decode(&d); d.Err() != nil {
		return fmt.Errorf("handshake: %w", d.Err())
	}
	switch r := &l.response; {
	case r.TimeoutMs <= 0 || r.SessionID == 0, req.SessionID != 0 && r.SessionID != req.SessionID:
		// A session other than the requested session would mean that ephemerals were lost silently.
		return l.expired()
	case r.ReadOnly && !c.cfg.ReadOnly:
		return errors.New("handshake: the server is read-only, which was not asked for")
	}
	return nil
}

// expired returns the error of a session that has ended, with its story if the server tells it: in
// a frame after the refusal. Other servers close the connection.
func (l *link) expired() error {
	l.patience = min(l.patience, storyPatience)
	frame, err := readFrame(l.in, storyBytes)
	d := jute.NewDecoder(frame)
	new(proto.ReplyHeader).Decode(&d)
	told := new(ExpiredError)
	if err != nil || json.Unmarshal(d.Buffer(), &told.EndedSession) != nil || told.Story == "" {
		return proto.ErrSessionExpired
	}
	return told
}

// authenticate runs the SASL exchange. Other requests are sent after establish.
func (c *Client) authenticate(l *link) error {
	if c.cfg.SASL == nil {
		return nil
	}
	if err := l.exchangeSASL(c.cfg.SASL); err != nil {
		return fmt.Errorf("%w: %w", ErrSASL, err)
	}
	return nil
}

// patient reads from a link's connection with the link's patience as the deadline of each read.
type patient struct{ l *link }

func (p patient) Read(b []byte) (int, error) {
	if err := p.l.conn.SetReadDeadline(time.Now().Add(p.l.patience)); err != nil {
		return 0, err
	}
	return p.l.conn.Read(b)
}

// write writes b in parts, with the link's patience for each: a slow link may take longer for all,
// and the next link would not be faster. After each part but the first, the server is also given
// that time again: it may have nothing to answer before the last one. Not after the first, because
// pings would then hide that the server is silent.
func (l *link) write(b []byte) error {
	bound := l.conn.SetWriteDeadline
	for part := range slices.Chunk(b, chunkBytes) {
		if err := bound(time.Now().Add(l.patience)); err != nil {
			return err
		}
		if _, err := l.conn.Write(part); err != nil {
			return err
		}
		bound = l.conn.SetDeadline
	}
	return nil
}

// fail breaks the connection. The first reason is kept.
func (l *link) fail(err error) {
	l.breakOnce.Do(func() {
		l.cause = err
		_ = l.conn.Close() // the error does not matter: the connection is given up
	})
}

// readFrame returns the payload of the next frame in new memory. It refuses a length above limit
// and allocates at most twice what has arrived.
func readFrame(r io.Reader, limit int) ([]byte, error) {
	var head [frameBytes]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := int64(int32(binary.BigEndian.Uint32(head[:])))
	switch {
	case n > int64(limit):
		return nil, &TooLargeError{Size: int(n), Limit: limit, Reply: true}
	case n < 0:
		return nil, fmt.Errorf("a frame of %d bytes; the limit is %d", n, limit)
	}
	b, err := bodyread.Read(r, nil, int(n), chunkBytes)
	if err != nil {
		return nil, fmt.Errorf("%d bytes of a frame of %d: %w", len(b), n, err)
	}
	return b, nil
}

// send sends a call on a link. c.mu is held.
func (c *Client) send(l *link, k *call) {
	if c.xid++; c.xid <= 0 { // after the largest int32
		c.xid = 1
	}
	k.xid = c.xid
	binary.BigEndian.PutUint32(k.frame[xidOffset:], uint32(k.xid))
	l.put(k.frame)
	k.frame = nil
	l.pending = append(l.pending, k)
}

// put appends a frame to the output. Client.mu is held.
func (l *link) put(frame []byte) {
	l.out = append(l.out, frame...)
	wakeup.Send(l.wake)
}

func frame(xid int32, op proto.OpCode, body func([]byte) []byte) []byte {
	b := (&proto.RequestHeader{Xid: xid, Op: op}).Append(make([]byte, frameBytes, 128))
	if body != nil {
		b = body(b)
	}
	return endFrame(b)
}

// endFrame sets the length of the frame in b.
func endFrame(b []byte) []byte {
	binary.BigEndian.PutUint32(b, uint32(len(b)-frameBytes))
	return b
}

// writeOut writes the output of the link, and a ping after every quarter of the session timeout
// without output, until gone ends.
func (c *Client) writeOut(gone context.Context, l *link) {
	interval := l.patience / 2
	idle := time.NewTimer(interval)
	defer idle.Stop()
	var spare []byte
	for {
		ping := false
		select {
		case <-l.wake:
		case <-idle.C:
			ping = true
		case <-gone.Done():
			return
		}
		c.mu.Lock()
		out := l.out
		l.out = spare[:0]
		c.mu.Unlock()
		if ping && len(out) == 0 {
			out = append(out, frame(proto.XidPing, proto.OpPing, nil)...)
		}
		if len(out) == 0 { // an earlier wake-up has taken the output
			spare = out
			continue
		}
		if err := l.write(out); err != nil {
			l.fail(err)
			return
		}
		if spare = out; cap(out) > keepOutBytes {
			spare = nil
		}
		idle.Reset(interval)
	}
}

type request struct {
	op   proto.OpCode
	path string // for errors
	body func([]byte) []byte
	only *link // not to be sent on another one; nil: on any
	// Set if the server replies OK, or for exists that there is no such znode.
	watch *watchOn
	// Called with the code of the reply before later replies are handled, with Client.mu held.
	settled func(proto.ErrCode)
	// Called after the reply was decoded; returns the error of the request, unless outcome is nil.
	outcome func() error
}

// call is a request in progress. Client.mu guards it until done is closed; then it is immutable.
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

// sent reports whether the request was put on a connection.
func (k *call) sent() bool { return k.frame == nil }

func (k *call) fail(code proto.ErrCode, cause error) {
	if k.over {
		return
	}
	k.code, k.cause, k.over = code, cause, true
	k.unknown = k.sent() && k.op.Info().Write
	close(k.done)
}

func (k *call) answer(code proto.ErrCode, reply []byte) {
	if k.over {
		return
	}
	k.code, k.reply, k.over = code, reply, true
	close(k.done)
}
