package core

import (
	"errors"
	"strings"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
)

func TestLevel_Peers(t *testing.T) {
	old, newer := LevelRange{1, 1}, LevelRange{1, 2}
	for _, c := range []struct {
		name string
		a, b LevelInfo
		want string // in the reason; empty: they talk
	}{
		{"the same version", LevelInfo{newer, 2, 2}, LevelInfo{newer, 2, 2}, ""},
		{"during an upgrade", LevelInfo{newer, 2, 1}, LevelInfo{old, 1, 1}, ""},
		{"one has not applied the change yet", LevelInfo{newer, 2, 2}, LevelInfo{newer, 2, 1}, ""},
		{"no state here", LevelInfo{old, 1, 0}, LevelInfo{newer, 2, 1}, ""},
		{"held back", LevelInfo{newer, 1, 1}, LevelInfo{newer, 2, 2}, ""},
		{"too old", LevelInfo{newer, 2, 2}, LevelInfo{old, 1, 1}, "the ensemble of member 1 has feature level 2, member 2 supports 1: start member 2"},
		{"too old, without state", LevelInfo{newer, 2, 2}, LevelInfo{old, 1, 0}, "member 2 supports 1"},
		{"this one is too old", LevelInfo{old, 1, 1}, LevelInfo{newer, 2, 2}, "the ensemble of member 2 has feature level 2, member 1 supports 1: start member 1"},
		{"too new", LevelInfo{LevelRange{2, 3}, 3, 0}, LevelInfo{newer, 2, 1}, "the ensemble of member 2 has feature level 1, member 1 supports 2 to 3: start member 1"},
	} {
		err := CheckPeers(1, c.a, 2, c.b)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		if other := CheckPeers(2, c.b, 1, c.a); (other == nil) != (err == nil) {
			t.Errorf("%s: the other side says %v", c.name, other)
		}
	}
}

func TestLevel_InfoOfOtherVersions(t *testing.T) {
	want := LevelInfo{LevelRange{1, 3}, 2, 1}
	r := Uvarints{Rest: append(want.Append(nil), "later fields"...)}
	if got := DecodeLevelInfo(&r); got != want || r.Bad || string(r.Rest) != "later fields" {
		t.Errorf("a later version: %+v", got)
	}
	for n := range 4 {
		r = Uvarints{Rest: want.Append(nil)[:n]}
		if DecodeLevelInfo(&r); !r.Bad {
			t.Errorf("%d bytes of an info are accepted", n)
		}
	}
}

// restart starts all members as versions with these levels, and lets them connect and elect.
func (w *world) restart(most ...Level) {
	for i, m := range w.members {
		m.levels = LevelRange{1, most[i]}
		m.start()
	}
	w.net = nil
	for _, m := range w.members {
		w.tell(m)
	}
	w.settle()
}

// tell lets a member tell the others its levels.
func (w *world) tell(m *member) {
	for _, o := range w.members {
		if o != m {
			o.core.Levels.SetPeer(m.id, m.core.Levels.Info())
			o.pump()
		}
	}
}

func (w *world) settle() {
	w.t.Helper()
	w.calm(func() bool {
		l := w.leader()
		if l == nil || !l.core.Current() {
			return false
		}
		for _, m := range w.members {
			if m.applied != l.applied {
				return false
			}
		}
		return true
	})
}

func (w *world) wantLevel(when string, want Level) {
	w.t.Helper()
	w.settle()
	for _, m := range w.members {
		if got := m.core.Levels.Active(); got != want {
			w.t.Fatalf("%s: member %d has level %d, want %d", when, m.id, got, want)
		}
	}
}

func TestLevel_RisesWhenAllMembersAreReady(t *testing.T) {
	w := newWorld(t, 1, 3)
	w.restart(1, 2, 2)
	w.wantLevel("one is older", 1)

	w.restart(3, 2, 3)
	w.wantLevel("all support 2", 2)
	if last := w.log[len(w.log)-1]; last.Level != 2 || len(last.Requests) != 0 {
		t.Errorf("the last batch is %+v", last)
	}

	// A member that is not connected may come back as another version.
	w.restart(3, 3, 3)
	w.wantLevel("all support 3", 3)
}

func TestLevel_WaitsForAMember(t *testing.T) {
	const nobody = "(nobody)"
	for name, hold := range map[string]func(lead *Core, other uint64){
		nobody:                  func(*Core, uint64) {},
		"that is not connected": func(lead *Core, other uint64) { lead.Unreachable(other, false) },
		"that holds it back":    func(lead *Core, other uint64) { lead.Levels.SetPeer(other, LevelInfo{LevelRange{1, 2}, 1, 1}) },
		"that leads":            func(lead *Core, _ uint64) { lead.Levels.SetLimit(1) },
		"that is to be added":   func(lead *Core, _ uint64) { lead.SetTarget(Target{Voters: []uint64{1, 2, 3}, Learners: []uint64{4}}) },
		"that is only a learner": func(lead *Core, _ uint64) {
			lead.conf = &raftpb.ConfState{Voters: []uint64{1, 2, 3}, Learners: []uint64{4}}
		},
		"that is to be let go of": func(lead *Core, _ uint64) {
			lead.conf = &raftpb.ConfState{Voters: []uint64{1, 2, 3}, VotersOutgoing: []uint64{4}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, 3)
			w.restart(1, 1, 1)
			lead := w.leader().core
			lead.Levels.supported.Max = 2
			other := lead.id%3 + 1
			for id := range uint64(3) {
				lead.Levels.SetPeer(id+1, LevelInfo{LevelRange{1, 2}, 2, 1})
			}
			hold(lead, other)
			if err := lead.Levels.propose(w.nowMs, lead.Membership.target); err != nil || lead.Levels.proposed != (name == nobody) {
				t.Fatalf("proposed: %v, %v", lead.Levels.proposed, err)
			}
		})
	}
}

func TestLevel_LimitHoldsItBackUntilItIsRaised(t *testing.T) {
	w := newWorld(t, 1, 3)
	w.restart(1, 1, 1)
	for _, m := range w.members {
		m.core.Levels.supported.Max = 2
		m.core.Levels.SetLimit(1)
		w.tell(m)
	}
	w.wantLevel("all hold it back", 1)
	for i, m := range w.members {
		m.core.Levels.SetLimit(0)
		w.tell(m)
		m.pump()
		if i < 2 {
			w.wantLevel("one still holds it back", 1)
		}
	}
	w.wantLevel("nobody holds it back", 2)
	if info := w.members[0].core.Levels.Info(); info != (LevelInfo{LevelRange{1, 2}, 2, 2}) {
		t.Errorf("%+v", info)
	}
	w.members[0].core.Levels.SetLimit(1) // has no effect any more
	if info := w.members[0].core.Levels.Info(); info.Ready != 2 {
		t.Errorf("below the active level: %+v", info)
	}
}

func TestLevel_SoleMemberRaisesItAtOnce(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.restart(2)
	w.wantLevel("alone", 2)
}

func TestLevel_OlderVersionStops(t *testing.T) {
	w := newWorld(t, 1, 3)
	w.restart(1, 1, 1)
	lead := w.leader()
	if _, err := lead.core.Replay(&raftpb.Entry{Index: new(uint64(9)), Data: appendLevelChange(nil, 1, 2)}); !errors.Is(err, ErrLevel) ||
		!strings.Contains(err.Error(), "entry 9 of the log has level 2, this program supports 1:") {
		t.Errorf("an entry: %v", err)
	}
	meta := lead.core.Meta()
	meta.Level = 2
	if _, err := New(Config{ID: 1, Storage: lead.storage, Meta: meta, Levels: LevelRange{1, 1}, Logger: quiet}); !errors.Is(err, ErrLevel) {
		t.Errorf("a state: %v", err)
	}
	later := meta.Append(nil)
	later[0] = metaVersion + 1
	if _, err := DecodeMeta(withChecksum(later[:len(later)-4])); !errors.Is(err, ErrLevel) || !strings.Contains(err.Error(), "has level 2, and its format 4") {
		t.Errorf("a later format: %v", err)
	}
	if _, err := New(Config{ID: 1, Storage: lead.storage, Meta: lead.core.Meta(), Levels: LevelRange{2, 3}, Logger: quiet}); !errors.Is(err, ErrLevel) {
		t.Errorf("a state that is too old: %v", err)
	}
}

// The level and the time of an entry are read from entries of the right kind only.
func TestLevel_Entries(t *testing.T) {
	change := appendLevelChange(nil, 300, 3)
	for _, tc := range []struct {
		typ    raftpb.EntryType
		data   []byte
		level  Level
		timeMs int64
	}{
		{raftpb.EntryNormal, change, 3, 300},
		{raftpb.EntryConfChangeV2, change, 0, 0},
		{raftpb.EntryNormal, append(change[:len(change):len(change)], 0), 0, 300},
		{raftpb.EntryNormal, change[:len(change)-1], 0, 300},
		{raftpb.EntryNormal, nil, 0, 0},
		{raftpb.EntryNormal, append([]byte{9}, change[1:]...), 0, 0},
		{raftpb.EntryNormal, appendBatchHeader(nil, 300), 0, 300},
		{raftpb.EntryConfChangeV2, appendBatchHeader(nil, 300), 0, 0},
	} {
		e := &raftpb.Entry{Type: &tc.typ, Data: tc.data}
		if EntryLevel(e) != tc.level || EntryTime(e) != tc.timeMs {
			t.Errorf("%v %x: level %d, time %d", tc.typ, tc.data, EntryLevel(e), EntryTime(e))
		}
	}
	for _, b := range [][]byte{nil, change[:2], change[:3]} {
		if ms, l := decodeLevelChange(b); ms != 0 || l != 0 {
			t.Errorf("%x: level %d at %d", b, l, ms)
		}
	}
}

// A member starts with the level of its state, or the lowest that it supports, and is ready for the
// highest that it supports and is allowed. Without a state it claims no level, also when it was let
// in: those that no longer support its lowest level would refuse it.
func TestLevel_AtTheStart(t *testing.T) {
	conf, known := &raftpb.ConfState{}, LevelRange{1, 4}
	for _, tc := range []struct {
		what                   string
		cfg                    Config
		active, ready, claimed Level
	}{
		{"a state", Config{Meta: Meta{Conf: conf, Level: 3}, Levels: known}, 3, 4, 3},
		{"no state", Config{}, SupportedLevels.Min, SupportedLevels.Max, 0},
		{"no state, and a later version", Config{Levels: LevelRange{2, 3}}, 2, 3, 0},
		{"a limit", Config{Meta: Meta{Conf: conf, Level: 2}, Levels: known, LevelLimit: 3}, 2, 3, 2},
		{"a limit below the state", Config{Meta: Meta{Conf: conf, Level: 3}, Levels: known, LevelLimit: 2}, 3, 3, 3},
		{"a limit above all", Config{Meta: Meta{Conf: conf, Level: 2}, Levels: known, LevelLimit: 99}, 2, 4, 2},
	} {
		m := &raftState{conf: conf, applied: 1}
		if tc.cfg.Meta.Conf == nil {
			m.applied, m.fresh = 0, true
		}
		l, err := newLevels(m, &tc.cfg)
		if err != nil || l.Active() != tc.active || l.Info().Ready != tc.ready || l.Info().Active != tc.claimed || !l.checkDue {
			t.Errorf("%s: %+v, %v", tc.what, l.Info(), err)
		}
		if m.fresh = false; l.Info().Active != tc.claimed {
			t.Errorf("%s: let in, the member claims level %d", tc.what, l.Info().Active)
		}
		if l.installed(tc.active - 1); l.Active() != tc.active {
			t.Errorf("%s: a checkpoint lowers the level to %d", tc.what, l.Active())
		}
		l.checkDue = false
		if l.installed(tc.active + 1); l.Active() != tc.active+1 || !l.checkDue {
			t.Errorf("%s: a checkpoint raises the level to %d", tc.what, l.Active())
		}
	}
	r := LevelRange{2, 3}
	for l, want := range map[Level]bool{1: false, 2: true, 3: true, 4: false} {
		if err := r.Check(l, "it"); r.Has(l) != want || (err == nil) != want {
			t.Errorf("%v has %d: %v, %v", r, l, r.Has(l), err)
		}
	}
	if r.String() != "2 to 3" || (LevelRange{2, 2}).String() != "2" {
		t.Errorf("%v, %v", r, LevelRange{2, 2})
	}
}

// A leader looks at the levels again only when something has changed, and proposes a level once.
func TestLevel_ProposesOnce(t *testing.T) {
	l, others := newLeader(t, 3, 0)
	for _, tc := range []struct {
		what          string
		do            func(v *Levels)
		proposed, due bool
	}{
		{"all are ready", func(*Levels) {}, true, false},
		{"it did not change", func(v *Levels) { v.checkDue = false }, false, false},
		{"it is proposed", func(v *Levels) { v.proposed = true }, true, true},
		{"one is not ready", func(v *Levels) { v.peers[others[0]] = LevelInfo{Ready: 1} }, false, false},
		{"it is ready for the present level", func(v *Levels) { v.limit = 1 }, false, false},
		{"it was proposed, and leadership was lost", func(v *Levels) { v.proposed, v.checkDue = true, false; v.leadershipChanged() }, true, false},
		{"an earlier proposal is applied", func(v *Levels) {
			v.proposed, v.checkDue = true, false
			_, err := v.apply(&raftpb.Entry{Data: appendLevelChange(nil, 1, 1)})
			if err != nil {
				t.Error(err)
			}
		}, true, false},
		{"the limit is raised", func(v *Levels) { v.checkDue = false; v.SetLimit(2) }, true, false},
		{"leadership is handed over", func(v *Levels) { v.raft.TransferLeader(others[0]) }, false, true},
	} {
		v := l.core.Levels
		v.active, v.proposed, v.checkDue, v.limit = 1, false, true, 0
		for _, id := range others {
			v.peers[id] = LevelInfo{Ready: 2}
		}
		tc.do(v)
		if err := v.propose(1, Target{}); err != nil || v.proposed != tc.proposed || v.checkDue != tc.due {
			t.Errorf("%s: proposed %v, looks again %v, %v", tc.what, v.proposed, v.checkDue, err)
		}
	}
}
