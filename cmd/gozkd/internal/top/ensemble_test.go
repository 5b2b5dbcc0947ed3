package top

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/probe"
	"github.com/gozkd/gozkd/server/facts"
)

// told returns an ensemble that has a sample of each fake at each of the given seconds.
func told(fakes []*fake, between func(), seconds ...float64) *ensemble {
	e := new(ensemble)
	for i, at := range seconds {
		if i > 0 && between != nil {
			between()
		}
		for _, f := range fakes {
			e.observe(Report{Sample: f.sample(at), Roster: rosterOf(fakes)})
		}
	}
	return e
}

func TestEnsemble_Totals(t *testing.T) {
	leader, follower, down := newFake(1, facts.Leader), newFake(2, facts.Follower), newFake(3, facts.Follower)
	down.err = errors.New("connection refused")
	e := told([]*fake{leader, follower, down}, func() {
		leader.work(1000)
		follower.work(500)
	}, 0, 1)
	got := e.totals()
	if got.up != 2 || got.rates.Requests != 1500 || got.rates.Reads != 1350 || got.rates.Writes != 150 || got.rates.LatencyMs != 0.2 ||
		got.connections != 2 || got.watches != 24 || got.znodes != 2137 || got.dataBytes != 240483 {
		t.Errorf("%+v", got)
	}
	leader.received = 0 // its own rate is unknown now, the other one is known
	leader.asked, follower.asked = leader.asked+4, follower.asked+4
	follower.received += 100
	for _, f := range []*fake{leader, follower} {
		e.observe(Report{Sample: f.sample(2), Roster: e.roster()})
	}
	if got := e.totals(); got.rates.Requests != 100 {
		t.Errorf("%+v", got.rates)
	}
}

func (e *ensemble) roster() []Entry {
	var list []Entry
	for _, m := range e.members {
		list = append(list, m.Entry)
	}
	return list
}

func TestEnsemble_Lag(t *testing.T) {
	leader, follower := newFake(1, facts.Leader), newFake(2, facts.Follower)
	leader.lag = map[uint64]int64{2: 7}
	leader.zxid += 40
	for _, c := range []struct {
		name   string
		change func()
		want   lag
	}{
		{"as the leader says", func() {}, lag{n: 7, known: true}},
		{"also of who is down", func() { follower.err = errors.New("connection refused") }, lag{n: 7, known: true}},
		{"a leader of ours that does not know", func() { follower.err, leader.lag = nil, nil }, lag{}},
		{"by zxid, where there is no mntr", func() { leader.only = true }, lag{n: 40, known: true, estimated: true}},
		{"ZooKeeper does not tell either", func() { leader.only, leader.version = false, "3.9.5-293c" }, lag{n: 40, known: true, estimated: true}},
		{"read a moment later", func() { follower.zxid += 50 }, lag{n: 0, known: true, estimated: true}},
		{"another epoch", func() { follower.zxid = 0x200000001 }, lag{}},
		{"no leader", func() { leader.mode = facts.Follower }, lag{}},
	} {
		c.change()
		e := told([]*fake{leader, follower}, nil, 0)
		if got := e.lag(e.members[1]); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
		if got := e.lag(e.members[0]); c.name != "no leader" && got != (lag{}) {
			t.Errorf("%s: that of the leader is %+v", c.name, got)
		}
	}
}

func TestEnsemble_Problems(t *testing.T) {
	for _, c := range []struct {
		modes []string // "" is down
		want  string
	}{
		{[]string{"leader", "follower", ""}, ""},
		{[]string{"standalone"}, ""},
		{[]string{"", "", ""}, "no leader: writes are not possible"},
		{[]string{"follower", "follower", ""}, "no leader: writes are not possible"},
		{[]string{"leader", "leader", "follower"}, "2 members claim to lead: 10.0.0.1:2181, 10.0.0.2:2181"},
		{[]string{"leader", "standalone"}, "standalone, not in one ensemble with the others: 10.0.0.2:2181"},
		{[]string{"read-only", "", ""}, "no leader: writes are not possible|10.0.0.1:2181: serves only reads: it is not part of a quorum"},
	} {
		var fakes []*fake
		for i, mode := range c.modes {
			f := newFake(uint64(i+1), mode)
			if mode == "" {
				f.err = errors.New("connection refused")
			}
			fakes = append(fakes, f)
		}
		if got := strings.Join(told(fakes, nil, 0).problems(), "|"); got != c.want {
			t.Errorf("%q: %q, want %q", c.modes, got, c.want)
		}
		e := told(fakes, nil, 0)
		e.members[0].last.State.Outside, e.members[0].last.State.Certificates = "it was removed", "a.pem ends"
		for _, want := range []string{"10.0.0.1:2181: it was removed", "10.0.0.1:2181: a.pem ends"} {
			if got := strings.Join(e.problems(), "|"); strings.Contains(got, want) != (c.modes[0] != "") {
				t.Errorf("%q: %q", c.modes, got)
			}
		}
		half := new(ensemble)
		half.observe(Report{Sample: fakes[0].sample(0), Roster: append(rosterOf(fakes), Entry{Address: "late:1"})})
		if got := half.problems(); len(got) > 0 && c.modes[0] != "read-only" {
			t.Errorf("%q: before all were asked: %q", c.modes, got)
		}
	}
}

// A member that cannot be asked counts as the others see it.
func TestEnsemble_Unasked(t *testing.T) {
	asked := newFake(1, facts.Follower)
	hidden := &fake{Entry: Entry{Address: "server.2 h:?", ID: 2}, err: errUnknownPort}
	for _, c := range []struct {
		name, mode, mntr, role, title, problems string
	}{
		{"nothing is known", "follower", "", "unknown", "1 of 2 up, 1 unknown  leader unknown", "which member leads is unknown: name all with -server"},
		{"it leads", "follower", "gozkd_leader_id 2 gozkd_term 3 gozkd_peer_2_connected 1", "leader", "2 of 2 up  leader 2", ""},
		{"in step", "leader", "gozkd_leader_id 1 gozkd_term 3 gozkd_peer_2_connected 1 gozkd_peer_2_in_step 1", "in step", "2 of 2 up  leader 1", ""},
		{"not in step", "leader", "gozkd_leader_id 1 gozkd_term 3 gozkd_peer_2_connected 1 gozkd_peer_2_in_step 0", "behind", "1 of 2 up  leader 1", ""},
		{"gone", "leader", "gozkd_leader_id 1 gozkd_term 3 gozkd_peer_2_connected 0", "cut off", "1 of 2 up  leader 1", ""},
	} {
		asked.mode = c.mode
		s := asked.sample(0)
		words := strings.Fields(c.mntr)
		for i := 0; i < len(words); i += 2 {
			s.Monitor[words[i]] = words[i+1]
		}
		e, roster := new(ensemble), rosterOf([]*fake{asked, hidden})
		e.observe(Report{Sample: s, Roster: roster})
		e.observe(Report{Sample: hidden.sample(0), Roster: roster})
		if got, _ := e.members[1].role(e, theme{}); got != c.role {
			t.Errorf("%s: role %q, want %q", c.name, got, c.role)
		}
		if text := e.text(); !strings.HasPrefix(text, "gozkd top  "+c.title+"  epoch") {
			t.Errorf("%s: want %q in\n%s", c.name, c.title, text)
		}
		if got := strings.Join(e.problems(), "|"); got != c.problems {
			t.Errorf("%s: problems %q, want %q", c.name, got, c.problems)
		}
	}
}

// Of two members that claim to lead, the one with the newer epoch counts.
func TestEnsemble_TwoLeaders(t *testing.T) {
	old, young := newFake(1, facts.Leader), newFake(2, facts.Leader)
	young.zxid = 0x200000000
	if e := told([]*fake{old, young}, nil, 0); e.leader().ID != 2 {
		t.Errorf("leader %d", e.leader().ID)
	}
}

func TestEnsemble_Clients(t *testing.T) {
	f := newFake(1, facts.Leader)
	f.clients = []probe.Connection{connection(1), connection(2)}
	rates := func(e *ensemble) []float64 {
		var list []float64
		clients, _ := e.clients()
		for _, c := range clients {
			list = append(list, c.Requests)
		}
		return list
	}
	e := told([]*fake{f}, func() {
		f.work(1000)
		f.clients = append(slices.Clone(f.clients), connection(3))
	}, 0, 2)
	if got := rates(e); got[0] != 250 || got[1] != 250 || !math.IsNaN(got[2]) {
		t.Errorf("the third is new: %v", got)
	}
	f.clients = slices.Clone(f.clients)
	f.clients[0].Received = 1   // crst
	f.clients[1].SinceMs += 500 // the session reconnected from the same port
	e.observe(Report{Sample: f.sample(3), Roster: rosterOf([]*fake{f})})
	if got := rates(e); !math.IsNaN(got[0]) || !math.IsNaN(got[1]) || got[2] != 0 {
		t.Errorf("%v", got)
	}
}

func TestEnsemble_Hot(t *testing.T) {
	a, b := newFake(1, facts.Leader), newFake(2, facts.Follower)
	a.hot = facts.HotSpots{Paths: []facts.HotPath{{Path: "/a", Reads: 5}, {Path: "/b", Writes: 4}}, Clients: []facts.HotClient{{Session: "0x1", Reads: 9}}, Window: 10}
	b.hot = facts.HotSpots{Paths: []facts.HotPath{{Path: "/b", Reads: 3}}, Clients: []facts.HotClient{{Session: "0x2", Reads: 10}}, Window: 4}
	h, missing := told([]*fake{a, b}, nil, 0).hot()
	if len(missing) != 0 || h.Window != 10 || !slices.Equal(h.Paths, []facts.HotPath{{Path: "/b", Reads: 3, Writes: 4}, {Path: "/a", Reads: 5}}) ||
		len(h.Clients) != 2 || h.Clients[0].Session != "0x2" {
		t.Errorf("%+v, %q", h, missing)
	}
	b.only = true
	if _, missing := told([]*fake{a, b}, nil, 0).hot(); len(missing) != 1 || missing[0] != "member 2: not in the whitelist: add hotp to 4lw.commands.whitelist in zoo.cfg" {
		t.Errorf("%q", missing)
	}
}

// When members join and leave, the others keep their state.
func TestEnsemble_Roster(t *testing.T) {
	a, b := newFake(1, facts.Leader), newFake(2, facts.Follower)
	e := told([]*fake{a, b}, nil, 0, 1, 2)
	e.observe(Report{Sample: a.sample(3), Roster: []Entry{a.Entry}})
	e.observe(Report{Sample: b.sample(3), Roster: []Entry{a.Entry}}) // was in flight
	if len(e.members) != 1 || len(e.members[0].trend) != 4 {
		t.Errorf("%+v", e.members)
	}
	for i := range 2 * maxTrend {
		e.observe(Report{Sample: a.sample(float64(4 + i)), Roster: []Entry{a.Entry}})
	}
	if n := len(e.members[0].trend); n != maxTrend {
		t.Errorf("%d rounds are maxTrend", n)
	}
}
