//go:build linux

package jepsenlite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/backoff"
)

// KillBurst is the fault of standalone servers: kill -9 again and again under load.
const KillBurst = "kill-burst"

// burstKeys make checkpoints and log segments as frequent as they can be.
var burstKeys = map[string]string{"snapCount": "200", "preAllocSize": "64", "globalOutstandingLimit": "400"}

// killBurst kills a member several times: when the clients come back, around a checkpoint, or at
// any moment of the load. Often the member is killed once or twice more during its start.
func killBurst(ctx context.Context, n *nemesis) (string, healing) {
	m := n.any()
	kill := func(when string, after time.Duration) {
		backoff.Sleep(ctx, after) // cut short by the end of the round
		n.counts["killed "+when]++
		n.endPause() // a process that starts after the kill is not paused
		n.cluster.Kill(m)
	}
	for range 2 + n.rng.IntN(6) {
		switch p := n.rng.IntN(10); {
		case p < 2:
			kill("while the clients came back", n.between(0, 20*time.Millisecond))
		case p < 6 && backoff.Sleep(ctx, n.between(50*time.Millisecond, 200*time.Millisecond)) && m.untilCheckpoint():
			kill("around a checkpoint", n.between(0, 3*time.Millisecond))
		default:
			kill("at any moment of the load", n.between(50*time.Millisecond, 500*time.Millisecond))
		}
		for range max(0, n.rng.IntN(4)-1) {
			n.cluster.Start(m)
			kill("during the start", n.between(0, 30*time.Millisecond))
		}
		n.awaitServing(context.WithoutCancel(ctx))
		if ctx.Err() != nil {
			break
		}
	}
	return m.String(), n.startAll
}

// untilCheckpoint waits until the process opens its checkpoint file, which it does to write a
// checkpoint, and returns false after a second without.
func (m *Member) untilCheckpoint() bool {
	fds := fmt.Sprintf("/proc/%d/fd", m.process.Pid())
	for until := time.Now().Add(time.Second); time.Now().Before(until); {
		entries, err := os.ReadDir(fds)
		if err != nil {
			return false
		}
		for _, e := range entries {
			if to, err := os.Readlink(filepath.Join(fds, e.Name())); err == nil && strings.Contains(to, "checkpoint.db") {
				return true
			}
		}
	}
	return false
}

// bursts returns how often KillBurst has killed a member.
func (r *Report) bursts() (kills int) {
	for what, n := range r.Faults {
		if strings.HasPrefix(what, "killed ") {
			kills += n
		}
	}
	return kills
}
