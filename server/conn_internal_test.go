package server

import (
	"strings"
	"testing"
	"time"
)

// A step of the wall clock must not expire sessions: the times that the tracker gets have a
// monotonic reading.
func TestHeard_Monotonic(t *testing.T) {
	c := &conn{server: &Server{startedWall: time.Now()}}
	now := c.server.startedWall.Add(time.Minute)
	c.noteHeard(now)
	if heard := c.heard(); !heard.Equal(now) || !strings.Contains(heard.String(), " m=") {
		t.Errorf("heard at %v, want %v with its monotonic reading", heard, now)
	}
}
