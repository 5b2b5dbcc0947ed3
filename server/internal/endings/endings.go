// Package endings keeps the stories of ended sessions: the facts that this server knew about each
// session, and the incidents on this server at that time. The verdict about a story is a method of
// facts.EndedSession. Times are passed in: now is read from the clock of sessions, which may jump,
// mono from a clock that does not jump.
package endings

import (
	"cmp"
	"crypto/subtle"
	"slices"
	"sync"
	"time"

	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/facts"
)

const (
	maxEnded     = 10_000
	maxRefused   = 1000
	maxLive      = 10_000   // live sessions with facts that the state lacks
	maxIncidents = 100      // of this server
	maxPaths     = 4 << 20  // bytes of all paths of ephemerals
	maxOnePaths  = 32 << 10 // of one session
	// minStep is the least step of a clock that counts as an incident: a pass may be interrupted
	// between its readings of two clocks.
	minStep = time.Second
)

// Endings is safe for concurrent use; its lock is a leaf.
type Endings struct {
	own      int           // as facts.EndedSession.Server
	interval time.Duration // between calls of Pass
	tick     time.Duration

	mu        sync.Mutex // guards the rest
	live      map[proto.SessionID]*life
	ended     []facts.EndedSession      // the oldest first
	ids       []proto.SessionID         // of the same sessions; 0: nobody may learn why one ended
	secrets   [][proto.PasswdBytes]byte // of the same sessions
	refused   []facts.EndedSession      // the same
	paths     int                       // bytes of the paths in ended
	incidents []incident                // in the order of their ends
	last      struct{ now, wall, mono time.Time }
	leader    uint64
	since     time.Time // when leader changed
}

// life has the facts about a live session that the replicated state lacks.
type life struct {
	moves, server int
	client        *facts.EndedClient // of the last connection, which ended at left
	left          time.Time
	asked         bool // an administrator ends the session
	away          facts.Incident
	awayAt        time.Time
}

type incident struct {
	kind        string
	from, until time.Time // by the clock of sessions
	why         string
}

// New returns the Endings of the server with that member id, or of the only server.
func New(member uint8, alone bool, tick, interval time.Duration) *Endings {
	e := &Endings{
		own: int(memberid.Number(member)), tick: tick, interval: interval, live: make(map[proto.SessionID]*life),
	}
	if alone {
		e.own = -1
	}
	return e
}

// Own returns this server's number, or -1 for the only server.
func (e *Endings) Own() int { return e.own }

// of returns the life of a session, and begins one if there is none. e.mu is held.
func (e *Endings) of(id proto.SessionID) *life {
	l := e.live[id]
	if l == nil {
		if len(e.live) >= maxLive {
			for other := range e.live { // any one is forgotten
				delete(e.live, other)
				break
			}
		}
		l = &life{server: int(uint8(id >> 56))} // the server that created it
		e.live[id] = l
	}
	return l
}

// Attached records that the client of a session came back, to the server with that member id.
func (e *Endings) Attached(id proto.SessionID, member uint8) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l, server := e.of(id), int(memberid.Number(member))
	if l.server != server {
		l.moves++
	}
	*l = life{moves: l.moves, server: server}
}

// Left records that the last connection of a session ended, and the facts about that connection.
func (e *Endings) Left(id proto.SessionID, c *facts.EndedClient, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.of(id)
	l.client, l.left = c, now
}

// Asked records that an administrator is about to end a session.
func (e *Endings) Asked(id proto.SessionID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.of(id).asked = true
}

// TurnedAway records that this server closed a connection of a session without an answer.
func (e *Endings) TurnedAway(id proto.SessionID, why string, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.of(id)
	l.away = facts.Incident{Server: e.own, Kind: facts.TurnedAway, Times: l.away.Times + 1, Why: why}
	l.awayAt = now
}

// Refused records that this server told a client its session is over. known: the session lives.
func (e *Endings) Refused(id proto.SessionID, client string, known bool, now time.Time) {
	s := facts.EndedSession{
		Session: id.String(), EndedMs: now.UnixMilli(), How: facts.Over,
		Decider: e.own, Server: e.own, Tellers: []int{e.own}, Client: &facts.EndedClient{Address: client},
	}
	if known {
		s.How = facts.WrongPassword
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.refused = append(e.refused, s); len(e.refused) > maxRefused {
		e.refused = slices.Delete(e.refused, 0, maxRefused/10)
	}
}

// Ended completes, keeps and returns the story of a session that ended. s has the facts from the
// state and from an open connection of the session. own: this server decided to end the session.
// passwd is the secret of the session; nil: there is none. The story lacks the verdict, because
// Apply calls Ended, and few stories are ever read.
func (e *Endings) Ended(
	id proto.SessionID, passwd []byte, s facts.EndedSession, own bool, now, mono time.Time,
) facts.EndedSession {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := cmp.Or(e.live[id], new(life))
	delete(e.live, id)
	s.Session, s.Tellers, s.Moves = id.String(), []int{e.own}, l.moves
	if s.Client == nil && l.client != nil {
		ago := now.Sub(l.left).Milliseconds()
		l.client.ClosedMs += ago
		l.client.SilentMs += ago
		s.Client = l.client
	}
	if s.Client != nil {
		s.UnseenMs, s.TimeoutMs = 0, s.Client.TimeoutMs
	}
	if s.How == facts.Expired {
		switch {
		case own && l.asked:
			s.Reason = facts.ByAdministrator
		case own:
			s.Reason = facts.BySilence
		}
		e.tell(&s, l, now, mono)
	}
	size := 0
	for i, path := range s.Ephemerals {
		if size += len(path); size > maxOnePaths {
			s.Ephemerals, s.MoreEphemerals = slices.Clone(s.Ephemerals[:i]), len(s.Ephemerals)-i
			size -= len(path)
			break
		}
	}
	var secret [proto.PasswdBytes]byte
	if copy(secret[:], passwd) == 0 {
		id = 0
	}
	e.ended, e.ids, e.secrets, e.paths = append(e.ended, s), append(e.ids, id), append(e.secrets, secret), e.paths+size
	for len(e.ended) > maxEnded || e.paths > maxPaths {
		for _, path := range e.ended[0].Ephemerals {
			e.paths -= len(path)
		}
		e.ended[0] = facts.EndedSession{}
		e.ended, e.ids, e.secrets = e.ended[1:], e.ids[1:], e.secrets[1:]
	}
	return s
}

// Told returns the story of a session that ended, for a client that has its password; nil: the
// client is not told. The caller owns the story, which has no paths of ephemerals, because it is to
// be short.
func (e *Endings) Told(id proto.SessionID, passwd []byte) *facts.EndedSession {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := slices.Index(e.ids, id)
	if id == 0 || at < 0 || subtle.ConstantTimeCompare(e.secrets[at][:], passwd) != 1 {
		return nil
	}
	s := e.ended[at]
	s.Ephemerals, s.MoreEphemerals = nil, len(s.Ephemerals)+s.MoreEphemerals
	s.Cause, s.Story = s.Verdict()
	return &s
}

// tell adds the incidents on this server within the last timeout of a session. e.mu is held.
func (e *Endings) tell(s *facts.EndedSession, l *life, now, mono time.Time) {
	late := mono.Sub(e.last.mono) - e.interval // a pause that no pass has noticed yet
	if !e.last.mono.IsZero() && late >= e.interval {
		e.note(facts.Pause, now.Add(-late), now, "")
	}
	window := time.Duration(s.TimeoutMs)*time.Millisecond + 2*e.tick // then the leader ends it
	if s.Client != nil {
		window = max(window, time.Duration(s.Client.SilentMs)*time.Millisecond)
	}
	begin := now.Add(-window)
	if !l.awayAt.Before(begin) {
		l.away.AgoMs = now.Sub(l.awayAt).Milliseconds()
		s.Incidents = append(s.Incidents, l.away)
	}
	for _, i := range e.incidents {
		if !i.until.Before(begin) {
			s.Incidents = append(s.Incidents, facts.Incident{
				Server: e.own, Kind: i.kind, Why: i.why,
				AgoMs: now.Sub(i.from).Milliseconds(), Ms: i.until.Sub(i.from).Milliseconds(),
			})
		}
	}
}

// Note records an incident on this server.
func (e *Endings) Note(kind string, from, until time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.note(kind, from, until, "")
}

// note is Note with e.mu held. Overlapping incidents of a kind are one incident.
func (e *Endings) note(kind string, from, until time.Time, why string) {
	for n := range e.incidents {
		i := &e.incidents[n]
		if i.kind == kind && kind != facts.ClockMoved && !from.After(i.until) && !until.Before(i.from) {
			if from.Before(i.from) {
				i.from = from
			}
			if until.After(i.until) {
				i.until = until
			}
			return
		}
	}
	if len(e.incidents) == maxIncidents {
		e.incidents = slices.Delete(e.incidents, 0, 1)
	}
	e.incidents = append(e.incidents, incident{kind, from, until, why})
}

// Pass records a pass of the loop of sessions, and by how much the pass was late. wall is now as
// the system's wall clock shows it.
func (e *Endings) Pass(lost time.Duration, now, wall, mono time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	last := e.last
	e.last.now, e.last.wall, e.last.mono = now, wall, mono
	if last.mono.IsZero() {
		return
	}
	if lost >= e.interval {
		e.note(facts.Pause, now.Add(-lost), now, "")
	}
	took := mono.Sub(last.mono)
	counted, shown := now.Sub(last.now)-took, wall.Sub(last.wall)-took
	switch {
	case counted > minStep:
		e.note(facts.ClockMoved, now.Add(-counted), now, "")
	case shown.Abs() > minStep:
		e.note(facts.ClockStepped, now, now, "by "+shown.Round(time.Millisecond).String())
	}
}

// Moved records that the program moves the clock of sessions ahead, between passes.
func (e *Endings) Moved(from, until time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if until.After(from) {
		e.note(facts.ClockMoved, from, until, "")
	}
	by := until.Sub(from) // so that the next pass finds nothing
	e.last.now, e.last.wall = e.last.now.Add(by), e.last.wall.Add(by)
}

// Led records the leader that this server knows; 0: none.
func (e *Endings) Led(leader uint64, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if leader == e.leader {
		return
	}
	switch {
	case e.since.IsZero():
	case e.leader == 0:
		e.note(facts.NoLeader, e.since, now, "")
	case leader != 0:
		e.note(facts.NewLeader, now, now, "")
	}
	e.leader, e.since = leader, now
}

// List returns the stories for which keep returns true, the newest first, at most limit. keep gets
// stories without Cause and Story. The caller owns the result, and changes no field of a field.
func (e *Endings) List(keep func(*facts.EndedSession) bool, limit int) (found []facts.EndedSession) {
	e.mu.Lock()
	ended, refused := slices.Clone(e.ended), slices.Clone(e.refused) // keep may take long
	e.mu.Unlock()
	a, b := len(ended)-1, len(refused)-1
	for (a >= 0 || b >= 0) && len(found) < limit {
		var s *facts.EndedSession
		if b < 0 || a >= 0 && ended[a].EndedMs >= refused[b].EndedMs {
			s, a = &ended[a], a-1
		} else {
			s, b = &refused[b], b-1
		}
		if keep(s) {
			s.Cause, s.Story = s.Verdict()
			found = append(found, *s)
		}
	}
	return found
}
