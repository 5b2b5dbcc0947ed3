package server_test

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// unanswered reports whether the server closes a connection that claims a session, without an
// answer.
func (r *raw) unanswered(id proto.SessionID, pass []byte) bool {
	r.t.Helper()
	r.send((&proto.ConnectRequest{TimeoutMs: 10_000, SessionID: id, Passwd: pass}).Append(nil))
	return r.recv() == nil
}

var wrongPasswd = bytes.Repeat([]byte{7}, proto.PasswdBytes)

// Connect requests with a wrong password, or for a session that does not exist, write nothing.
// Their connections make room at once: there are more of them than an address may have.
func TestClaims_WriteNothing(t *testing.T) {
	bubble(t, ticks, func(t *testing.T, dial func() *raw) {
		owner := dial()
		owner.connect(10_000, 0, nil)
		before, _ := owner.call(1, proto.OpCreate, create{path: "/a"})
		zeros := make([]byte, proto.PasswdBytes)
		for i := range 15 {
			for _, claim := range []struct {
				id   proto.SessionID
				pass []byte
			}{
				{owner.id, wrongPasswd}, {owner.id, nil}, {owner.id, zeros}, {owner.id, owner.pass[:proto.PasswdBytes-1]},
				{owner.id + proto.SessionID(i) + 1, owner.pass},
			} {
				if resp := dial().connect(10_000, claim.id, claim.pass); resp.SessionID != 0 || resp.TimeoutMs != 0 {
					t.Fatalf("%v with %x was answered %+v", claim.id, claim.pass, resp)
				}
				// The goroutines that this one wakes last run first. Those of refused connections
				// would have to wait for the end of a time slice.
				synctest.Wait()
			}
		}
		after, _ := owner.call(2, proto.OpCreate, create{path: "/b"})
		if after.Zxid != before.Zxid+1 {
			t.Errorf("zxid %v, then, after 75 refused connect requests, %v", before.Zxid, after.Zxid)
		}
	})
}

// An address that makes too many such requests is not answered any more, until it pauses. Owners of
// sessions at the same address are not affected.
func TestClaims_LimitPerAddress(t *testing.T) {
	cfg := ticks
	cfg.MaxClientConns = -1
	bubble(t, cfg, func(t *testing.T, dial func() *raw) {
		owner := dial()
		owner.connect(60_000, 0, nil)
		for i := range 100 {
			if dial().unanswered(owner.id, wrongPasswd) {
				t.Fatalf("request %d was not answered", i)
			}
		}
		if !dial().unanswered(owner.id, wrongPasswd) || !dial().unanswered(owner.id+1, wrongPasswd) {
			t.Error("more requests without merit were answered")
		}
		again := dial()
		if resp := again.connect(60_000, owner.id, owner.pass); resp.SessionID != owner.id {
			t.Errorf("the owner was answered %+v", resp)
		}
		time.Sleep(10 * time.Millisecond)
		if dial().unanswered(owner.id+1, wrongPasswd) || !dial().unanswered(owner.id+1, wrongPasswd) {
			t.Error("after 10 ms, not exactly one request was answered")
		}
		time.Sleep(time.Minute)
		if dial().unanswered(owner.id+1, wrongPasswd) {
			t.Error("not answered after a minute")
		}
	})
}

// A member that has not yet applied the creation of a session does not refuse its client, even one
// that hides what it has seen.
func TestClaims_MemberBehind(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.startAll()
		behind := e.followers()[0]
		ahead := e.but(behind)[0]
		e.m(behind).slow(true, 300*time.Millisecond)
		for i := range 5 {
			c := e.connect(ahead, 30*time.Second)
			c.call(1, proto.OpCreate, create{path: fmt.Sprintf("/e%d", i), mode: proto.ModeEphemeral})
			for _, known := range e.m(behind).s.Facts().Sessions() {
				if known.ID == int64(c.id) {
					t.Fatal("the member knows the session already")
				}
			}
			c.move(e, behind).ping()
			if resp := e.dial(behind).connect(30_000, c.id+1000, c.pass); resp.SessionID != 0 {
				t.Errorf("a session that does not exist: %+v", resp)
			}
		}
	})
}

// A client whose claim waits when the server stops does not hold up the stop.
func TestClaims_QuorumLost(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.startAll()
		id := e.followers()[0]
		c := e.connect(id, 30*time.Second)
		e.m(id).isolate(true)
		late := e.dial(id)
		late.send((&proto.ConnectRequest{TimeoutMs: 30_000, SessionID: c.id + 1000, Passwd: c.pass}).Append(nil))
		if took := late.closedIn(time.Minute); took > 7*time.Second {
			t.Errorf("a claim that nothing can decide was left without an answer for %v", took)
		}
	})
}
