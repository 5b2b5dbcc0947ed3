package server

import (
	"strings"
	"sync"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

const (
	maxSlowLines  = 10  // how many slow requests get a line in one second
	maxLoggedPath = 512 // bytes of a path in a line: a client can ask for one as long as jute.maxbuffer
)

// slowLog writes the lines of slow requests. docs/reference/monitoring.md says what is in them.
type slowLog struct {
	server *Server

	mu      sync.Mutex
	second  time.Time // when the present second began
	lines   int       // in it
	leftOut int       // since the last line
}

// slowWrite is an own write that is being applied.
type slowWrite struct {
	p                *pending
	proposed, synced time.Time
	zxid             proto.Zxid
}

func (l *slowLog) wanted() bool { return l.server.live.Load().SlowRequest > 0 }

func (l *slowLog) is(took time.Duration) bool {
	limit := l.server.live.Load().SlowRequest
	return limit > 0 && took >= limit
}

// may reports whether there may be a line now, and how many there were before it that there were none for.
func (l *slowLog) may(now time.Time) (leftOut int, ok bool) {
	l.server.stats.slowRequests.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.second) >= time.Second || now.Before(l.second) {
		l.second, l.lines = now, 0
	}
	if l.lines == maxSlowLines {
		l.leftOut++
		return 0, false
	}
	leftOut, l.leftOut = l.leftOut, 0
	l.lines++
	return leftOut, true
}

// write looks at a write whose reply was written.
func (l *slowLog) write(w *way, r *slowWrite, now time.Time) {
	p := r.p
	if !l.is(now.Sub(p.heard)) {
		return
	}
	leftOut, ok := l.may(now)
	if !ok {
		return
	}
	path, _ := requestPath(p.req.Op, p.req.Body)
	args := append(l.about(p.conn, p.req.Op, path, p.req.Session, p.xid), "zxid", r.zxid.String(), "took_us", micros(p.heard, now),
		"read_us", micros(p.heard, p.received))
	if !r.proposed.IsZero() && !r.synced.IsZero() {
		args = append(args, "queued_us", micros(p.received, r.proposed), "logged_us", micros(r.proposed, r.synced),
			"committed_us", micros(r.synced, w.committed))
	}
	args = append(args, "applied_us", micros(w.committed, w.finished), "written_us", micros(w.finished, now), "left_out", leftOut)
	l.server.cfg.Logger.Warn("slow request", args...)
}

// read looks at a read that was answered just now. c.mu is held; the session is the connection's. It reads the clock for each request, where
// slow ones are looked for at all.
func (l *slowLog) read(c *conn, op proto.OpCode, xid int32, body []byte, received time.Time) {
	if !l.wanted() {
		return
	}
	now, heard := l.server.cfg.Now(), c.cameAt()
	if !l.is(now.Sub(heard)) {
		return
	}
	l.answered(c, op, xid, body, heard, received, now)
}

// queued looks at a read or a sync that was answered when its turn came. c.mu is held.
func (l *slowLog) queued(p *pending) {
	if p.kind != kindRead && p.kind != kindSync || !l.wanted() {
		return
	}
	if now := l.server.cfg.Now(); l.is(now.Sub(p.heard)) {
		l.answered(p.conn, p.op, p.xid, p.body, p.heard, p.received, now)
	}
}

func (l *slowLog) answered(c *conn, op proto.OpCode, xid int32, body []byte, heard, received, now time.Time) {
	leftOut, ok := l.may(now)
	if !ok {
		return
	}
	path, _ := requestPath(op, body)
	args := append(l.about(c, op, path, c.session, xid), "zxid", l.server.state.LastZxid().String(), "took_us", micros(heard, now),
		"read_us", micros(heard, received), "answered_us", micros(received, now), "left_out", leftOut)
	l.server.cfg.Logger.Warn("slow request", args...)
}

// micros returns the microseconds between two moments: none where the clock was set back in between.
func micros(from, to time.Time) int64 { return max(0, to.Sub(from).Microseconds()) }

func (l *slowLog) about(c *conn, op proto.OpCode, path string, session proto.SessionID, xid int32) []any {
	return []any{"op", op.String(), "path", strings.Clone(printable(shortened(path, maxLoggedPath))), "session", session.String(), "client", c.nc.RemoteAddr().String(), "xid", xid}
}

// requestPath returns the path that a request begins with, sharing the body's memory: of a multi that of its first part.
func requestPath(op proto.OpCode, body []byte) (path string, ok bool) {
	d := jute.NewDecoder(body)
	d.AliasStrings()
	switch op.Info().Path {
	case proto.PathNone:
		return "", false
	case proto.PathEach:
		d.Int() // the header of the first: op, whether it is the end, error
		d.Bool()
		d.Int()
	}
	path = d.RequiredString()
	return path, d.Err() == nil
}
