package consensus

import (
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

// Counts is what a node has counted since Open. It rises only.
type Counts struct {
	Leaders     int64 // how often another leader was there, or the same one again
	Proposed    int64 // leading: requests that went into an entry
	Resent      int64 // requests of this member that went out once more, because what became of them was not known
	Checkpoints int64 // leading: checkpoints that went to other members
	CaughtUp    int64 // leading: how often another member came into step by the log alone
}

// Reign is what it took until this member could work under a leader.
type Reign struct {
	Leading, Voter bool
	Searched       time.Duration // until the leader was known. 0: it followed on another at once
	CaughtUp       time.Duration // from then until its first entry was applied here
	Unavailable    time.Duration // since that was so of a leader before. 0: there was none
}

// reigns follows who leads, by the runtime's clock. What it knows is zero at the start.
type reigns struct {
	searching time.Time // since when no leader is known; zero: one is
	known     time.Time // since when the leader is
	current   bool
	lost      time.Time // since when this member is not current; zero: it never was
	searched  time.Duration
}

// look takes a new view of who leads, and tells when this member can work under another leader.
func (r *reigns) look(old, s *Status, now time.Time) (reign Reign, begun bool, leaders int64) {
	if r.searching.IsZero() && r.known.IsZero() {
		r.searching = now
	}
	switch {
	case s.Leader == 0 && old.Leader != 0:
		r.searching = now
	case s.Leader != 0 && s.Leader != old.Leader:
		leaders = 1
		r.known, r.searched = now, 0
		if !r.searching.IsZero() {
			r.searched = now.Sub(r.searching)
		}
		r.searching = time.Time{}
	}
	switch {
	case r.current && !s.Current:
		r.current, r.lost = false, now
	case s.Current && !r.current:
		r.current = true
		reign = Reign{Leading: s.Leading, Voter: s.Voter, Searched: r.searched, CaughtUp: now.Sub(r.known)}
		if !r.lost.IsZero() {
			reign.Unavailable = now.Sub(r.lost)
		}
		return reign, true, leaders
	}
	return Reign{}, false, leaders
}

// stages knows when entries, and the requests of this member, came to where they are. Times are Config.Now's.
type stages struct {
	incarnation uint64
	forwarded   marks // by number in this member's stream: sent to the leader
	came        marks // by index: made here into an entry, or sent by the leader
	synced      marks // by index: in this member's log
}

// sent notes what the core wants done: entries of its own, requests that go to the leader.
func (s *stages) sent(out *output, c *core, now time.Time) {
	if s.incarnation != c.own.incarnation {
		s.incarnation = c.own.incarnation
		s.forwarded.clear()
	}
	for i := range out.messages {
		if g := out.messages[i].forward; g != nil {
			s.forwarded.first(g.last(), now)
		}
	}
	for _, m := range out.appends {
		if e := m.GetEntries(); len(e) > 0 {
			s.came.latest(e[len(e)-1].GetIndex(), now)
		}
	}
}

// written notes what is in the log.
func (s *stages) written(m *raftpb.Message, at time.Time) {
	if m.GetType() == raftpb.MsgStorageAppendResp && m.GetIndex() > 0 {
		s.synced.latest(m.GetIndex(), at)
	}
}

// stamp writes into the batches what is known of their way.
func (s *stages) stamp(out *output) {
	for i := range out.batches {
		b := &out.batches[i]
		b.Synced = s.synced.at(b.Index)
		b.Came = s.came.at(b.Index)
		if out.own[i] == 0 {
			continue
		}
		if b.Proposed = s.forwarded.at(out.own[i]); b.Proposed.IsZero() {
			b.Proposed = b.Came
		}
	}
}

// marks say when numbers that rise were reached. What is below a number that was asked for is forgotten.
type marks struct {
	list []mark
	from int // of list: those before were forgotten
}

type mark struct {
	upTo uint64
	at   time.Time
}

// latest notes that all up to a number is there. A number that was there before is there once more, and those above it are not any longer.
func (m *marks) latest(upTo uint64, at time.Time) {
	for len(m.list) > m.from && m.list[len(m.list)-1].upTo >= upTo {
		m.list = m.list[:len(m.list)-1]
	}
	m.push(upTo, at)
}

// first notes that all up to a number is there, unless it was there before.
func (m *marks) first(upTo uint64, at time.Time) {
	if len(m.list) == m.from || m.list[len(m.list)-1].upTo < upTo {
		m.push(upTo, at)
	}
}

func (m *marks) push(upTo uint64, at time.Time) {
	if m.from > 16 && 2*m.from > len(m.list) {
		m.list, m.from = m.list[:copy(m.list, m.list[m.from:])], 0
	}
	m.list = append(m.list, mark{upTo, at})
}

// at returns when the number was reached, or zero.
func (m *marks) at(number uint64) time.Time {
	for m.from < len(m.list) && m.list[m.from].upTo < number {
		m.from++
	}
	if m.from == len(m.list) {
		return time.Time{}
	}
	return m.list[m.from].at
}

func (m *marks) clear() { m.list, m.from = m.list[:0], 0 }
