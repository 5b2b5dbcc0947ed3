package liveness

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
	"pgregory.net/rapid"
)

// model is an ensemble whose member 1 leads, and what it knows of its sessions.
type model struct {
	tick     time.Duration
	now      time.Time
	expiry   *Expiry
	passes   Passes
	lastPass time.Time
	wasLate  bool
	progress time.Time // when something was last committed
	hung     bool      // nothing is committed
	stalled  bool      // and the leader has noticed
	resetAt  time.Time
	members  map[uint8]*modelMember
	sessions map[proto.SessionID]*modelSession
}

// modelMember is a member that reports to the leader.
type modelMember struct {
	answered time.Time      // the leader's time that the last answer named
	underWay []*modelReport // in order
	arrived  *modelReport   // the last
}

// modelReport is a report of a member. Its Report.Arrived is moved as GiveBack does.
type modelReport struct {
	Report
	made  time.Time
	heard map[proto.SessionID]time.Time
}

type modelSession struct {
	ID      proto.SessionID
	Timeout time.Duration
	Server  uint8
	heard   time.Time // by its server
	// reported is what of heard the leader has learned from reports and from requests to attach.
	// known is the same, moved by the time that was lost.
	reported, known time.Time
	closing         bool
}

func (m *model) ids() []proto.SessionID {
	ids := make([]proto.SessionID, 0, len(m.sessions))
	for id := range m.sessions {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// hear records that the leader learned that a client was heard from at that time.
func (s *modelSession) hear(at time.Time) {
	s.reported = later(s.reported, at)
	if at.After(s.known) {
		s.known, s.closing = at, false
	}
}

func (m *model) fullTimeouts() {
	m.resetAt = m.now
	for _, s := range m.sessions {
		s.hear(m.now)
		s.closing = false
	}
}

// pass is a pass of the leader's loop.
func (m *model) pass(t *rapid.T) {
	lost, judges := m.passes.Next(m.now)
	late := m.now.Sub(m.lastPass)-m.tick/2 > m.tick/8
	if want := !late || m.wasLate; judges != want || late != (lost > 0) {
		t.Fatalf("a pass %v after the last one, which was late: %v: judges %v, lost %v", m.now.Sub(m.lastPass), m.wasLate, judges, lost)
	}
	m.lastPass, m.wasLate = m.now, late
	if late {
		m.giveBack(lost)
	}
	if !judges {
		return
	}
	if !m.hung {
		m.progress = m.now
	}
	can, changed := m.passes.CanCommit(m.progress, m.now)
	if want := m.now.Sub(m.progress)-lost <= 2*m.tick; can != want || changed != (want == m.stalled) {
		t.Fatalf("no progress for %v, lost %v, stalled %v: can commit %v, changed %v", m.now.Sub(m.progress), lost, m.stalled, can, changed)
	}
	m.stalled = !can
	if !can {
		return
	}
	if changed {
		m.expiry.ResetAll(m.now)
		m.fullTimeouts()
	}
	for _, s := range m.sessions {
		if s.Server == 1 {
			m.expiry.Touch(s.ID, s.heard)
			s.hear(s.heard)
		}
	}
	m.judge(t)
}

func (m *model) giveBack(lost time.Duration) {
	m.expiry.GiveBack(lost, m.now)
	m.resetAt = earlier(m.resetAt.Add(lost), m.now)
	for _, member := range m.members {
		if r := member.arrived; r != nil {
			r.Arrived = earlier(r.Arrived.Add(lost), m.now)
		}
	}
	for _, s := range m.sessions {
		if !s.closing {
			s.known = earlier(s.known.Add(lost), m.now)
		}
	}
}

// judge asks for the expired sessions, and compares them with what may and what must expire.
func (m *model) judge(t *rapid.T) {
	expired := m.expiry.Expired(m.now, func(id proto.SessionID) (uint8, time.Duration, bool) {
		return m.sessions[id].Server, m.sessions[id].Timeout, true
	})
	for _, id := range m.ids() {
		s, got := m.sessions[id], slices.Contains(expired, id)
		over := s.known.Add(s.Timeout)
		said, told := s.Server == 1, s.Server == 1 // by the session's server: truly, and as far as the leader can know
		arrived := m.resetAt
		if s.Server != 1 {
			if r := m.members[s.Server].arrived; r != nil {
				said, told = !r.made.Before(s.reported.Add(s.Timeout)), !r.MadeAfter.Before(over)
				arrived = later(arrived, r.Arrived)
			}
		}
		silent := m.now.Sub(arrived) > s.Timeout+m.tick
		switch {
		case got && s.closing:
			t.Fatalf("session %v expires twice", id)
		case got && m.now.Before(over):
			t.Fatalf("session %v expires %v early", id, over.Sub(m.now))
		case got && !said && !silent:
			t.Fatalf("session %v expires, but server %d has not reported that it was silent", id, s.Server)
		case !got && !s.closing && (told || silent) && !m.now.Before(over.Add(m.tick)):
			t.Fatalf("session %v has not expired %v after its timeout", id, m.now.Sub(over))
		}
		s.closing = s.closing || got
	}
}

// report makes a report of a member.
func (m *model) report(id uint8) {
	member := m.members[id]
	r := &modelReport{Report: Report{MadeAfter: member.answered, FirstOfProcess: member.answered.IsZero()}, made: m.now,
		heard: make(map[proto.SessionID]time.Time)}
	for _, s := range m.sessions {
		if s.Server == id {
			r.heard[s.ID] = s.heard
		}
	}
	member.underWay = append(member.underWay, r)
}

// deliver delivers the member's oldest report that is under way.
func (m *model) deliver(id uint8, answered bool) {
	member := m.members[id]
	r := member.underWay[0]
	member.underWay, member.arrived = member.underWay[1:], r
	for id, at := range r.heard {
		if s := m.sessions[id]; s != nil {
			m.expiry.Touch(id, at)
			s.hear(at)
		}
	}
	r.Arrived = m.now
	m.expiry.Reported(id, r.Report, maps.All(map[proto.SessionID]time.Duration{}))
	if answered {
		member.answered = m.now
	}
}

// A session never expires before its timeout, nor before its server has made a report after that,
// or was silent for long, and then at most one tick late. A late pass does not judge. A leader that
// can commit again, and a new leader, gives every session a full timeout.
func TestExpiry_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tick := time.Duration(rapid.Int64Range(8, 2000).Draw(t, "tick_ms")) * time.Millisecond
		start := time.Unix(1_000_000_000, 0)
		m := &model{tick: tick, now: start, lastPass: start, progress: start, resetAt: start, expiry: NewExpiry(1, tick),
			passes: NewPasses(tick/2, 2*tick, start), members: map[uint8]*modelMember{2: {}, 3: {}}, sessions: make(map[proto.SessionID]*modelSession)}
		m.expiry.Lead(true, start, start)
		others := rapid.SampledFrom([]uint8{2, 3})
		session := func(t *rapid.T) *modelSession {
			if len(m.sessions) == 0 {
				t.Skip("no session")
			}
			return m.sessions[rapid.SampledFrom(m.ids()).Draw(t, "session")]
		}
		round := func(t *rapid.T, delay int, reporting ...uint8) { // delay: of reports, in rounds
			m.now = m.now.Add(m.tick / 2)
			for _, id := range reporting {
				m.report(id)
				for len(m.members[id].underWay) > delay {
					m.deliver(id, true)
				}
			}
			m.pass(t)
		}
		t.Repeat(map[string]func(*rapid.T){
			"attach": func(t *rapid.T) {
				id := proto.SessionID(rapid.Int64Range(1, 6).Draw(t, "id"))
				s := m.sessions[id]
				if s == nil {
					s = &modelSession{ID: id}
				}
				s.Timeout = time.Duration(rapid.Int64Range(1, 12).Draw(t, "ticks")) * m.tick
				s.Server = rapid.SampledFrom([]uint8{1, 2, 3}).Draw(t, "server")
				m.expiry.Attached(id, s.Timeout, m.sessions[id] == nil, m.now)
				m.sessions[id] = s
				s.heard, s.closing = m.now, false
				s.hear(m.now)
			},
			"hear": func(t *rapid.T) { session(t).heard = m.now },
			"end": func(t *rapid.T) {
				id := session(t).ID
				m.expiry.Remove(id)
				delete(m.sessions, id)
			},
			"time passes": func(t *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.Int64Range(0, int64(m.tick/2)).Draw(t, "time")))
			},
			"round": func(t *rapid.T) { round(t, 0, 2, 3) },
			"long rounds": func(t *rapid.T) { // of some members
				reporting := slices.DeleteFunc([]uint8{2, 3}, func(uint8) bool { return rapid.Bool().Draw(t, "silent") })
				delay := rapid.SampledFrom([]int{0, 0, 1, 4, 10}).Draw(t, "delay")
				for range rapid.IntRange(1, 30).Draw(t, "rounds") {
					round(t, delay, reporting...)
				}
			},
			"pause":  func(t *rapid.T) { m.now = m.now.Add(time.Duration(rapid.Int64Range(0, 20).Draw(t, "ticks")) * m.tick) },
			"pass":   m.pass,
			"report": func(t *rapid.T) { m.report(others.Draw(t, "server")) },
			"deliver": func(t *rapid.T) {
				if id := others.Draw(t, "server"); len(m.members[id].underWay) > 0 {
					m.deliver(id, rapid.Bool().Draw(t, "answered"))
				}
			},
			"lose": func(t *rapid.T) {
				if member := m.members[others.Draw(t, "server")]; len(member.underWay) > 0 {
					member.underWay = member.underWay[1:]
				}
			},
			"hang": func(t *rapid.T) { m.hung = !m.hung },
			"lead again": func(t *rapid.T) {
				m.expiry.Lead(false, m.now, m.now)
				if !m.expiry.Lead(true, m.now, m.now) || m.expiry.Lead(true, m.now, m.now.Add(time.Hour)) {
					t.Fatal("a leadership begins not once")
				}
				m.fullTimeouts()
			},
		})
	})
}
