package jepsenlite

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// However slow a client is, and however long it rests, its session does not expire meanwhile.
func TestNextOn_KeepsSessions(t *testing.T) {
	for _, rest := range []time.Duration{0, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			cfg := TrafficConfig{Timeout: 8 * time.Second, Pace: 10 * time.Second, Rest: func(*rand.Rand) time.Duration { return rest }}
			w := &worker{TrafficConfig: &cfg, rng: rand.New(rand.NewPCG(1, 1))}
			var last time.Time
			beat := func() bool {
				if silent := time.Since(last); silent > w.Timeout/4 {
					t.Fatalf("nothing was sent for %v", silent)
				}
				last = time.Now()
				return true
			}
			for range 100 {
				last = time.Now()
				if !w.nextOn(t.Context(), beat) {
					t.Fatal("the round ends")
				}
				beat()
			}
			goesOn := true
			for range 2 { // the first wait may be too short for a beat
				goesOn = goesOn && w.nextOn(t.Context(), func() bool { return false })
			}
			if goesOn {
				t.Error("the end of the connection does not end the wait")
			}
		})
	}
}
