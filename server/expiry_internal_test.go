package server

import (
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
)

// A client that asks for its session again is alive, even if the answer takes long. Nobody without
// the password keeps a session alive.
func TestHeardOwner(t *testing.T) {
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	body := datatree.CreateSessionBody{TimeoutMs: 4000, Passwd: [proto.PasswdBytes]byte{1, 2, 3}}
	res, _ := s.tree.Apply(datatree.Header{Zxid: 1}, &datatree.Request{Op: proto.OpCreateSession, Body: body.Append(nil)})
	id, start := res.SessionID, time.Unix(1_000_000_000, 0)
	s.expiry.tracker.Add(id, 4*time.Second, start)
	heard := func() (at time.Time) {
		s.conns.heardSince(start, func(_ proto.SessionID, heard time.Time) { at = heard })
		return at
	}
	wrong := [proto.PasswdBytes]byte{1, 2, 4}
	s.heardOwner(id, wrong[:], start.Add(time.Second))
	s.heardOwner(id+1, body.Passwd[:], start.Add(time.Second))
	if at := heard(); !at.IsZero() || !s.expiry.tracker.Silent(id, start.Add(4*time.Second)) {
		t.Errorf("heard at %v from a client without the password", at)
	}
	s.heardOwner(id, body.Passwd[:], start.Add(time.Second))
	if at := heard(); !at.Equal(start.Add(time.Second)) || s.expiry.tracker.Silent(id, start.Add(4*time.Second)) {
		t.Errorf("the owner was heard at %v, want a second after the start", at)
	}
}

// A member's process ends before it has reported that it heard a client, and its next process,
// which knows nothing of that, makes reports at once. The session lasts for its timeout from when
// the ended process can have heard the client. Further processes, which the client does not reach,
// change nothing.
func TestReportArrived_OfAnotherProcess(t *testing.T) {
	const tick, timeout = 2 * time.Second, 30 * time.Second
	s, err := New(Config{MemberID: 1, Tick: tick})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Unix(1_000_000_000, 0)
	body := datatree.CreateSessionBody{TimeoutMs: int32(timeout.Milliseconds())}
	res, _ := s.tree.Apply(datatree.Header{Zxid: 1}, &datatree.Request{Op: proto.OpCreateSession, Server: 2, Body: body.Append(nil)})
	info, _ := s.tree.Session(res.SessionID)
	s.expiry.tracker.Add(info.ID, timeout, start)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	for _, process := range []struct{ from, until int }{{0, 10}, {20, 29}, {30, 39}, {40, 50}} {
		for seconds := process.from; seconds < process.until; seconds++ {
			r := memberReport{arrived: at(seconds), madeAfter: at(seconds - 1)}
			if r.firstOfProcess = seconds < process.from+2; r.firstOfProcess { // the answer to the first report is lost
				r.madeAfter = start
			}
			s.reportArrived(2, r)
			const lastHeard = 9 + 2 // a tick after the last report of the first process
			if want := seconds-1 >= lastHeard+30 && !r.firstOfProcess; s.silenceKnown(info, at(seconds)) != want {
				t.Errorf("after %d s the silence of the session is known: %v, want %v", seconds, !want, want)
			}
		}
	}
}

// A server whose loop is at rest can commit, also with short ticks.
func TestCanCommit_AtRest(t *testing.T) {
	for _, tick := range []time.Duration{20 * time.Millisecond, 200 * time.Millisecond, time.Second, 2 * time.Second} {
		s := &Server{cfg: &Config{Tick: tick, Logger: hclog.NewNullLogger()}}
		rest := consensus.MaxRestTicks * raftTick(tick)
		for ago, want := range map[time.Duration]bool{rest * 5 / 4: true, max(3*rest, 2*tick): false} {
			if got := s.canCommit(consensus.Status{Progress: time.Now().Add(-ago)}, time.Now()); got != want {
				t.Errorf("tick %v, no progress for %v: can commit: %v", tick, ago, got)
			}
			s.loop.stalled = false
		}
	}
}
