package jepsenlite

import (
	"context"
	"fmt"
	"time"

	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/proto"
)

// loadRewatch produces the cases of watches that a client which waits for each reply never has. A
// client sends a read with a watch, a change and another read at once, so that the second read
// waits after the change. A client moves to another server and sets its watches again with a zxid
// right before, right at or after its last change. The last worker follows the changes of the
// others with a recursive watch, and moves.
const (
	loadRewatch = "rewatch"
	rewatchKeys = 2
)

// A rewatcher is a worker on a raw connection.
type rewatcher struct {
	*worker
	c       *rawConn
	seen    proto.Zxid
	heard   time.Time  // when the last beat was answered, of the last worker
	changed proto.Zxid // of its last successful change
	path    string     // what it changed last
	gone    bool       // path was not there when it was last read
}

func runRewatch(ctx context.Context, w *worker) {
	r := &rewatcher{worker: w}
	if w.name == loadRewatch+"-2" {
		w.rawSessions(ctx, func(c *rawConn) (proto.Zxid, int) {
			r.c, r.heard = c, time.Now()
			for ok := r.follow(); ok && r.rng.IntN(8) > 0 && w.nextOn(ctx, r.beat); {
				ok = r.beat()
			}
			_ = c.Close() // it may be broken already
			// Away for changes to miss, but not for so long that the session expires: less if the
			// server was silent before.
			backoff.Sleep(ctx, time.Duration(r.rng.Int64N(int64(w.Timeout/4)+1))-time.Since(r.heard))
			return r.seen, c.member
		})
	}
	w.rawSessions(ctx, func(c *rawConn) (proto.Zxid, int) {
		r.c = c
		ok := r.changed == 0 || r.again()
		for n := w.rng.IntN(8); ok && n >= 0 && w.nextOn(ctx, r.beat); n-- {
			if ok = r.burst(); ok && w.rng.IntN(3) == 0 {
				ok = r.again()
			}
		}
		_ = c.Close() // it may be broken already
		return r.seen, c.member
	})
}

// burst sends a read with a watch, a change and the same read at once, and awaits the replies.
func (r *rewatcher) burst() bool {
	r.path = watchKey(r.worker, r.rng.IntN(rewatchKeys))
	child := fmt.Sprintf("%s/%d", r.path, r.rng.IntN(2))
	read, changed := proto.OpGetData, r.path
	switch r.rng.IntN(3) {
	case 0:
		read = proto.OpExists
	case 1:
		read, changed = proto.OpGetChildren2, child
	}
	var op proto.OpCode
	var body []byte
	switch n := r.rng.IntN(6); {
	case n < 2:
		create := proto.CreateRequest{Path: changed, Data: []byte(r.value()), ACL: proto.OpenACL()}
		op, body = proto.OpCreate, create.Append(nil, proto.OpCreate)
	case n < 4 && changed == r.path:
		set := proto.SetDataRequest{Path: changed, Data: []byte(r.value()), Version: -1}
		op, body = proto.OpSetData, set.Append(nil)
	default:
		del := proto.PathVersionRequest{Path: changed, Version: -1}
		op, body = proto.OpDelete, del.Append(nil)
	}
	b := r.read(nil, read, true)
	b = r.c.request(b, op, body)
	b = r.read(b, read, false)
	if r.c.send(b) != nil {
		return false
	}
	_, ok := r.reply()
	if !ok {
		return false
	}
	h, ok := r.reply()
	if !ok {
		return false
	}
	if h.Err == proto.OK {
		r.changed = h.Zxid
	}
	h, ok = r.reply()
	r.gone = h.Err == proto.ErrNoNode
	return ok
}

// beat sends a ping and awaits its reply. It returns false if the connection is broken.
func (r *rewatcher) beat() bool {
	if r.c.ping() != nil {
		return false
	}
	for {
		h, _, err := r.c.receive()
		if err != nil {
			return false
		}
		if h.Xid == pingXid {
			r.seen, r.heard = max(r.seen, h.Zxid), time.Now()
			return true
		}
	}
}

// follow sets a recursive watch on the load's znodes as of what the client has seen, and asks
// whether it missed something. Now and then the client leaves before it knows.
func (r *rewatcher) follow() bool {
	none := []string{}
	q := proto.SetWatchesRequest{
		RelativeZxid: r.seen, Data: none, Exist: none, Child: none,
		Persistent: []string{proto.ReplayMark}, PersistentRecursive: []string{r.dir},
	}
	if r.c.send(r.c.request(nil, proto.OpSetWatches2, q.Append(nil, proto.OpSetWatches2))) != nil || r.rng.IntN(8) == 0 {
		return false
	}
	_, ok := r.reply()
	return ok
}

// again sends a setWatches and then reads that show which changes it must have reported.
func (r *rewatcher) again() bool {
	none := []string{} // not null, which would fail the request
	q := proto.SetWatchesRequest{
		RelativeZxid: []proto.Zxid{r.changed - 1, r.changed, r.seen}[r.rng.IntN(3)], Data: none, Exist: none, Child: none,
	}
	path := []string{r.path}
	switch {
	case r.gone:
		q.Exist = path
	case r.rng.IntN(2) == 0:
		q.Data = path
	default:
		q.Child = path
	}
	b := r.c.request(nil, proto.OpSetWatches, q.Append(nil, proto.OpSetWatches))
	if r.c.send(b) != nil {
		return false
	}
	if _, ok := r.reply(); !ok { // the reads are sent after the events have come
		return false
	}
	if r.c.send(r.read(r.read(nil, proto.OpExists, false), proto.OpGetChildren2, false)) != nil {
		return false
	}
	_, ok := r.reply()
	if ok {
		_, ok = r.reply()
	}
	return ok
}

func (r *rewatcher) read(b []byte, op proto.OpCode, watch bool) []byte {
	q := proto.PathWatchRequest{Path: r.path, Watch: watch}
	return r.c.request(b, op, q.Append(nil))
}

// reply returns the header of the next reply. ok is false if the connection is broken.
func (r *rewatcher) reply() (h proto.ReplyHeader, ok bool) {
	for {
		h, _, err := r.c.receive()
		if err != nil {
			return h, false
		}
		if h.Xid >= 0 { // not an event
			r.seen = max(r.seen, h.Zxid)
			return h, true
		}
	}
}
