package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/server/facts"
)

// stories returns the joined stories of a session that the members tell, the newest first.
func (e *ensemble) stories(session proto.SessionID, members ...int) (all []server.EndedSession) {
	for _, id := range members {
		if e.m(id).s == nil {
			continue
		}
		of := func(s *server.EndedSession) bool { return s.Matches(session.String(), "", "") }
		all = append(all, e.m(id).s.Facts().EndedSessions(of, 100)...)
	}
	return facts.JoinEnded(all)
}

// ended waits until the session has ended on all members that run, and returns its story.
func (e *ensemble) ended(session proto.SessionID) (s server.EndedSession) {
	e.t.Helper()
	running := slices.DeleteFunc(e.but(0), func(id int) bool { return e.m(id).s == nil })
	e.awaits("the session's end", func() bool {
		all := e.stories(session, running...)
		if len(all) != 1 {
			return false
		}
		s = all[0]
		return s.Zxid == "" || len(s.Tellers) == len(running)
	})
	return s
}

// pings sends n pings.
func (r *raw) pings(n int, every time.Duration) *raw {
	r.t.Helper()
	for range n {
		time.Sleep(every)
		r.ping()
	}
	return r
}

// staged is how a test ends sessions.
type staged struct {
	name   string
	n      int                    // members; 0: 3
	adapt  func(c *server.Config) // nil: nothing
	stage  func(e *ensemble) (session proto.SessionID)
	cause  facts.Cause
	says   []string // parts of the sentence
	silent []string // what the sentence does not say
}

const endedTimeout = 4 * time.Second

// stagedEndings are the endings of docs/quality/reliability.md, but those with processes.
var stagedEndings = []staged{
	{
		name: "client stopped",
		stage: func(e *ensemble) proto.SessionID {
			return e.connect(e.followers()[0], endedTimeout).pings(4, time.Second).id
		},
		cause: facts.ClientSilent,
		says:  []string{"with a timeout of 4 s", "its pings had come every 1.0 s", "was well", "the connection stayed open", "cannot tell which"},
	},
	{
		name: "client stopped at a single server", n: 1,
		stage: func(e *ensemble) proto.SessionID { return e.connect(1, endedTimeout).pings(4, time.Second).id },
		cause: facts.ClientSilent, says: []string{"server 1 was well"},
	},
	{
		name: "client killed",
		stage: func(e *ensemble) proto.SessionID {
			r := e.connect(e.leader(), endedTimeout).pings(3, time.Second)
			_ = r.nc.Close()
			return r.id
		},
		cause: facts.ClientLeft, says: []string{"as if its process had ended", "was well"},
	},
	{
		name: "network cut",
		stage: func(e *ensemble) proto.SessionID {
			r, id := e.connect(e.followers()[1], endedTimeout), e.followers()[1]
			r.pings(3, time.Second)
			e.network.Cut(fmt.Sprintf("c%d", e.clients), e.m(id).host(), true)
			e.network.Cut(e.m(id).host(), fmt.Sprintf("c%d", e.clients), true)
			return r.id
		},
		cause: facts.ClientSilent, says: []string{"or the network to it was cut", "was well"},
	},
	{
		name: "closed by the client",
		stage: func(e *ensemble) proto.SessionID {
			r := e.connect(e.leader(), endedTimeout)
			r.call(1, proto.OpCloseSession, nil)
			return r.id
		},
		cause: facts.ClientClosed, says: []string{"its client closed it"},
	},
	{
		name: "closed by an administrator",
		stage: func(e *ensemble) proto.SessionID {
			r := e.connect(e.leader(), endedTimeout).pings(2, time.Second)
			if err := e.m(e.followers()[0]).s.ExpireSession(e.t.Context(), int64(r.id)); err != nil {
				e.t.Error(err)
			}
			return r.id
		},
		cause: facts.Administrator, says: []string{"an administrator"},
	},
	{
		name: "password wrong",
		stage: func(e *ensemble) proto.SessionID {
			r := e.connect(e.leader(), time.Hour)
			e.refused(e.leader(), r.id, make([]byte, proto.PasswdBytes))
			return r.id
		},
		cause: facts.PasswordRefused, says: []string{"the password was wrong"},
	},
	{
		name: "session of another ensemble",
		stage: func(e *ensemble) proto.SessionID {
			e.refused(e.leader(), 0x1234, make([]byte, proto.PasswdBytes))
			return 0x1234
		},
		cause: facts.SessionOver, says: []string{"or had never been"},
	},
	{
		name: "server paused",
		stage: func(e *ensemble) proto.SessionID {
			return e.disturbed(e.followers()[0], endedTimeout, (*ensembleMember).pause, 12*time.Second)
		},
		cause: facts.ServerPaused, says: []string{"stood still for 1", "could not hear its clients"},
	},
	{
		name: "client killed, and then its server paused",
		stage: func(e *ensemble) proto.SessionID {
			return e.leftBeforeAPause(func(r *raw) { _ = r.nc.Close() })
		},
		cause: facts.ClientLeft, says: []string{"as if its process had ended", "pause"},
	},
	{
		name: "client stopped, and then its server paused for a moment",
		stage: func(e *ensemble) proto.SessionID {
			return e.leftBeforeAPause(func(*raw) {})
		},
		cause: facts.ClientSilent, says: []string{"cannot tell which", "pause"},
	},
	{
		name: "leader paused",
		stage: func(e *ensemble) proto.SessionID {
			return e.disturbed(e.leader(), endedTimeout, (*ensembleMember).pause, 20*time.Second)
		},
		cause: facts.ServerPaused, says: []string{"stood still for 1"},
	},
	{
		name: "server out of touch with the leader",
		stage: func(e *ensemble) proto.SessionID {
			return e.disturbed(e.followers()[0], 2*time.Second, (*ensembleMember).isolate, 4500*time.Millisecond)
		},
		cause: facts.ServerCutOff, says: []string{"heard the client, and was out of touch with the leader for 4"},
	},
	{
		name: "server without a leader for syncLimit ticks",
		stage: func(e *ensemble) proto.SessionID {
			return e.disturbed(e.followers()[0], endedTimeout, (*ensembleMember).isolate, 15*time.Second)
		},
		cause: facts.ServerClosed, says: []string{"syncLimit ticks", "did not come back"},
	},
	{
		name: "election, and the client was killed in it",
		stage: func(e *ensemble) proto.SessionID {
			r := e.connect(e.followers()[0], 8*time.Second).pings(3, time.Second)
			e.m(e.leader()).kill()
			time.Sleep(500 * time.Millisecond)
			_ = r.nc.Close()
			return r.id
		},
		cause: facts.ClientLeft, says: []string{"no leader", "as if its process had ended"}, silent: []string{"was well"},
	},
	{
		name: "server restarted",
		stage: func(e *ensemble) proto.SessionID {
			e.onDisk()
			id := e.followers()[0]
			r := e.connect(id, 8*time.Second)
			e.m(id).stop()
			e.start(id)
			return r.id
		},
		cause: facts.ServerRestarted, says: []string{"the client did not come back to any server"},
	},
	{
		name: "server killed, and the client turned away",
		adapt: func(c *server.Config) {
			c.ConnectionThrottle = server.ConnectionThrottle{Tokens: 2, FillTime: time.Hour}
		},
		stage: func(e *ensemble) proto.SessionID {
			id, other := e.followers()[0], e.followers()[1]
			e.connect(other, time.Hour)
			e.connect(other, time.Hour)
			r := e.connect(id, endedTimeout)
			e.sameZxid() // the other knows the session
			_ = r.nc.Close()
			for range 3 {
				if !e.closedAtOnce(other, &proto.ConnectRequest{TimeoutMs: 4000, SessionID: r.id, Passwd: r.pass}) {
					e.t.Error("the client was let in")
				}
			}
			return r.id
		},
		cause: facts.ClientRefused, says: []string{"was turned away (times: 3): too many connect requests"},
	},
	{
		name: "turned away by a server without a quorum",
		stage: func(e *ensemble) proto.SessionID {
			r, id := e.connect(e.leader(), 12*time.Second), e.followers()[0]
			e.sameZxid() // the follower knows the session
			e.m(id).isolate(true)
			time.Sleep(8 * time.Second)
			r.ping()
			_ = r.nc.Close()
			e.closedAtOnce(id, &proto.ConnectRequest{TimeoutMs: 12_000, SessionID: r.id, Passwd: r.pass})
			e.m(id).isolate(false)
			return r.id
		},
		cause: facts.ClientRefused, says: []string{"did not serve clients"},
	},
	{
		name: "authentication failed",
		stage: func(e *ensemble) proto.SessionID {
			r := e.connect(e.followers()[0], endedTimeout)
			r.call(proto.XidAuth, proto.OpAuth, &proto.AuthRequest{Scheme: "unheard-of"})
			return r.id
		},
		cause: facts.ServerClosed, says: []string{"authentication failed"},
	},
	{
		name: "bad request",
		stage: func(e *ensemble) proto.SessionID {
			r := e.connect(e.followers()[0], endedTimeout)
			_, _ = r.nc.Write([]byte{0x7f, 0xff, 0xff, 0xff})
			return r.id
		},
		cause: facts.ServerClosed, says: []string{"jute.maxbuffer"},
	},
	{
		name: "connections shed",
		stage: func(e *ensemble) proto.SessionID {
			id := e.followers()[0]
			r := e.connect(id, endedTimeout)
			e.m(id).s.ShedConnections(100)
			return r.id
		},
		cause: facts.ServerClosed, says: []string{"shed load"},
	},
	{
		name: "moved, and then stopped",
		stage: func(e *ensemble) proto.SessionID {
			r := e.connect(e.leader(), time.Minute)
			return r.move(e, e.followers()[0]).move(e, e.followers()[1]).move(e, e.followers()[1]).pings(3, time.Second).id
		},
		cause: facts.ClientSilent, says: []string{"moves between servers: 2", "was well"},
	},
}

// leftBeforeAPause returns a session whose client leaves, or falls silent, a moment before its
// server pauses for half of endedTimeout.
func (e *ensemble) leftBeforeAPause(leave func(r *raw)) proto.SessionID {
	id := e.followers()[0]
	r := e.connect(id, endedTimeout).pings(3, time.Second)
	leave(r)
	time.Sleep(500 * time.Millisecond)
	e.m(id).pause(true)
	time.Sleep(endedTimeout / 2)
	e.m(id).pause(false)
	return r.id
}

// disturbed returns a session whose client is well while its server has a fault, and for a second
// afterwards.
func (e *ensemble) disturbed(id int, timeout time.Duration, fault func(m *ensembleMember, on bool), lasts time.Duration) proto.SessionID {
	r := e.connect(id, timeout).pings(3, time.Second)
	keep := e.keepPinging(r)
	fault(e.m(id), true)
	time.Sleep(lasts)
	fault(e.m(id), false)
	time.Sleep(time.Second)
	keep()
	return r.id
}

// keepPinging sends pings as a client that is well does, until the function is called.
func (e *ensemble) keepPinging(r *raw) (stop func()) {
	done, over := make(chan struct{}), make(chan struct{})
	go func() { // ends when stop is called or the server closes the connection
		defer close(over)
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Second):
			}
			if r.exchange((&proto.RequestHeader{Xid: proto.XidPing, Op: proto.OpPing}).Append(nil), time.Minute) == nil {
				return
			}
		}
	}()
	return func() {
		close(done)
		_ = r.nc.SetDeadline(time.Now())
		<-over
	}
}

// Each story names the staged cause, or says that it cannot tell.
func TestEnded_Staged(t *testing.T) {
	for _, c := range stagedEndings {
		t.Run(c.name, func(t *testing.T) {
			n := c.n
			if n == 0 {
				n = 3
			}
			withEnsemble(t, n, func(t *testing.T, e *ensemble) {
				if c.adapt != nil {
					e.each(c.adapt)
				}
				e.onDisk()
				e.startAll()
				if n > 1 {
					e.awaitVoters(1, 2, 3)
				}
				s := e.ended(c.stage(e))
				t.Log(s.Story)
				if s.Cause != c.cause {
					t.Errorf("cause %q, want %q: %+v", s.Cause, c.cause, s)
				}
				for _, part := range c.says {
					if !strings.Contains(s.Story, part) {
						t.Errorf("it does not say %q", part)
					}
				}
				for _, part := range c.silent {
					if strings.Contains(s.Story, part) {
						t.Errorf("it says %q", part)
					}
				}
			})
		})
	}
}

// A story has few bytes of the names that a client claims.
func TestEnded_LongIdentities(t *testing.T) {
	withEnsemble(t, 1, func(t *testing.T, e *ensemble) {
		e.startAll()
		r := e.connect(1, endedTimeout)
		for i := range 7 {
			auth := fmt.Sprintf("%d%s:pw", i, strings.Repeat("x", 1000))
			r.call(proto.XidAuth, proto.OpAuth, &proto.AuthRequest{Scheme: "digest", Auth: []byte(auth)})
		}
		r.call(1, proto.OpCloseSession, nil)
		if s := e.ended(r.id); len(s.Story) > 2000 || len(s.Client.Identities) != 2 || s.Client.Identities[1] != "…" {
			t.Errorf("%d bytes, identities %q", len(s.Story), s.Client.Identities)
		}
	})
}
