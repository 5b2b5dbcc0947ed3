package liveness

import (
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
	"pgregory.net/rapid"
)

var begin = time.Unix(1_000_000_000, 0)

// Clients that leave without closing their local sessions cannot fill the memory, and the count of
// such sessions follows what happens to them.
func TestLocals_Idle(t *testing.T) {
	l := NewLocals(time.Second, func(int, time.Time) time.Time { return begin })
	for id := range proto.SessionID(MaxIdle) {
		if l.Crowded() {
			t.Fatalf("crowded by %d", id)
		}
		if !l.Add(id, Local[int]{Conn: 1, TimeoutMs: 10_000}, begin) {
			t.Fatal("an id is taken")
		}
		l.Release(id, 1, begin)
	}
	if !l.Crowded() {
		t.Error("there is no limit")
	}
	if verdict, _ := l.Claim(1, make([]byte, proto.PasswdBytes), 1, 10_000, begin); verdict != Right || l.Crowded() {
		t.Errorf("%v: a session that is resumed counts", verdict)
	}
	if l.Release(1, 1, begin); !l.Crowded() {
		t.Error("a session that is left again does not count")
	}
	if l.Remove(1); l.Crowded() {
		t.Error("a session that has ended counts")
	}
	if l.Expire(begin.Add(time.Minute)); l.idle != 0 || l.Len() != 0 {
		t.Errorf("%d of %d sessions are idle after all have expired", l.idle, l.Len())
	}
}

// On a read-only server a session may live that others opened later than what this server knows,
// also if a restore has moved the epoch to where local sessions have their bit, or beyond the bits
// that a session's id has.
func TestJudgeReadOnly(t *testing.T) {
	local := LocalID(3, [7]byte{0, 0, 0, 0, 0, 48, 57})
	if local != 3<<56|localBit|12345 {
		t.Fatalf("the id of a local session is %v", local)
	}
	id := func(zxid proto.Zxid) proto.SessionID {
		return proto.SessionID(2)<<56 | proto.SessionID(zxid)&(1<<56-1)
	}
	zxid := func(epoch, counter proto.Zxid) proto.Zxid { return epoch<<32 | counter }
	for _, c := range []struct {
		name string
		last proto.Zxid
		id   proto.SessionID
		want Verdict
	}{
		{"later", zxid(5, 9), id(zxid(5, 10)), Unanswered},
		{"of a later epoch", zxid(5, 9), id(zxid(6, 1)), Unanswered},
		{"earlier, and not in the tree", zxid(5, 9), id(zxid(5, 8)), Refused},
		{"the last", zxid(5, 9), id(zxid(5, 9)), Refused},
		{"local, of another server", zxid(5, 9), local, Refused},
		{"later, of epochs with the bit", zxid(1<<23+5, 9), id(zxid(1<<23+6, 1)), Unanswered},
		{"earlier, of epochs with the bit", zxid(1<<23+5, 9), id(zxid(1<<23+4, 1)), Refused},
		{"later, of an epoch that wraps", zxid(1<<24-1, 9), id(zxid(1<<24, 1)), Unanswered},
		{"later, after a wrap", zxid(1<<24+1, 9), id(zxid(1<<24+2, 1)), Unanswered},
	} {
		if got := JudgeReadOnly(c.id, c.last, false); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
		if got := JudgeReadOnly(c.id, c.last, true); got != Unanswered {
			t.Errorf("%s, and lives: %v", c.name, got)
		}
	}
}

// localsModel says what a Locals should hold. A connection is a number.
type localsModel struct {
	tick     time.Duration
	now      time.Time
	jumped   time.Time
	heard    []time.Time // of each connection; there is no connection 0
	locals   *Locals[int]
	sessions map[proto.SessionID]*localModel
}

type localModel struct {
	Local[int]
	heard time.Time // as far as the table knows, moved by the time that was lost
}

func (s *localModel) hear(at time.Time) { s.heard = later(s.heard, at) }

func (m *localsModel) connect() int {
	m.heard = append(m.heard, m.now)
	return len(m.heard) - 1
}

// expire compares the sessions that expire with those that may and those that must.
func (m *localsModel) expire(t *rapid.T) {
	expired := m.locals.Expire(m.now)
	for id, s := range m.sessions {
		if s.Conn != 0 {
			s.hear(m.heard[s.Conn])
		}
		over := s.heard.Add(time.Duration(s.TimeoutMs) * time.Millisecond)
		c, got := expired[id]
		switch {
		case got && s.upgrading:
			t.Fatalf("session %v expires while it upgrades", id)
		case got && m.now.Before(over):
			t.Fatalf("session %v expires %v early", id, over.Sub(m.now))
		case got && c != s.Conn:
			t.Fatalf("session %v expires with connection %d, its connection is %d", id, c, s.Conn)
		case !got && !s.upgrading && !m.now.Before(over.Add(m.tick)):
			t.Fatalf("session %v has not expired %v after its timeout", id, m.now.Sub(over))
		}
		if got {
			delete(m.sessions, id)
			delete(expired, id)
		}
	}
	if len(expired) != 0 {
		t.Fatalf("sessions that are not known expire: %v", expired)
	}
}

// check compares the table with the model.
func (m *localsModel) check(t *rapid.T) {
	idle := 0
	for id, s := range m.sessions {
		if got, known := m.locals.Get(id); !known || got != s.Local {
			t.Fatalf("session %v: %+v, known %v, want %+v", id, got, known, s.Local)
		}
		if s.Conn == 0 {
			idle++
		}
	}
	if m.locals.Len() != len(m.sessions) || m.locals.idle != idle {
		t.Fatalf("%d sessions, %d idle, want %d, %d", m.locals.Len(), m.locals.idle, len(m.sessions), idle)
	}
}

// A local session moves only to a client with its password, ends only for its connection, neither
// moves nor ends while it becomes global, and expires when its client was silent for its timeout,
// at most a tick late.
func TestLocals_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tick := time.Duration(rapid.Int64Range(8, 2000).Draw(t, "tick_ms")) * time.Millisecond
		m := &localsModel{tick: tick, now: begin, heard: make([]time.Time, 1), sessions: make(map[proto.SessionID]*localModel)}
		m.locals = NewLocals(tick, func(c int, _ time.Time) time.Time { return m.heard[c] })
		draw := func(t *rapid.T) (proto.SessionID, *localModel) {
			id := proto.SessionID(rapid.Int64Range(1, 4).Draw(t, "id"))
			return id, m.sessions[id]
		}
		timeout := func(t *rapid.T) int32 { return int32(rapid.Int64Range(1, 8).Draw(t, "ticks") * tick.Milliseconds()) }
		// its returns the connection of a session, or another one.
		its := func(t *rapid.T, s *localModel) (c int, right bool) {
			c = rapid.IntRange(1, max(1, len(m.heard)-1)).Draw(t, "connection")
			if s != nil && s.Conn != 0 && rapid.Bool().Draw(t, "its own") {
				c = s.Conn
			}
			return c, s != nil && s.Conn == c
		}
		t.Repeat(map[string]func(*rapid.T){
			"": m.check,
			"add": func(t *rapid.T) {
				id, s := draw(t)
				e := Local[int]{Passwd: [proto.PasswdBytes]byte{byte(id)}, TimeoutMs: timeout(t), Conn: m.connect()}
				if added := m.locals.Add(id, e, m.now); added != (s == nil) {
					t.Fatalf("session %v is added: %v, and was known: %v", id, added, s != nil)
				}
				if s == nil {
					m.sessions[id] = &localModel{e, later(m.now, m.jumped)}
				}
			},
			"claim": func(t *rapid.T) {
				id, s := draw(t)
				passwd, right := make([]byte, proto.PasswdBytes), rapid.Bool().Draw(t, "right")
				if right {
					passwd[0] = byte(id)
				}
				c, ms, want, wantOld := m.connect(), timeout(t), Right, 0
				switch {
				case s == nil:
					want = Unknown
				case !right:
					want = Refused
				case s.upgrading:
					want = Unanswered
				default:
					wantOld, s.Conn, s.TimeoutMs = s.Conn, c, ms
					s.hear(later(m.now, m.jumped))
				}
				if got, old := m.locals.Claim(id, passwd, c, ms, m.now); got != want || old != wantOld {
					t.Fatalf("claim: %v, previous connection %d, want %v, %d", got, old, want, wantOld)
				}
			},
			"hear": func(*rapid.T) { m.heard[len(m.heard)-1] = m.now },
			"release": func(t *rapid.T) {
				id, s := draw(t)
				c, right := its(t, s)
				if right {
					s.Conn = 0
					s.hear(m.heard[c])
				}
				m.locals.Release(id, c, m.now)
			},
			"upgrade": func(t *rapid.T) {
				id, s := draw(t)
				c, right := its(t, s)
				if right {
					s.upgrading = true
				}
				if got, ok := m.locals.Upgrade(id, c); ok != right || ok && got != s.Local {
					t.Fatalf("upgrade: %v, %+v, want %v", ok, got, right)
				}
			},
			"upgraded": func(t *rapid.T) {
				if id, s := draw(t); s != nil && s.upgrading {
					stays := rapid.Bool().Draw(t, "stays local")
					if s.upgrading = false; !stays {
						delete(m.sessions, id)
					}
					m.locals.Upgraded(id, stays)
				}
			},
			"remove": func(t *rapid.T) {
				id, s := draw(t)
				c, known, upgrading := m.locals.Remove(id)
				if known != (s != nil) || upgrading != (known && s.upgrading) || known && !upgrading && c != s.Conn {
					t.Fatalf("remove: connection %d, known %v, upgrading %v", c, known, upgrading)
				}
				if !upgrading {
					delete(m.sessions, id)
				}
			},
			"end": func(t *rapid.T) {
				id, s := draw(t)
				c, right := its(t, s)
				if got := m.locals.End(id, c); got != right {
					t.Fatalf("session %v ends: %v", id, got)
				}
				if right {
					delete(m.sessions, id)
				}
			},
			"expire": m.expire,
			"time passes": func(t *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.Int64Range(0, 4*int64(tick)).Draw(t, "time")))
			},
			"stand still": func(t *rapid.T) {
				lost := time.Duration(rapid.Int64Range(0, 8*int64(tick)).Draw(t, "lost"))
				m.now = m.now.Add(lost)
				m.locals.GiveBack(lost, m.now)
				for _, s := range m.sessions {
					s.hear(earlier(s.heard.Add(lost), m.now))
				}
			},
			"jump": func(t *rapid.T) {
				id, s := draw(t)
				ids := rapid.SampledFrom([][]int64{nil, {}, {int64(id)}}).Draw(t, "heard")
				m.locals.Jump(func() (time.Time, []int64) {
					m.now = m.now.Add(time.Hour)
					return m.now, ids
				})
				m.jumped = m.now
				for _, other := range m.sessions {
					if other == s && len(ids) > 0 || ids == nil && other.Conn != 0 {
						other.hear(m.now)
					}
				}
			},
			"clear": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "rarely") == 0 {
					m.locals.Clear()
					clear(m.sessions)
				}
			},
		})
	})
}

// A claim needs the whole password of the session.
func TestLocals_Passwords(t *testing.T) {
	l := NewLocals(time.Second, func(int, time.Time) time.Time { return begin })
	s := Local[int]{Conn: 1, TimeoutMs: 10_000, Passwd: [proto.PasswdBytes]byte{1, 2, proto.PasswdBytes - 1: 3}}
	l.Add(7, s, begin)
	zeros, right := make([]byte, proto.PasswdBytes), s.Passwd[:]
	last := append([]byte{}, right...)
	last[proto.PasswdBytes-1]++
	for _, passwd := range [][]byte{nil, {}, zeros, right[:1], right[:proto.PasswdBytes-1], append(right[:proto.PasswdBytes:proto.PasswdBytes], 0), last} {
		if verdict, old := l.Claim(7, passwd, 2, 10_000, begin); verdict != Refused || old != 0 {
			t.Errorf("the password %x, not %x: %v, and the connection %d is to be closed", passwd, right, verdict, old)
		}
	}
	if verdict, old := l.Claim(7, right, 2, 10_000, begin); verdict != Right || old != 1 {
		t.Errorf("the right password: %v, %d", verdict, old)
	}
}
