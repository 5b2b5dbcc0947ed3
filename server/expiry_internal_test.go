package server

import (
	"slices"
	"testing"
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/internal/liveness"
)

// A client that asks for its session again is alive, even if the answer takes long. Nobody without
// the password keeps a session alive.
func TestHeardOwner(t *testing.T) {
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	body := datatree.CreateSessionBody{TimeoutMs: 4000, Passwd: [proto.PasswdBytes]byte{1, 2, 3}}
	res, _ := s.state.tree.Apply(datatree.Header{Zxid: 1}, &datatree.Request{Op: proto.OpCreateSession, Body: body.Append(nil)})
	id, start := res.SessionID, time.Unix(1_000_000_000, 0)
	s.sessions.expiry.Attached(id, 4*time.Second, true, start)
	heard := func() (at time.Time) {
		s.conns.heardSince(start, time.Now(), func(_ proto.SessionID, heard time.Time) { at = heard })
		return at
	}
	wrong := [proto.PasswdBytes]byte{1, 2, 4}
	s.heardOwner(id, wrong[:], start.Add(time.Second))
	s.heardOwner(id+1, body.Passwd[:], start.Add(time.Second))
	if at := heard(); !at.IsZero() || !slices.Contains(s.sessions.expiry.Due(start.Add(4*time.Second)), id) {
		t.Errorf("heard at %v from a client without the password", at)
	}
	s.heardOwner(id, body.Passwd[:], start.Add(time.Second))
	if at := heard(); !at.Equal(start.Add(time.Second)) || slices.Contains(s.sessions.expiry.Due(start.Add(4*time.Second)), id) {
		t.Errorf("the owner was heard at %v, want a second after the start", at)
	}
}

// A server whose loop is at rest can commit, also with short ticks.
func TestCanCommit_AtRest(t *testing.T) {
	for _, tick := range []time.Duration{20 * time.Millisecond, 200 * time.Millisecond, time.Second, 2 * time.Second} {
		passes := liveness.NewPasses(tick/2, commitPatience(tick), time.Now())
		rest := consensus.MaxRestTicks * raftTick(tick)
		for ago, want := range map[time.Duration]bool{rest * 5 / 4: true, max(3*rest, 2*tick): false} {
			now := time.Now()
			if got, _ := passes.CanCommit(now.Add(-ago), now); got != want {
				t.Errorf("tick %v, no progress for %v: can commit: %v", tick, ago, got)
			}
		}
	}
}
