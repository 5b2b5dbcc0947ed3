package server_test

import (
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// A session whose connection to a follower breaks lives on for its whole timeout, even if the
// follower had not yet reported to the leader when it was last heard from.
func TestEnsemble_WholeTimeoutAfterConnectionBreaks(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.startAll()
		const timeout = 5 * time.Second
		follower := e.followers()[0]
		for range 8 {
			c := e.connect(follower, timeout)
			c.call(1, proto.OpCreate, create{path: "/e", mode: proto.ModeEphemeral})
			time.Sleep(1730 * time.Millisecond) // another part of a tick each time
			c.ping()
			heard := time.Now()
			if err := c.nc.Close(); err != nil {
				t.Fatal(err)
			}
			other := e.connect(e.leader(), time.Minute)
			for other.exists("/e") {
				time.Sleep(10 * time.Millisecond)
			}
			if lived := time.Since(heard); lived < timeout {
				t.Errorf("the session lived for %v, its timeout is %v", lived, timeout)
			}
			if err := other.nc.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
