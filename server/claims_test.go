package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/server/facts"
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

// Of those who claim a session that has ended, only a client with its password gets the story, and
// the same refusal before it, each time. Nothing that can be computed is such a password.
func TestClaims_Story(t *testing.T) {
	for _, computed := range []bool{false, true} {
		cfg := ticks
		cfg.MaxClientConns, cfg.ZooKeeperPasswords = -1, computed
		serverBubble(t, cfg, func(t *testing.T, s *server.Server, dial func() *raw) {
			time.Sleep(time.Minute) // the feature level of computed passwords is reached
			silent, closing, living := dial(), dial(), dial()
			silent.connect(5000, 0, nil)
			closing.connect(60_000, 0, nil)
			living.connect(60_000, 0, nil)
			if known := zkfiles.Password(silent.id); bytes.Equal(silent.pass, known[:]) != computed {
				t.Fatalf("the password %x is computed: %v", silent.pass, !computed)
			}
			silent.call(1, proto.OpCreate, create{path: "/e", mode: proto.ModeEphemeral})
			closing.call(1, proto.OpCloseSession, nil)
			time.Sleep(10 * time.Second)
			claim := func(id proto.SessionID, pass []byte) []byte {
				r := dial()
				r.send((&proto.ConnectRequest{TimeoutMs: 10_000, SessionID: id, Passwd: pass}).Append(nil))
				if got := r.recv(); !bytes.Equal(got, (&proto.ConnectResponse{Passwd: make([]byte, proto.PasswdBytes)}).Append(nil)) {
					t.Fatalf("the refusal is %x", got)
				}
				return r.recv()
			}
			for _, stranger := range []struct {
				id   proto.SessionID
				pass []byte
			}{
				{silent.id, closing.pass}, {silent.id, wrongPasswd}, {silent.id, nil}, {silent.id, silent.pass[:15]},
				{silent.id, make([]byte, proto.PasswdBytes)}, {silent.id + 99, silent.pass}, {living.id, silent.pass},
			} {
				if told := claim(stranger.id, stranger.pass); told != nil {
					t.Errorf("%v with %x is told %q", stranger.id, stranger.pass, told)
				}
			}
			for _, owner := range []struct {
				*raw
				cause facts.Cause
			}{{silent, facts.ClientSilent}, {closing, facts.ClientClosed}} {
				for range 150 { // an address may make 100 claims without merit
					told := claim(owner.id, owner.pass)
					if computed {
						if told != nil {
							t.Fatalf("whoever computes the password is told %q", told)
						}
						break
					}
					var e facts.EndedSession
					header := (&proto.ReplyHeader{Xid: proto.XidPing}).Append(nil)
					if !bytes.HasPrefix(told, header) || json.Unmarshal(told[len(header)+4:], &e) != nil {
						t.Fatalf("the story is %q", told)
					}
					if _, story := e.Verdict(); e.Session != owner.id.String() || e.Cause != owner.cause || e.Story != story || e.Ephemerals != nil {
						t.Fatalf("%+v", e)
					}
				}
			}
			over := func(e *facts.EndedSession) bool { return e.How == facts.Over }
			want := 6 // of strangers with an ended session
			if computed {
				want += 2
			}
			if n := len(s.Facts().EndedSessions(over, 1000)); n != want {
				t.Errorf("%d refusals are remembered, want %d", n, want)
			}
		})
	}
}
