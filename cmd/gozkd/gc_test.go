package main

import "testing"

func TestGCPercent(t *testing.T) {
	for live, want := range map[uint64]int{0: 100, 1: 100, 12 << 20: 100, 24 << 20: 50, 48 << 20: 25, 1 << 40: 25} {
		if got := gcPercent(live); got != want {
			t.Errorf("%d bytes live: %d%%, want %d%%", live, got, want)
		}
	}
}
