//go:build linux

package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
)

func TestTargets_ReadFromWhatCommandsWrite(t *testing.T) {
	o := &output{dir: t.TempDir(), w: io.Discard}
	server := func(name string, rate, cpu, p50 float64) figures {
		return figures{Server: name, OpsPerSecond: once(rate), CPU: once(cpu), P50: p50}
	}
	err := errors.Join(
		o.comparisons("throughput", "", []comparison{{Row: "get 100 B", Shape: "16x16", Servers: []figures{
			server("gozkd 0.1.0", 700, 1, 5), server("ZooKeeper 3.9.5", 100, 10, 50)}}}),
		o.comparisons("limits-bare", "", []comparison{{Row: "get 100 B", Shape: "16x16", Servers: []figures{server("bare server", 900, 0.5, 4)}}}),
		o.readings("resident", []reading{{residentEmpty, "RSS MB", "gozkd 0.1.0", once(9)}, {residentEmpty, "RSS MB", "ZooKeeper 3.9.5", once(70)}}),
		o.readings("failover", []reading{{"leader killed, tickTime 2000", "no write ms", "gozkd 0.1.0", once(401)},
			{"leader killed, tickTime 2000", "clients of the others cut", "gozkd 0.1.0", once(0)}}),
	)
	if err != nil {
		t.Fatal(err)
	}
	f, err := readFigures(o.dir)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{ // those without a line are not measured
		"get 100 B, 16x16/ops/s":                                             "least met",
		"get 100 B, 16x16/CPU µs/op":                                         "least met",
		"resident, empty/RSS MB":                                             "aim met",
		"leader killed: no write for/no write ms":                            "missed",
		"leader killed: clients of the others cut/clients of the others cut": "aim met",
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

func TestTargetsPicture_IsXML(t *testing.T) {
	nan := math.NaN()
	all := []standing{
		{goal: goal{title: "a < b", what: "x", least: 2, aim: 4, more: true}, measured: 3},
		{goal: goal{title: "none", least: 0, aim: 0}, measured: 0},
		{goal: goal{title: "not there", least: 1, aim: 0.5}, measured: nan},
	}
	svg := targetsPicture(all)
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
