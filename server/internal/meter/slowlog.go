package meter

import (
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/fair"
	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/facts"
)

const (
	maxSlowLines  = 10  // lines about slow requests at once, and per second
	maxLoggedPath = 512 // bytes of a path in a line: a client can name a path as long as jute.maxbuffer
	maxSlowKept   = 100 // requests with a line that are remembered
)

// SlowLog writes a log line for each slow request. docs/reference/monitoring.md describes the
// lines. SlowLog is safe for concurrent use.
type SlowLog struct {
	log       hclog.Logger
	threshold atomic.Int64 // nanoseconds; 0: none is slow
	counts    *counts
	lines     *fair.Rate

	mu   sync.Mutex          // guards last
	last []facts.SlowRequest // with a line, the oldest first
}

// Request describes a client's request for the log. Body is read only if there is a line.
type Request struct {
	Op       proto.OpCode
	Body     []byte
	Session  proto.SessionID
	Xid      int32
	Client   net.Addr
	Heard    time.Time // when its last bytes came
	Received time.Time // when the server looked at it
}

// slowRequest is a request that gets a line if it was slow. Only a write was proposed and synced.
type slowRequest struct {
	Request
	proposed, synced time.Time
	zxid             proto.Zxid
}

// SetThreshold sets from which duration on a request is slow. 0: none is.
func (l *SlowLog) SetThreshold(d time.Duration) { l.threshold.Store(int64(d)) }

// Enabled reports whether slow requests are logged at all.
func (l *SlowLog) Enabled() bool { return l.threshold.Load() > 0 }

// due counts a request that was heard then if it is slow, and reports whether it gets a line, and
// how many slow requests had none since the last line.
func (l *SlowLog) due(heard, now time.Time) (leftOut int, ok bool) {
	if limit := l.threshold.Load(); limit <= 0 || int64(now.Sub(heard)) < limit {
		return 0, false
	}
	l.counts.Count(SlowRequests)
	wait, leftOut := l.lines.Take("", now)
	return leftOut, wait == 0
}

// write logs a write whose reply was written if it was slow.
func (l *SlowLog) write(t *ApplyTrace, r *slowRequest, now time.Time) {
	leftOut, ok := l.due(r.Heard, now)
	if !ok {
		return
	}
	args := append(l.describe(r, now), "zxid", r.zxid.String(), "took_us", micros(r.Heard, now), "read_us", micros(r.Heard, r.Received))
	if !r.proposed.IsZero() && !r.synced.IsZero() {
		args = append(args, "queued_us", micros(r.Received, r.proposed), "logged_us", micros(r.proposed, r.synced),
			"committed_us", micros(r.synced, t.committed))
	}
	args = append(args, "applied_us", micros(t.committed, t.finished), "written_us", micros(t.finished, now), "left_out", leftOut)
	l.log.Warn("slow request", args...)
}

// read logs a read or a sync that was answered just now if it was slow.
func (l *SlowLog) read(r *slowRequest, now time.Time) {
	leftOut, ok := l.due(r.Heard, now)
	if !ok {
		return
	}
	l.log.Warn("slow request", append(l.describe(r, now), "zxid", r.zxid.String(), "took_us", micros(r.Heard, now),
		"read_us", micros(r.Heard, r.Received), "answered_us", micros(r.Received, now), "left_out", leftOut)...)
}

// describe returns the first part of a line, and remembers the request.
func (l *SlowLog) describe(r *slowRequest, now time.Time) []any {
	path, _ := RequestPath(r.Op, r.Body)
	s := facts.SlowRequest{
		Time: now, Took: now.Sub(r.Heard), Op: r.Op.String(), Path: strings.Clone(printable.Text(printable.Shortened(path, maxLoggedPath))),
		Session: int64(r.Session), Client: r.Client.String(),
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.last) == maxSlowKept {
		l.last = slices.Delete(l.last, 0, 1)
	}
	l.last = append(l.last, s)
	return []any{"op", s.Op, "path", s.Path, "session", r.Session.String(), "client", s.Client, "xid", r.Xid}
}

// Last returns the last requests that had a line, the newest first.
func (l *SlowLog) Last() []facts.SlowRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := slices.Clone(l.last)
	slices.Reverse(list)
	return list
}

// micros returns the microseconds between two moments, or 0 if the clock was set back in between.
func micros(from, to time.Time) int64 { return max(0, to.Sub(from).Microseconds()) }
