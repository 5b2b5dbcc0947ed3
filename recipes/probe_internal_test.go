package recipes

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestLivenessProof is G1 with a leader that hears of a session only from its server, which reports
// every quarter of the timeout, and with a network that holds back everything between two syncs,
// pings included.
func TestLivenessProof(t *testing.T) {
	proofs := 0
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(name string, most int) time.Duration {
			return time.Duration(rapid.IntRange(0, most).Draw(rt, name))
		}
		const timeout = 4800
		var (
			p       livenessProof
			arrived []time.Duration // when the server heard of the session
			now     = draw("start", timeout)
			report  = draw("first report", timeout/reportShare)
			known   time.Duration // the last that the leader heard of when it heard it
		)
		for range 12 {
			now += draw("pause", timeout/2)
			sync := answeredSync{server: "s", sent: now}
			now += draw("way there", rapid.SampledFrom([]int{1, timeout}).Draw(rt, "stall"))
			arrived = append(arrived, now)
			now += draw("way back", 10)
			sync.answered = now
			for ; report <= now; report += draw("next report", timeout/reportShare-1) + 1 {
				for _, at := range arrived {
					if at <= report {
						known = max(known, at)
					}
				}
			}
			heard, proven := p.lastHeard(1, timeout, sync)
			if proven {
				proofs++
			}
			if proven && heard > known {
				rt.Fatalf("proven at %d: heard at %d or later; the leader heard at %d", now, heard, known)
			}
		}
	})
	if proofs == 0 {
		t.Fatal("no sync was a proof")
	}
}
