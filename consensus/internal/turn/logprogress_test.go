package turn

import (
	"testing"

	"github.com/gozkd/gozkd/consensus/internal/core"
)

// write lets a write take that many ticks, and returns whether the log hung at one of them.
func (p *logProgress) write(ticks int) (stalled bool) {
	p.awaited++
	for range ticks {
		stalled = p.tick() || stalled
	}
	p.durable(1)
	return stalled
}

// A slow log is not a hanging one.
func TestLog_Slow(t *testing.T) {
	var p logProgress
	for range 5 {
		if p.write(core.ElectionTicks - 1) {
			t.Fatal("the log is slow, and taken for hanging")
		}
	}
	if !p.write(2 * core.ElectionTicks) {
		t.Error("a hanging log goes unnoticed")
	}
}

// A disk on which each write takes longer than an election timeout is slow. Once that is known, it
// does not count as hanging; but a disk that hangs is still found.
func TestLog_RegularlySlow(t *testing.T) {
	var p logProgress
	stalls := 0
	for range 10 {
		if p.write(core.ElectionTicks * 3 / 2) {
			stalls++
		}
		p.tick() // idle
	}
	if stalls != 1 {
		t.Errorf("the log was taken for hanging %d times", stalls)
	}
	if !p.write(maxLimit + 1) {
		t.Error("a hanging log goes unnoticed")
	}
	for range 20 {
		p.write(0)
	}
	if !p.write(core.ElectionTicks + 1) {
		t.Error("a log that hangs for an election timeout goes unnoticed, although the disk is fast again")
	}
}
