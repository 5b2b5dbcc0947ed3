package endings_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/facts"
	"github.com/gozkd/gozkd/server/internal/endings"
)

const (
	tick     = time.Second
	interval = tick / 2
)

var begin = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return begin.Add(time.Duration(seconds * float64(time.Second))) }

func all(*facts.EndedSession) bool { return true }

// expire ends a session by silence, with a timeout of 6 s.
func expire(e *endings.Endings, id proto.SessionID, now time.Time) facts.EndedSession {
	return e.Ended(id, nil, facts.EndedSession{EndedMs: now.UnixMilli(), How: facts.Expired, TimeoutMs: 6000, Zxid: "0x1"}, true, now, now)
}

// kinds returns the incidents of a story as text.
func kinds(s facts.EndedSession) string {
	var texts []string
	for _, i := range s.Incidents {
		text := fmt.Sprintf("%s %d %d", i.Kind, i.AgoMs, i.Ms)
		if i.Times > 0 {
			text += fmt.Sprintf(", %d times", i.Times)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

// passes makes punctual passes from one second to another.
func passes(e *endings.Endings, from, to float64) {
	for s := from; s < to; s += interval.Seconds() {
		e.Pass(0, at(s), at(s).Round(0), at(s))
	}
}

// pass makes a pass; the clocks show these seconds.
func pass(e *endings.Endings, lost time.Duration, now, wall, mono float64) {
	e.Pass(lost, at(now), at(wall), at(mono))
}

// The story has the incidents of the last timeout, each once. The session ends at 20 s by all
// clocks, unless a clock was moved.
func TestEnded_Incidents(t *testing.T) {
	note := func(e *endings.Endings, kind string, times ...float64) {
		for i := 0; i < len(times); i += 2 {
			e.Note(kind, at(times[i]), at(times[i+1]))
		}
	}
	for name, c := range map[string]struct {
		befall func(e *endings.Endings) // from 15.5 s on, when the last pass was
		want   string
	}{
		"none":                     {func(e *endings.Endings) { passes(e, 16, 20) }, ""},
		"before the timeout":       {func(e *endings.Endings) { note(e, facts.SlowDisk, 10, 11); passes(e, 16, 20) }, ""},
		"in it":                    {func(e *endings.Endings) { note(e, facts.SlowDisk, 10, 15); passes(e, 16, 20) }, "slow disk 10000 5000"},
		"one that goes on":         {func(e *endings.Endings) { note(e, facts.NoCommit, 14, 15, 14, 16); passes(e, 16, 20) }, "no commit 6000 2000"},
		"two, the later one first": {func(e *endings.Endings) { note(e, facts.SlowDisk, 16, 17, 14, 15); passes(e, 16, 20) }, "slow disk 4000 1000, slow disk 6000 1000"},
		"one that began earlier":   {func(e *endings.Endings) { note(e, facts.NoCommit, 14, 15, 13, 14.5); passes(e, 16, 20) }, "no commit 7000 2000"},
		"two kinds at once": {func(e *endings.Endings) {
			e.Note(facts.SlowDisk, at(14), at(15))
			e.Note(facts.NoCommit, at(14), at(15))
			passes(e, 16, 20)
		}, "slow disk 6000 1000, no commit 6000 1000"},
		"two moves of the clock":   {func(e *endings.Endings) { note(e, facts.ClockMoved, 14, 15, 15, 16); passes(e, 16, 20) }, "clock moved 6000 1000, clock moved 5000 1000"},
		"two":                      {func(e *endings.Endings) { note(e, facts.SlowDisk, 14, 15, 16, 17); passes(e, 16, 20) }, "slow disk 6000 1000, slow disk 4000 1000"},
		"a late pass":              {func(e *endings.Endings) { pass(e, 3500*time.Millisecond, 19.5, 19.5, 19.5) }, "pause 4000 3500"},
		"a pass a little late":     {func(e *endings.Endings) { passes(e, 16, 19); pass(e, interval/3, 19.6, 19.6, 19.6) }, ""},
		"a pass an interval late":  {func(e *endings.Endings) { passes(e, 16, 19); pass(e, interval, 19.5, 19.5, 19.5) }, "pause 1000 500"},
		"a pass that is due":       {func(e *endings.Endings) { passes(e, 16, 19.5) }, "pause 500 500"},
		"a pass that has not come": {func(*endings.Endings) {}, "pause 4000 4000"},
		"a late pass, and another that has not come": {func(e *endings.Endings) { pass(e, time.Second, 17, 17, 17) }, "pause 4000 1000, pause 2500 2500"},
		"a step of the clock":                        {func(e *endings.Endings) { passes(e, 16, 19.5); pass(e, 0, 19.5, 3600, 19.5) }, "clock step, which does not count 500 0"},
		"a step back":                                {func(e *endings.Endings) { passes(e, 16, 19.5); pass(e, 0, 19.5, -3600, 19.5) }, "clock step, which does not count 500 0"},
		"a small step":                               {func(e *endings.Endings) { passes(e, 16, 19.5); pass(e, 0, 19.5, 20.5, 19.5) }, ""},
		"a clock a little ahead":                     {func(e *endings.Endings) { pass(e, 0, 16.5, 16.5, 15.5); pass(e, 0, 17, 17, 16) }, ""},
		"a clock that runs ahead":                    {func(e *endings.Endings) { pass(e, 0, 20, 20, 16) }, "clock moved 4000 4000"},
		"a clock that is moved":                      {func(e *endings.Endings) { e.Moved(at(16), at(20)); pass(e, 0, 20, 20, 16) }, "clock moved 4000 4000"},
		"a clock that is moved back":                 {func(e *endings.Endings) { e.Moved(at(21), at(20)); pass(e, 0, 20, 20, 21) }, ""},
		"an election":                                {func(e *endings.Endings) { led(e, 1, 1, 0, 15, 0, 16, 2, 17); passes(e, 16, 20) }, "no leader 5000 2000"},
		"a handover":                                 {func(e *endings.Endings) { led(e, 1, 1, 2, 17); passes(e, 16, 20) }, "new leader 3000 0"},
		"the same leader":                            {func(e *endings.Endings) { led(e, 1, 1, 1, 17); passes(e, 16, 20) }, ""},
		"the first leader":                           {func(e *endings.Endings) { led(e, 2, 17); passes(e, 16, 20) }, ""},
		"the client turned away": {func(e *endings.Endings) {
			e.TurnedAway(7, "x", at(15))
			e.TurnedAway(7, "y", at(16))
			e.TurnedAway(8, "z", at(17))
			passes(e, 16, 20)
		}, "turned away 4000 0, 2 times"},
		"turned away before":      {func(e *endings.Endings) { e.TurnedAway(7, "x", at(11)); passes(e, 16, 20) }, ""},
		"turned away, and let in": {func(e *endings.Endings) { e.TurnedAway(7, "x", at(15)); e.Attached(7, 2); passes(e, 16, 20) }, ""},
	} {
		e := endings.New(2, false, tick, interval)
		passes(e, 0, 16)
		c.befall(e)
		mono := at(20)
		if strings.HasPrefix(name, "a clock") {
			mono = at(16)
		}
		s := e.Ended(7, nil, facts.EndedSession{How: facts.Expired, TimeoutMs: 6000}, true, at(20), mono)
		if got := kinds(s); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A client that was silent for longer than the timeout may have been silent for what happened then.
func TestEnded_LongSilence(t *testing.T) {
	e := endings.New(2, false, tick, interval)
	e.Note(facts.SlowDisk, at(10), at(11))
	client := &facts.EndedClient{TimeoutMs: 6000, SilentMs: 10_000}
	s := e.Ended(7, nil, facts.EndedSession{How: facts.Expired, Client: client}, true, at(20), at(20)) // before the first pass
	if got, want := kinds(s), "slow disk 10000 1000"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The newest incidents are kept.
func TestEnded_ManyIncidents(t *testing.T) {
	e := endings.New(2, false, tick, interval)
	for i := range 151 {
		e.Note(facts.SlowDisk, at(9.98+float64(2*i)/100), at(9.98+float64(2*i+1)/100))
	}
	s := expire(e, 7, at(14))
	if n := len(s.Incidents); n != 100 || s.Incidents[0].AgoMs != 3000 || s.Incidents[n-1].AgoMs != 1020 {
		t.Errorf("%d incidents: %s", n, kinds(s))
	}
}

// led records leaders and times in turn.
func led(e *endings.Endings, what ...float64) {
	for i := 0; i < len(what); i += 2 {
		e.Led(uint64(what[i]), at(what[i+1]))
	}
}

// A story has the last connection, the moves, and who decided.
func TestEnded_Life(t *testing.T) {
	const id = proto.SessionID(1)<<56 | 7 // of server 1
	e := endings.New(2, false, tick, interval)
	client := func() *facts.EndedClient {
		return &facts.EndedClient{Address: "h:1", TimeoutMs: 9000, SilentMs: 500, ClosedMs: 100, ClosedBy: facts.ClientSide}
	}
	e.Left(id, client(), at(1))
	e.Attached(id, 1)
	e.Attached(id, 3)
	if s := expire(e, id, at(20)); s.Moves != 1 || s.Client != nil || s.Reason != facts.BySilence || s.TimeoutMs != 6000 {
		t.Errorf("%+v", s)
	}
	e.Attached(id, 2)
	e.Attached(id, 2)
	e.Attached(id, 1)
	e.Attached(id, 2)
	e.Left(id, client(), at(13))
	e.Asked(id)
	s := e.Ended(id, nil, facts.EndedSession{How: facts.Expired, UnseenMs: 9}, true, at(20), at(20))
	if s.Moves != 3 || s.Client == nil || s.Client.SilentMs != 7500 || s.Client.ClosedMs != 7100 || s.Reason != facts.ByAdministrator ||
		s.TimeoutMs != 9000 || s.UnseenMs != 0 || len(s.Tellers) != 1 || s.Tellers[0] != 2 {
		t.Errorf("%+v", s)
	}
	if s := e.Ended(id, nil, facts.EndedSession{How: facts.Expired, UnseenMs: 9}, false, at(20), at(20)); s.Reason != "" || s.UnseenMs != 9 || s.Client != nil {
		t.Errorf("what ended before is told again: %+v", s)
	}
	e.Attached(id, 2)
	e.Left(id, client(), at(13)) // the former connection
	e.Asked(id)
	open := &facts.EndedClient{Address: "h:2"}
	if s := e.Ended(id, nil, facts.EndedSession{How: facts.Expired, Client: open}, false, at(20), at(20)); s.Client.Address != "h:2" || s.Reason != "" {
		t.Errorf("%+v", s)
	}
	if own := endings.New(0, true, tick, interval).Own(); own != -1 {
		t.Errorf("the only server has the number %d", own)
	}
}

// The newest stories are kept, and the newest come first, with the refusals between.
func TestList_Bounds(t *testing.T) {
	e := endings.New(2, false, tick, interval)
	for i := range 10_050 {
		expire(e, proto.SessionID(i), at(float64(i)))
	}
	for i := range 1100 {
		e.Refused(proto.SessionID(100_000+i), "h:1", i%2 == 0, at(10_050))
	}
	expire(e, 200_000, at(10_051))
	list := e.List(all, 20_000)
	if n := len(list); n < 10_900 || n > 11_000 {
		t.Fatalf("%d stories", n)
	}
	if first, last := list[0].Session, list[len(list)-1].Session; first != "0x30d40" || last != proto.SessionID(51).String() {
		t.Errorf("from %s to %s", first, last)
	}
	if list[1].How != facts.Over || list[2].How != facts.WrongPassword || list[1].Cause != facts.SessionOver {
		t.Errorf("refusals %+v, %+v", list[1], list[2])
	}
	if few := e.List(func(s *facts.EndedSession) bool { return s.How == facts.Expired }, 2); len(few) != 2 || few[1].Session != proto.SessionID(10_049).String() {
		t.Errorf("the last two: %+v", few)
	}
}

// A thousand refusals are kept. Then the oldest hundred go.
func TestList_Refused(t *testing.T) {
	e := endings.New(2, false, tick, interval)
	for i := range 1001 {
		if i == 1000 {
			if list := e.List(all, 2000); len(list) != 1000 {
				t.Errorf("%d of 1000 are kept", len(list))
			}
		}
		e.Refused(proto.SessionID(i), "h:1", true, at(float64(i)))
	}
	expire(e, 2000, at(500.5))
	list := e.List(all, 2000)
	if n := len(list); n != 902 || list[n-1].Session != proto.SessionID(100).String() || list[500].Session != proto.SessionID(2000).String() {
		t.Errorf("%d stories, the last %+v", n, list[n-1])
	}
}

// Sentences are made for readers of stories, not for each session that ends.
func TestList_Verdicts(t *testing.T) {
	e := endings.New(2, false, tick, interval)
	if s := expire(e, 7, at(1)); s.Story != "" || s.Cause != "" {
		t.Errorf("the end of a session made the sentence %q", s.Story)
	}
	e.Refused(8, "h:1", true, at(2))
	list := e.List(func(s *facts.EndedSession) bool { return s.Story == "" }, 10)
	if len(list) != 2 {
		t.Fatalf("%d stories were without a sentence before they were read", len(list))
	}
	for _, s := range list {
		if cause, story := s.Verdict(); s.Cause != cause || s.Story != story || story == "" {
			t.Errorf("listed with %q, %q: want %q, %q", s.Cause, s.Story, cause, story)
		}
	}
}

// A search does not hold up what ends meanwhile.
func TestList_Unlocked(t *testing.T) {
	e := endings.New(2, false, tick, interval)
	expire(e, 1, at(1))
	e.Refused(2, "h:1", true, at(1))
	found := e.List(func(s *facts.EndedSession) bool {
		expire(e, 3, at(2))
		return s.Session == "0x1"
	}, 10)
	if len(found) != 1 {
		t.Errorf("found %+v", found)
	}
}

// Paths of ephemerals take 32 KiB of a story, and 4 MiB of all.
func TestList_Paths(t *testing.T) {
	e := endings.New(2, false, tick, interval)
	e.Ended(1000, nil, facts.EndedSession{How: facts.Closed}, true, at(1), at(1))
	end := func(id proto.SessionID, paths ...string) facts.EndedSession {
		return e.Ended(id, nil, facts.EndedSession{How: facts.Closed, Ephemerals: paths}, true, at(1), at(1))
	}
	long := strings.Repeat("x", 16<<10)
	if s := end(1, long, long, "/a", "/b"); len(s.Ephemerals) != 2 || s.MoreEphemerals != 2 {
		t.Errorf("%d paths and %d more", len(s.Ephemerals), s.MoreEphemerals)
	}
	for i := range 200 {
		end(proto.SessionID(2+i), long, long)
	}
	if n := len(e.List(all, 1000)); n != 128 {
		t.Errorf("%d stories with 32 KiB are kept", n)
	}
}

// What is known of sessions that live is bounded; the newest is kept.
func TestLive_Bounds(t *testing.T) {
	e := endings.New(2, false, tick, interval)
	for i := range 15_000 {
		e.Left(proto.SessionID(i), &facts.EndedClient{Address: "h:1"}, at(1))
	}
	if s := expire(e, 14_999, at(2)); s.Client == nil {
		t.Error("the newest is forgotten")
	}
	known := 1
	for i := range 14_999 {
		if expire(e, proto.SessionID(i), at(2)).Client != nil {
			known++
		}
	}
	if known != 10_000 {
		t.Errorf("%d are known", known)
	}
}
