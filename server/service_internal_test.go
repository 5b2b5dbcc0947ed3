package server

import "testing"

// TestService checks which stage each circumstance leads to, and what is derived from the stages.
func TestService(t *testing.T) {
	all := circumstances{accepting: true, started: true, membersKnown: true, current: true}
	with := func(change func(*circumstances)) circumstances {
		c := all
		change(&c)
		return c
	}
	for _, row := range []struct {
		name                       string
		given                      circumstances
		stage                      stage
		serves, answers, catchesUp bool
	}{
		{"new", circumstances{}, stageClosed, false, false, false},
		{"stopped", with(func(c *circumstances) { c.accepting = false }), stageClosed, false, false, false},
		{"another state is read", with(func(c *circumstances) { c.dropped = true }), stageRestoring, false, false, true},
		{"starts", circumstances{accepting: true}, stageStarting, false, false, true},
		{"lost", with(func(c *circumstances) { c.lost = true }), stageLost, false, false, false},
		{"found again", with(func(c *circumstances) { c.lost, c.lagging = true, true }), stageLagging, false, false, true},
		{"new ensemble", with(func(c *circumstances) { c.membersKnown = false }), stageForming, false, false, false},
		{"no leader", with(func(c *circumstances) { c.current = false }), stageLeaderless, false, true, false},
		{"serves", all, stageServing, true, true, false},
	} {
		s := row.given.service()
		if s.stage != row.stage || s.serves() != row.serves || s.answers() != row.answers || s.catchesUp() != row.catchesUp {
			t.Errorf("%s: %+v, serves %v, answers %v, catches up %v", row.name, s, s.serves(), s.answers(), s.catchesUp())
		}
		row.given.readOnly = true
		if s, want := row.given.service(), row.stage > stageRestoring; s.stage != row.stage || s.answers() != want || s.serves() != row.serves {
			t.Errorf("%s, read-only: %+v, serves %v, answers %v", row.name, s, s.serves(), s.answers())
		}
	}
	for bits := range 1 << 8 {
		on := func(i int) bool { return bits>>i&1 == 1 }
		c := circumstances{on(0), on(1), on(2), on(3), on(4), on(5), on(6), on(7)}
		s := c.service()
		knows := c.accepting && !c.dropped && c.started && !c.lost && c.membersKnown
		if s.serves() != (knows && c.current) || s.answers() != (knows || c.readOnly && c.accepting && !c.dropped) {
			t.Errorf("%+v: %+v, serves %v, answers %v", c, s, s.serves(), s.answers())
		}
		if s.catchesUp() != (c.accepting && (c.dropped || !c.started || c.lost && c.lagging)) {
			t.Errorf("%+v: %+v catches up: %v", c, s, s.catchesUp())
		}
	}
}
