package main

import (
	"strings"
	"testing"
)

func TestProcs(t *testing.T) {
	var (
		calm   = work{procs: 0.79, requests: 1000, changes: 1000}
		busy   = work{procs: 0.85, requests: 1000, changes: 1000}
		busier = work{procs: 0.91, requests: 1000, changes: 1000}
		half   = work{procs: 0.5, requests: 1000, changes: 500}
		reads  = work{procs: 0.5, requests: 1000, changes: 300}
		few    = work{procs: 0.1, requests: 9, changes: 9}
		idle   = work{procs: 0.01, requests: 9}
		others = work{procs: 0.5, requests: 0, changes: 1000} // clients of other members write
		reset  = work{procs: 0.5, requests: -100000, changes: 1000}
	)
	for _, tc := range []struct {
		name  string
		looks []work
		want  string // after each look: a for all processors, 1 for one
	}{
		{"one after ten calm looks", []work{calm, half, others, calm, reset, calm, calm, calm, calm, calm, calm}, "aaaaaaaaa11"},
		{"in a row", []work{calm, calm, calm, calm, calm, busy, calm, calm, calm, calm, calm, calm, calm, calm, calm, calm}, "aaaaaaaaaaaaaaa1"},
		{"all at once when one is not enough", append(repeat(calm, 10), busy, busier, calm), "aaaaaaaaa11aa"},
		{"or clients read", append(repeat(calm, 10), reads, calm), "aaaaaaaaa1aa"},
		{"but not because they do little", append(repeat(calm, 10), few, idle, calm), "aaaaaaaaa1111"},
		{"nor for little", repeat(few, 20), strings.Repeat("a", 20)},
		{"and one again", append(append(repeat(calm, 10), reads), repeat(calm, 10)...), "aaaaaaaaa1aaaaaaaaaa1"},
		{"readers keep all", repeat(reads, 20), strings.Repeat("a", 20)},
	} {
		var p procs
		got, before := "", false
		for _, w := range tc.looks {
			one, changed := p.next(w)
			if changed != (one != before) {
				t.Errorf("%s: changed is %v, from %v to %v", tc.name, changed, before, one)
			}
			before = one
			got += map[bool]string{false: "a", true: "1"}[one]
		}
		if got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

func repeat(w work, n int) (ws []work) {
	for range n {
		ws = append(ws, w)
	}
	return ws
}

// The clock of the process's CPU time runs.
func TestCPUTime(t *testing.T) {
	before, told := cpuTime()
	if !told {
		t.Skip("the system does not tell")
	}
	for {
		if now, _ := cpuTime(); now > before {
			return
		}
	}
}
