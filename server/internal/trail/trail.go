// Package trail decides which requests have events in the audit log, and writes the events. A
// [Trail] without a log records nothing. The caller says which client sent a request, and calls in
// the order in which requests are applied.
package trail

import (
	"slices"
	"strings"
	"time"

	"github.com/gozkd/gozkd/audit"
	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// Trail records events in an audit log. The fields never change.
type Trail struct {
	Log   audit.Sink // nil: nothing is recorded
	Reads []string   // the subtrees whose reads are recorded
	// Of an ACL that is longer than a znode may have, the events have the beginning.
	MaxACLEntries, MaxACLBytes int
}

// Client is the sender of a request.
type Client interface {
	// AuditEvent returns an event with the session, the identities and the address of the client.
	// ids are the client's identities at the time of the request, or nil for its present ones.
	AuditEvent(ids []proto.ID) audit.Event
	// LastBytes returns when its last bytes came: the time of its reads and connect requests.
	LastBytes() time.Time
}

// On reports whether there is an audit log.
func (t *Trail) On() bool { return t.Log != nil }

func event(c Client, op audit.Operation, code proto.ErrCode, ids []proto.ID, now time.Time) audit.Event {
	e := c.AuditEvent(ids)
	e.Time, e.Operation, e.Result, e.Err = now, op, audit.ResultOf(code), code
	return e
}

// maxScheme bounds the name of a scheme: long names must not take the room of other events.
const maxScheme = 256

// Auth records that the client proved an identity under a scheme, or failed to.
func (t *Trail) Auth(c Client, scheme string, code proto.ErrCode, now time.Time) {
	if !t.On() {
		return
	}
	e := event(c, audit.Authenticate, code, nil, now)
	e.Detail = strings.Clone(printable.Shortened(scheme, maxScheme)) // it may share the frame
	t.Log.Record(&e)
}

// Word records a four-letter word if it changes something.
func (t *Trail) Word(c Client, word string, allowed bool, now time.Time) {
	if !t.On() || word != "srst" && word != "crst" && word != "stmk" {
		return
	}
	e := event(c, audit.Word, proto.OK, nil, now)
	e.Detail = word
	if !allowed {
		e.Result = audit.Failure
	}
	t.Log.Record(&e)
}

// Session records that a client opened or resumed a session, or could not.
func (t *Trail) Session(c Client, op proto.OpCode, id proto.SessionID, code proto.ErrCode, zxid proto.Zxid) {
	if !t.On() {
		return
	}
	what := audit.OpenSession
	if op == proto.OpReattachSession {
		what = audit.ResumeSession
	}
	e := event(c, what, code, nil, c.LastBytes())
	e.Session, e.Zxid = id, zxid
	t.Log.Record(&e)
}

// Refused records a write that is answered without being applied.
func (t *Trail) Refused(c Client, h proto.RequestHeader, body []byte, code proto.ErrCode, now time.Time) {
	if !t.On() {
		return
	}
	e := event(c, "", code, nil, now)
	e.Xid = h.Xid
	t.write(e, &Request{Op: h.Op, Body: body, Err: code})
}

// Read records a read if its path is in Reads, or if the client may not read it.
func (t *Trail) Read(c Client, op proto.OpCode, xid int32, path string, ids []proto.ID, code proto.ErrCode) {
	if !t.On() || code != proto.ErrNoAuth && !below(path, t.Reads) {
		return
	}
	e := event(c, audit.Read, code, ids, c.LastBytes())
	e.Xid, e.Znode, e.HasZnode, e.Detail = xid, strings.Clone(path), true, op.String()
	t.Log.Record(&e)
}

// ReadBody is Read for the body of a request.
func (t *Trail) ReadBody(c Client, op proto.OpCode, xid int32, body []byte, ids []proto.ID, code proto.ErrCode) {
	switch op {
	case proto.OpExists, proto.OpGetData, proto.OpGetACL, proto.OpGetChildren, proto.OpGetChildren2,
		proto.OpGetAllChildrenNumber, proto.OpGetEphemerals, proto.OpAddWatch, proto.OpListPage:
		d := jute.NewDecoder(body)
		d.AliasStrings()
		if path := d.String(); d.Err() == nil {
			t.Read(c, op, xid, path, ids, code)
		}
	}
}

func below(path string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		rest, ok := strings.CutPrefix(path, strings.TrimSuffix(root, "/"))
		return ok && (rest == "" || rest[0] == '/')
	})
}

// Full reports whether the log has no room, and wants callers to wait for room.
func (t *Trail) Full() bool {
	log, ok := t.Log.(audit.Backpressure)
	return ok && log.Full()
}

// patience is how often Await looks whether the connection is closed.
const patience = 100 * time.Millisecond

// Await waits until the log has room. It returns false if the connection closes or the server
// stops. The caller must hold no lock: while Await waits, requests that were proposed are applied,
// and the log takes their events.
func (t *Trail) Await(isClosed func() bool, stopping <-chan struct{}) bool {
	for t.Full() {
		select {
		case <-t.Log.(audit.Backpressure).Room():
		case <-time.After(patience):
		case <-stopping:
			return false
		}
		if isClosed() {
			return false
		}
	}
	return true
}
