package consensus

import (
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/gozkd/gozkd/consensus/internal/core"
	"github.com/gozkd/gozkd/consensus/internal/turn"
)

// simDecisions counts how the rules were decided that say who forms an ensemble, who is let in, who
// is removed and promoted, and which entries stay in the log. A rule that is never decided one way
// is not tested. What is counted is what members do and could do, seen from outside.
type simDecisions struct {
	formedByAll, formedByMajority, keptFromForming int
	letInAgain, askedInVain                        int // a member of the configuration without its state
	promoted, notPromoted                          int // a learner that shall vote
	removed, stayed                                int // a learner that was not requested
	demoted, voterStayed                           int // a voter that was not requested
	servedByLog, servedByCheckpoint                int // a member that was away
	answered, answeredLate                         int // a read round, by the leader or by an earlier one
}

func (d *simDecisions) counters() []simCounter {
	return []simCounter{
		{"formed by all", &d.formedByAll}, {"formed by a majority", &d.formedByMajority}, {"kept from forming by data", &d.keptFromForming},
		{"let in again", &d.letInAgain}, {"asked in vain", &d.askedInVain},
		{"promoted", &d.promoted}, {"not promoted", &d.notPromoted},
		{"removed", &d.removed}, {"stayed as a learner", &d.stayed},
		{"demoted", &d.demoted}, {"stayed as a voter", &d.voterStayed},
		{"served by the log", &d.servedByLog}, {"served by a checkpoint", &d.servedByCheckpoint},
		{"read rounds answered", &d.answered}, {"by an earlier leader", &d.answeredLate},
	}
}

// few returns the decisions of which there were too few in that many runs.
func (s *simStats) few(runs int) (names []string) {
	counters := append(s.decisions.counters(), simCounter{"restored", &s.rolledBack}, simCounter{"found outdated", &s.outdated})
	for _, c := range counters {
		if 20**c.n < runs { // steered plans have twice as many
			names = append(names, c.name)
		}
	}
	return names
}

// disturb makes a fault likely at the moment when it does most harm: a leader has just proposed to
// remove, to promote or to demote a member. The fault has an end, so it costs no member its data.
func (m *simMember) disturb(id uint64) {
	w := m.w
	if !w.plan.Disturbed || w.calm || w.chance.IntN(2) == 0 {
		return
	}
	other, ms := w.members[id-1], 100+w.chance.Int64N(6000)
	w.after(1+w.chance.Int64N(60), nil, func() {
		switch w.chance.IntN(4) {
		case 0:
			w.kill(m, true, ms)
		case 1:
			w.cutLink(int(m.id-1), int(id-1), ms)
		default: // for long enough to be removed
			w.kill(other, false, 3000+ms)
		}
	})
}

// answerAgain lets some answers to read rounds come once more, late.
func (w *simWorld) answerAgain(msg core.Message, dst *simMember, life int) {
	if w.plan.Disturbed && msg.Raft.GetType() == raftpb.MsgReadIndexResp && w.chance.IntN(10) == 0 {
		msg.Raft = proto.CloneOf(msg.Raft)
		w.at(w.now+w.chance.Int64N(5000), simEvent{kind: evMessage, m: dst, life: dst.life, msg: msg, from: life})
	}
}

// rollBackSoon restores a directory from its copy when that is possible, if that is soon.
func (w *simWorld) rollBackSoon(m *simMember, ms int64, seconds int) {
	if w.plan.Disturbed && seconds > 0 {
		w.after(1000+w.chance.Int64N(1000), nil, func() {
			if !w.calm && !w.rollBack(m, ms) {
				w.rollBackSoon(m, ms, seconds-1)
			}
		})
	}
}

// noteForm notes that a member forms an ensemble.
func (d *simDecisions) noteForm(m *simMember) {
	if len(m.core.Admission.MissingFounders()) == 0 {
		d.formedByAll++
	} else {
		d.formedByMajority++
	}
}

// noteMessage notes the answer to a read round, and a request to be let in of a member of the
// leader's configuration.
func (m *simMember) noteMessage(msg *core.Message) {
	switch d := &m.w.stats.decisions; {
	case msg.Raft.GetType() != raftpb.MsgReadIndexResp:
	case msg.From == m.core.Leader():
		d.answered++
	default:
		d.answeredLate++
	}
	nonce, ok := msg.JoinNonce()
	conf := m.core.Conf()
	if ok && m.core.Leads() && (contains(conf.GetVoters(), msg.From) || contains(conf.GetLearners(), msg.From)) && !m.core.Membership.AdmittedLife(msg.From, nonce) {
		m.asking = msg.From
	}
}

// noteChanges notes the changes of the configuration that a leader proposes.
func (m *simMember) noteChanges(work []turn.LogWork) {
	if !m.core.Leads() {
		return
	}
	d, conf := &m.w.stats.decisions, m.core.Conf()
	for _, item := range work {
		for _, e := range item.Append.GetEntries() {
			var cc raftpb.ConfChangeV2
			if e.GetType() != raftpb.EntryConfChangeV2 || e.GetTerm() != m.core.RaftTerm() || proto.Unmarshal(e.GetData(), &cc) != nil {
				continue
			}
			for _, change := range cc.GetChanges() {
				id := change.GetNodeId()
				m.disturb(id)
				switch typ := change.GetType(); {
				case typ == raftpb.ConfChangeRemoveNode && len(cc.GetContext()) > 0:
					d.letInAgain++
					if m.asking == id {
						m.asking = 0
					}
				case typ == raftpb.ConfChangeRemoveNode:
					d.removed++
				case typ == raftpb.ConfChangeAddNode:
					d.promoted++
				case contains(conf.GetVoters(), id):
					d.demoted++
				}
			}
		}
	}
}

// noteTurn notes, after a turn of a leader, that a request to be let in was in vain.
func (m *simMember) noteTurn() {
	if m.asking != 0 {
		m.w.stats.decisions.askedInVain++
		m.asking = 0
	}
}

// noteTick notes what a leader leaves as it is.
func (m *simMember) noteTick() {
	d, t, conf := &m.w.stats.decisions, m.machine.target, m.core.Conf()
	if m.core.Fresh() {
		if _, with := m.core.Admission.Inventory(); len(with) > 0 {
			d.keptFromForming++
		}
		return
	}
	if !m.core.Leads() || !m.core.Current() || len(t.Voters) == 0 || len(conf.GetVotersOutgoing()) > 0 {
		return
	}
	for _, id := range conf.GetLearners() {
		switch {
		case contains(t.Voters, id):
			d.notPromoted++
		case !contains(t.Learners, id):
			d.stayed++
			if w := m.w; w.plan.Disturbed && !w.calm && w.chance.IntN(30) == 0 {
				w.kill(w.members[id-1], false, 12_000)
			}
		}
	}
	for _, id := range conf.GetVoters() {
		if !contains(t.Voters, id) {
			d.voterStayed++
		}
	}
}

// noteReturn notes how a leader serves a member that comes back.
func (w *simWorld) noteReturn(leader, m *simMember) {
	if !leader.core.Leads() || m.core.Fresh() || m.core.Outdated() != "" {
		return
	}
	last, err := m.storage.LastIndex()
	w.must(err)
	switch d := &w.stats.decisions; {
	case m.needsCheckpoint(leader):
		d.servedByCheckpoint++
	case last < leader.core.Applied():
		d.servedByLog++
	}
}
