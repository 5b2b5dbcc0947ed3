package facts_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/server/facts"
)

// expired returns the story of a session that its servers know well, after change.
func expired(change func(e *facts.EndedSession)) facts.EndedSession {
	e := facts.EndedSession{
		Session: "0x10", EndedMs: 0, Zxid: "0x1", How: facts.Expired, Reason: facts.BySilence, TimeoutMs: 6000, Decider: 1, Server: 2,
		Tellers: []int{1, 2},
		Client:  &facts.EndedClient{Address: "h:1", SilentMs: 6000, LongestMs: 2000, Pings: 9, PingEveryMs: 2000, Open: true},
	}
	change(&e)
	return e
}

func closed(by, why string) func(e *facts.EndedSession) {
	return func(e *facts.EndedSession) {
		e.Client.Open, e.Client.ClosedBy, e.Client.Why, e.Client.ClosedMs = false, by, why, 5000
	}
}

func incident(server int, kind string, agoMs, ms int64) func(e *facts.EndedSession) {
	return func(e *facts.EndedSession) {
		e.Incidents = append(e.Incidents, facts.Incident{Server: server, Kind: kind, AgoMs: agoMs, Ms: ms, Times: 1, Why: "busy"})
	}
}

// heard makes the client heard half a second before the end.
func heard(and func(e *facts.EndedSession)) func(e *facts.EndedSession) {
	return func(e *facts.EndedSession) {
		e.Client.SilentMs = 500
		and(e)
	}
}

// probed has the client's machine confirm something that long before the end, and leave n probes
// unanswered since.
func probed(answeredMs int64, n int) func(e *facts.EndedSession) {
	return func(e *facts.EndedSession) {
		e.Client.Probed, e.Client.AnsweredMs, e.Client.Unanswered = true, answeredMs, n
	}
}

func TestVerdict_Table(t *testing.T) {
	for name, c := range map[string]struct {
		change func(e *facts.EndedSession)
		cause  facts.Cause
		story  string // the end of it
	}{
		"nothing else": {func(*facts.EndedSession) {}, facts.ClientSilent,
			"session 0x10 of h:1 ended at 1970-01-01T00:00:00.000Z: silent for 6.0 s with a timeout of 6 s; its pings had come every 2.0 s; " +
				"server 2 was well; the connection stayed open: the client's process or machine stood still, or the network to it was cut; " +
				"server 2 cannot tell which"},
		"its machine answered":              {probed(500, 0), facts.ProcessSilent, "or a proxy before it, answered probes: the client's process stood still"},
		"its machine answered long ago":     {probed(4000, 0), facts.ClientSilent, "server 2 cannot tell which"},
		"its machine is silent":             {probed(5000, 3), facts.MachineSilent, "has not answered the last 3 probes: it stood still, or the network to it was cut"},
		"a probe is under way":              {probed(1500, 1), facts.ClientSilent, "server 2 cannot tell which"},
		"closed by the client's side":       {closed(facts.ClientSide, ""), facts.ClientLeft, "as if its process had ended"},
		"closed by the server":              {closed(facts.ServerSide, "memory"), facts.ServerClosed, "server 2 closed its connection 5.0 s before (memory), and the client did not come back"},
		"broke":                             {closed(facts.Network, "reset"), facts.ConnectionBroke, "(reset), and the client did not come back"},
		"closed by nobody":                  {closed("", ""), facts.UnknownCause, "its connection ended 5.0 s before: the cause is unknown"},
		"a pause that explains the silence": {incident(2, facts.Pause, 4000, 3000), facts.ServerPaused, "server 2 stood still for 3.0 s, and could not hear its clients meanwhile"},
		"a pause after which the client would have been heard": {incident(2, facts.Pause, 5900, 3000), facts.ClientSilent, "server 2 cannot tell which"},
		"a pause that is too short": {func(e *facts.EndedSession) {
			e.Client.SilentMs = 9000
			incident(2, facts.Pause, 1500, 1000)(e)
		}, facts.ClientSilent, "server 2 cannot tell which"},
		"a pause after the close": {func(e *facts.EndedSession) {
			closed(facts.ClientSide, "")(e)
			incident(2, facts.Pause, 4000, 3000)(e)
		}, facts.ClientLeft, "as if its process had ended"},
		"a pause until the close": {func(e *facts.EndedSession) {
			closed(facts.ClientSide, "")(e)
			incident(2, facts.Pause, 6000, 1000)(e)
		}, facts.ServerPaused, "server 2 stood still for 1.0 s, and could not hear its clients meanwhile"},
		"a pause of another server":                {incident(1, facts.Pause, 4000, 3000), facts.ClientSilent, "server 2 cannot tell which"},
		"a pause before the silence":               {incident(2, facts.Pause, 9000, 3000), facts.ClientSilent, "server 2 cannot tell which"},
		"heard after a pause as long as a timeout": {heard(incident(2, facts.Pause, 9000, 8000)), facts.ServerPaused, "meanwhile"},
		"heard after a short pause":                {heard(incident(2, facts.Pause, 4000, 3000)), facts.UnknownCause, "server 2 heard the client; why server 1 did not is unknown"},
		"heard, and out of touch":                  {heard(incident(2, facts.OutOfTouch, 9000, 8000)), facts.ServerCutOff, "was out of touch with the leader for 8.0 s"},
		"heard, and out of touch for a moment":     {heard(incident(2, facts.OutOfTouch, 3000, 2500)), facts.UnknownCause, "did not is unknown"},
		"not heard, and out of touch":              {incident(2, facts.OutOfTouch, 9000, 8000), facts.ClientSilent, "server 2 cannot tell which"},
		"the clock was moved": {func(e *facts.EndedSession) {
			e.Client.SilentMs = 3_600_000
			incident(1, facts.ClockMoved, 3_600_000, 3_600_000)(e)
		}, facts.TimeMoved, "moved its clock ahead by 3600.0 s"},
		"the clock was moved too little":            {incident(1, facts.ClockMoved, 3000, 0), facts.ClientSilent, "server 2 cannot tell which"},
		"a step of the clock, which does not count": {incident(2, facts.ClockStepped, 3000, 0), facts.ClientSilent, "server 2 cannot tell which"},
		"turned away":                 {incident(3, facts.TurnedAway, 3000, 0), facts.ClientRefused, "came back to server 3, and was turned away (times: 1): busy"},
		"an administrator":            {func(e *facts.EndedSession) { e.Reason = facts.ByAdministrator }, facts.Administrator, "ended it at server 1"},
		"the decider does not answer": {func(e *facts.EndedSession) { e.Reason = "" }, facts.UnknownCause, "server 1 decided that: ask it for the reason, unless it has restarted since"},
		"the server of the connection does not": {func(e *facts.EndedSession) { e.Client, e.Tellers = nil, []int{1} }, facts.UnknownCause,
			"session 0x10 ended at 1970-01-01T00:00:00.000Z: server 2 had its connection last: ask that server"},
		"that server does not remember":      {func(e *facts.EndedSession) { e.Client = nil }, facts.UnknownCause, "no server remembers its connection: the cause is unknown"},
		"that server has restarted":          {func(e *facts.EndedSession) { e.Client, e.UnseenMs = nil, 6500 }, facts.ServerRestarted, "server 2 had started 6.5 s before, and the client did not come back to any server"},
		"closed":                             {func(e *facts.EndedSession) { e.How, e.Reason = facts.Closed, "" }, facts.ClientClosed, "its client closed it"},
		"a wrong password":                   {func(e *facts.EndedSession) { e.How = facts.WrongPassword }, facts.PasswordRefused, "it lived on"},
		"over before":                        {func(e *facts.EndedSession) { e.How = facts.Over }, facts.SessionOver, "when the client came back with it"},
		"forgotten":                          {func(e *facts.EndedSession) { e.How, e.Server = facts.Forgotten, -1 }, facts.ServerForgot, "forgot the sessions that no other server knows"},
		"expired, and the only server":       {func(e *facts.EndedSession) { e.Server, e.Decider, e.Tellers = -1, -1, []int{-1} }, facts.ClientSilent, "the server cannot tell which"},
		"closed by the server with no pings": {func(e *facts.EndedSession) { closed(facts.ServerSide, "x")(e); e.Client.Pings = 0 }, facts.ServerClosed, "(x), and the client did not come back"},
	} {
		e := expired(c.change)
		if cause, story := e.Verdict(); cause != c.cause || !strings.HasSuffix(story, c.story) {
			t.Errorf("%s: %q, want %q: %s", name, cause, c.cause, story)
		}
	}
}

// evidence says what must be true for each cause.
var evidence = map[facts.Cause]func(e *facts.EndedSession, c facts.EndedClient) bool{
	facts.UnknownCause:    func(*facts.EndedSession, facts.EndedClient) bool { return true },
	facts.ClientClosed:    func(e *facts.EndedSession, _ facts.EndedClient) bool { return e.How == facts.Closed },
	facts.PasswordRefused: func(e *facts.EndedSession, _ facts.EndedClient) bool { return e.How == facts.WrongPassword },
	facts.SessionOver:     func(e *facts.EndedSession, _ facts.EndedClient) bool { return e.How == facts.Over },
	facts.ServerForgot:    func(e *facts.EndedSession, _ facts.EndedClient) bool { return e.How == facts.Forgotten },
	facts.Administrator:   func(e *facts.EndedSession, _ facts.EndedClient) bool { return e.Reason == facts.ByAdministrator },
	facts.TimeMoved:       func(e *facts.EndedSession, _ facts.EndedClient) bool { return lasted(e, facts.ClockMoved) > 0 },
	facts.ClientRefused: func(e *facts.EndedSession, _ facts.EndedClient) bool {
		return slices.ContainsFunc(e.Incidents, func(i facts.Incident) bool { return i.Kind == facts.TurnedAway })
	},
	facts.ServerPaused: func(e *facts.EndedSession, c facts.EndedClient) bool {
		p := lasted(e, facts.Pause, e.Server)
		return p >= e.TimeoutMs || p > 0 && c.SilentMs >= e.TimeoutMs && c.SilentMs-p < e.TimeoutMs
	},
	facts.ServerCutOff: func(e *facts.EndedSession, c facts.EndedClient) bool {
		return lasted(e, facts.OutOfTouch, e.Server) >= e.TimeoutMs && c.SilentMs < e.TimeoutMs && c.Open
	},
	facts.ServerRestarted: func(e *facts.EndedSession, c facts.EndedClient) bool {
		return e.Client == nil && e.UnseenMs > 0 && slices.Contains(e.Tellers, e.Server)
	},
	facts.ServerClosed: func(_ *facts.EndedSession, c facts.EndedClient) bool {
		return !c.Open && c.ClosedBy == facts.ServerSide
	},
	facts.ClientLeft: func(_ *facts.EndedSession, c facts.EndedClient) bool {
		return !c.Open && c.ClosedBy == facts.ClientSide
	},
	facts.ConnectionBroke: func(_ *facts.EndedSession, c facts.EndedClient) bool { return !c.Open && c.ClosedBy == facts.Network },
	facts.ClientSilent:    silent,
	facts.ProcessSilent: func(e *facts.EndedSession, c facts.EndedClient) bool {
		return silent(e, c) && c.Probed && c.Unanswered == 0 && c.AnsweredMs < c.SilentMs
	},
	facts.MachineSilent: func(e *facts.EndedSession, c facts.EndedClient) bool {
		return silent(e, c) && c.Probed && c.Unanswered > 1
	},
}

func silent(e *facts.EndedSession, c facts.EndedClient) bool {
	return c.Open && c.SilentMs >= e.TimeoutMs
}

// lasted returns for how long a kind of incident lasted, on these servers or on all.
func lasted(e *facts.EndedSession, kind string, servers ...int) (ms int64) {
	for _, i := range e.Incidents {
		if i.Kind == kind && (len(servers) == 0 || slices.Contains(servers, i.Server)) {
			ms += i.Ms
		}
	}
	return ms
}

func drawEnded(t *rapid.T) facts.EndedSession {
	ms := func(name string) int64 {
		return rapid.SampledFrom([]int64{0, 1, 500, 5999, 6000, 6001, 20_000}).Draw(t, name)
	}
	number := func(name string) int { return rapid.IntRange(-1, 2).Draw(t, name) }
	of := func(name string, values ...string) string { return rapid.SampledFrom(values).Draw(t, name) }
	e := facts.EndedSession{
		Session: "0x10", Zxid: "0x1", How: of("how", facts.Expired, facts.Expired, facts.Expired, facts.Closed, facts.Forgotten, facts.WrongPassword, facts.Over),
		TimeoutMs: 6000, Decider: number("decider"), Server: number("server"), UnseenMs: ms("unseen"),
		Tellers: rapid.SliceOfN(rapid.IntRange(-1, 2), 1, 3).Draw(t, "tellers"), Moves: rapid.IntRange(0, 2).Draw(t, "moves"),
	}
	if e.How == facts.Expired {
		e.Reason = of("reason", facts.BySilence, facts.BySilence, facts.BySilence, facts.ByAdministrator, "")
	}
	if rapid.Bool().Draw(t, "client") {
		e.Client = &facts.EndedClient{
			Address: "h:1", SilentMs: ms("silent"), LongestMs: ms("longest"), Pings: rapid.IntRange(0, 5).Draw(t, "pings"),
			PingEveryMs: ms("every"), Open: rapid.Bool().Draw(t, "open"), ClosedMs: ms("closed"),
			Probed: rapid.Bool().Draw(t, "probed"), AnsweredMs: ms("answered"), Unanswered: rapid.IntRange(0, 3).Draw(t, "unanswered"),
			ClosedBy: of("by", facts.ClientSide, facts.ServerSide, facts.Network, ""),
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "incidents") {
		e.Incidents = append(e.Incidents, facts.Incident{
			Server: number("at"), AgoMs: ms("ago"), Ms: ms("for"), Times: 1,
			Kind: of("kind", facts.Pause, facts.SlowDisk, facts.NoCommit, facts.NoLeader, facts.NewLeader, facts.OutOfTouch, facts.ClockMoved, facts.ClockStepped, facts.TurnedAway),
		})
	}
	return e
}

// No cause is named without its evidence, a server is well only if nothing befell any, the verdict
// changes nothing, and what every server tells together does not depend on the order of asking.
func TestVerdict_NamesNothingWithoutEvidence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEnded(t)
		before := e
		cause, story := e.Verdict()
		var c facts.EndedClient
		if e.Client != nil {
			c = *e.Client
		}
		if holds := evidence[cause]; holds == nil || !holds(&e, c) {
			t.Fatalf("%q without its evidence: %+v, client %+v", cause, e, c)
		}
		if e.How == facts.Expired && e.Reason == "" && cause != facts.UnknownCause {
			t.Fatalf("%q, and nobody knows why the session was ended", cause)
		}
		if strings.Contains(story, "was well") && slices.ContainsFunc(e.Incidents, func(i facts.Incident) bool { return i.Kind != facts.TurnedAway }) {
			t.Fatalf("a server was well, with %+v: %s", e.Incidents, story)
		}
		if !reflect.DeepEqual(e, before) {
			t.Fatal("the verdict changed the story")
		}
	})
}

// What several servers tell of one end is one story, in whatever order they are asked; stories of
// other ends, and those that only one server knows, stay apart.
func TestJoinEnded(t *testing.T) {
	decider := expired(func(e *facts.EndedSession) { e.Client, e.Tellers, e.Moves = nil, []int{1}, 1 })
	decider.Incidents = []facts.Incident{{Server: 1, Kind: facts.SlowDisk, Ms: 10}}
	served := expired(func(e *facts.EndedSession) { e.Reason, e.Tellers = "", []int{2} })
	third := expired(func(e *facts.EndedSession) { e.Client, e.Reason, e.Tellers = nil, "", []int{3} })
	other := expired(func(e *facts.EndedSession) { e.Zxid, e.EndedMs = "0x2", 5 })
	local := expired(func(e *facts.EndedSession) { e.Zxid, e.EndedMs = "", -5 })
	for _, told := range [][]facts.EndedSession{{decider, served, decider, third, other, local, local}, {local, third, other, served, local, decider}} {
		all := facts.JoinEnded(told)
		if len(all) != 4 || all[0].Zxid != "0x2" || all[2].Zxid != "" || all[3].Zxid != "" {
			t.Fatalf("joined %+v", all)
		}
		e := all[1]
		slices.Sort(e.Tellers)
		if !slices.Equal(e.Tellers, []int{1, 2, 3}) || e.Cause != facts.ClientSilent || e.Moves != 1 || len(e.Incidents) != 1 ||
			!strings.Contains(e.Story, "server 1: slow disk") {
			t.Errorf("joined %+v", e)
		}
	}
	if len(decider.Incidents) != 1 || len(served.Tellers) != 1 {
		t.Error("an argument was changed")
	}
}

func TestMatches(t *testing.T) {
	e := expired(func(e *facts.EndedSession) {
		e.Session, e.Client.Address, e.Ephemerals = "0x100a", "[::1]:4711", []string{"/lock/a"}
	})
	for _, c := range []struct {
		session, address, path string
		want                   bool
	}{
		{"", "", "", true}, {"0x100a", "", "", true}, {"100A", "", "", true}, {"0x000100a", "", "", true}, {"0x100b", "", "", false}, {"0x100b,0x100a", "", "", true}, {"0x100b,0x1", "", "", false},
		{"", "::1", "", true}, {"", "[::1]:4711", "", true}, {"", "::", "", false}, {"", "", "/lock/a", true}, {"", "", "/lock", false},
		{"0x100a", "::1", "/lock/b", false},
	} {
		if got := e.Matches(c.session, c.address, c.path); got != c.want {
			t.Errorf("Matches(%q, %q, %q) = %v", c.session, c.address, c.path, got)
		}
	}
	e.Client = nil
	if e.Matches("", "::1", "") {
		t.Error("a story without a client matches an address")
	}
}
