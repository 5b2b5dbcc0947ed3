//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

func TestTargets_ReadFromWhatCommandsWrite(t *testing.T) {
	asGoals := conditions{Warm: goalWarm, Znodes: 1_000_000, Sessions: 5_000}
	o := &output{dir: t.TempDir(), w: io.Discard, wrote: map[string]bool{}, conditions: asGoals}
	server := func(name string, rate, cpu, p50 float64) figures {
		return figures{Server: name, OpsPerSecond: once(rate), CPU: once(cpu), P50: p50}
	}
	o.comparisons("throughput", []comparison{{Row: "get 100 B", Shape: "16x16", Servers: []figures{
		server("gozkd 0.1.0", 700, 1, 5), server("ZooKeeper 3.9.5", 100, 10, 50)}}})
	o.readings("watches", []reading{{fanOuts[0].String(), "µs per event", "gozkd 0.1.0", once(10)}, {fanOuts[0].String(), "µs per event", "ZooKeeper 3.9.5", once(15)}})
	o.comparisons("limits", []comparison{{Row: "get 100 B", Shape: "16x16", Servers: []figures{server("bare server", 900, 0.5, 4)}}})
	o.readings("resident", []reading{{residentEmpty, "RSS MB", "gozkd 0.1.0", once(9)}, {residentEmpty, "RSS MB", "ZooKeeper 3.9.5", once(70)}})
	o.readings("failover", []reading{{"leader killed, tickTime 2000", "no write ms", "gozkd 0.1.0", once(401)},
		{"leader killed, tickTime 2000", "clients of the others cut", "gozkd 0.1.0", once(0)}})
	o.problems = []problem{{Row: startOne, Server: "gozkd", Why: "it did not"}}
	o.readings("start", []reading{{startThree, "wall ms", "gozkd 0.1.0", once(499)},
		{startAgain, "wall ms", "gozkd 0.1.0", once(1)}, {startAgain, "wall ms", "ZooKeeper 3.9.5", once(20)}})
	o.problems = []problem{{Why: "all of it"}}
	o.readings("calm", nil)
	o.problems, o.conditions = nil, conditions{Warm: goalWarm - 1}
	o.comparisons("connects", []comparison{{Row: "session opened and closed", Shape: "16x1", Servers: []figures{
		server("gozkd 0.1.0", 700, 1, 5), server("ZooKeeper 3.9.5", 100, 10, 50)}}})
	f := readFigures(o.dir)
	want := map[string]string{ // those without a line are not measured
		"get 100 B, 16x16/ops/s":                                                   "least met",
		"get 100 B, 16x16/CPU µs/op":                                               "least met",
		"resident, empty/RSS MB":                                                   "aim met",
		"leader killed: no successful write for/no write ms":                       "missed",
		"leader killed: clients of living members cut/clients of the others cut":   "aim met",
		"watch: 1,000 watchers notified/µs per event":                              leastMet,
		"exec to first answered create, empty, one member/wall ms":                 failed,
		"exec to first answered create, empty, three members/wall ms":              leastMet,
		"start after kill with 1,000,000 znodes/wall ms":                           aimMet,
		"writes while checkpoints of 1,000,000 znodes run, to without/p99.9 ratio": failed,
		"session opened and closed/ops/s":                                          notAsAsked,
		"session opened and closed/CPU µs/op":                                      notAsAsked,
	}
	for _, g := range goals() {
		st, key := f.standing(g), g.title+"/"+g.what
		expected := want[key]
		if expected == "" {
			expected = "not measured"
		}
		if got := st.verdict(); got != expected {
			t.Errorf("%s: %s, want %s (%+v)", key, got, expected, st)
		}
		delete(want, key)
	}
	for key := range want {
		t.Errorf("no goal %s", key)
	}
	st := f.standing(goals()[0])
	if st.measured != 7 || st.ceiling != 900 {
		t.Errorf("measured %v, ceiling %v, want 7 and 900", st.measured, st.ceiling)
	}
}

// What goals ask for must be what commands write: rows and shapes by their names.
func TestTargets_RowsExist(t *testing.T) {
	names := map[string]bool{}
	for _, w := range workloads() {
		names[w.name] = true
	}
	for _, g := range goals() {
		if g.more == (g.aim < g.least) && g.aim != g.least {
			t.Errorf("%s, %s: the aim %v is easier than the least %v", g.title, g.what, g.aim, g.least)
		}
		if g.file != "throughput" && g.file != "ensemble" {
			continue
		}
		name := g.row[:strings.LastIndex(g.row, ", ")]
		if !names[name] {
			t.Errorf("%s: no row %q", g.title, name)
		}
	}
}

// Names need escapes, and ratios may be infinite or no numbers.
func TestRatiosPicture_IsXML(t *testing.T) {
	row := func(name string, ops, cpu float64) comparison {
		return comparison{Row: name, Shape: "1x1", Servers: []figures{
			{Server: "a & b", OpsPerSecond: once(ops), CPU: once(cpu)}, {Server: "c < d", OpsPerSecond: once(1.5), CPU: once(0)},
		}}
	}
	noNumbers := row("not there", 0, 0)
	noNumbers.Servers[1].OpsPerSecond = once(0)
	svg, err := ratiosPicture([]comparison{row("a < b", 3, 2), row("none", 0, 1), noNumbers, {Row: "failed"}})
	if err != nil {
		t.Fatal(err)
	}
	isSVG(t, svg)
}

// isSVG checks that the picture is well-formed and all coordinates are numbers.
func isSVG(t *testing.T, svg []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if bytes.Contains(svg, []byte("NaN")) || bytes.Contains(svg, []byte("Inf")) {
		t.Errorf("a coordinate is no number:\n%s", svg)
	}
}

func TestTargets_OtherConditions(t *testing.T) {
	asGoals := conditions{Warm: goalWarm, Znodes: 1_000_000, Sessions: 5_000}
	fewer, shorter, lonely := asGoals, asGoals, asGoals
	fewer.Znodes, shorter.Warm, lonely.Sessions = 200_000, 5, 100
	seen := map[string]int{}
	for _, g := range goals() {
		if why := g.otherwise(asGoals); why != "" {
			t.Errorf("%s: %s", g.title, why)
		}
		for _, c := range []conditions{fewer, shorter, lonely} {
			if why := g.otherwise(c); why != "" {
				seen[why]++
			}
		}
	}
	if seen["200,000 znodes"] != 5 || seen["100 sessions"] != 1 || seen["5.00 s of load before"] < 20 {
		t.Errorf("how many goals are not for these conditions: %v", seen)
	}
}

// A command that fails in one row, or altogether, leaves figures that say so, and none of an
// earlier run.
func TestOutput_FailedCommandSaysSo(t *testing.T) {
	o := &output{dir: t.TempDir(), stdout: io.Discard}
	list := []reading{{residentEmpty, "RSS MB", "gozkd 0.1.0", once(9)}}
	o.begin("resident", nil)
	o.readings("resident", list)
	if err := o.end("resident", nil); err != nil {
		t.Fatal(err)
	}
	standing := func() standing {
		t.Helper()
		f := readFigures(o.dir)
		for _, g := range goals() {
			if g.row == residentEmpty {
				return f.standing(g)
			}
		}
		panic("no goal " + residentEmpty)
	}
	if st := standing(); st.verdict() != aimMet {
		t.Errorf("%s, want %s", st.verdict(), aimMet)
	}

	o.begin("resident", nil)
	broken := errors.New("broken")
	if err := o.end("resident", broken); !errors.Is(err, broken) {
		t.Errorf("end: %v", err)
	}
	if st := standing(); st.verdict() != failed {
		t.Errorf("after a run that failed: %s, want %s", st.verdict(), failed)
	}

	o.begin("resident", nil)
	o.fail(t.Context(), residentEmpty, "ZooKeeper 3.9.5", broken)
	o.readings("resident", list)
	if err := o.end("resident", nil); !errors.Is(err, broken) {
		t.Errorf("end: %v", err)
	}
	if st := standing(); st.verdict() != aimMet {
		t.Errorf("what was measured beside what failed: %s, want %s", st.verdict(), aimMet)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := must.Try(func() { o.fail(ctx, residentEmpty, "", broken) }); !errors.Is(err, context.Canceled) {
		t.Errorf("fail after an interrupt: %v", err)
	}
}

func TestComparisons_FailedRow(t *testing.T) {
	o := &output{dir: t.TempDir(), w: io.Discard, wrote: map[string]bool{}}
	whole := comparison{Row: "a", Shape: "1x1", Servers: []figures{{Server: "A", OpsPerSecond: once(2), CPU: once(1)}, {Server: "B", OpsPerSecond: once(1), CPU: once(1)}}}
	for _, all := range [][]comparison{{{Row: "b", Shape: "1x1"}}, {{Row: "b", Shape: "1x1"}, whole}, {whole, {Row: "b", Shape: "1x1"}}} {
		var text bytes.Buffer
		o.w = &text
		o.comparisons("x", all)
		if !strings.Contains(text.String(), "failed") {
			t.Errorf("a row that failed is not shown:\n%s", &text)
		}
	}
}
