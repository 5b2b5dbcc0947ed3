//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// goal is a figure that gozkd must reach: a ratio to ZooKeeper's, or a value of its own.
type goal struct {
	title      string
	file       string // JSON file without extension
	row, what  string // as in the readings; for a throughput table the row's name, a comma, and its shape
	kind       goalKind
	least, aim float64
	more       bool // larger is better

	// Required conditions; 0: any.
	znodes, sessions int
}

// goalKind selects the value that is compared with least and aim.
type goalKind string

const (
	itself  goalKind = ""             // gozkd's figure
	ratioTo goalKind = "ratio"        // gozkd's over ZooKeeper's
	factor  goalKind = "times better" // ZooKeeper's over gozkd's, where less is better
)

// goals returns all goals in the order of the table.
func goals() []goal {
	const manyZnodes, manySessions = 1_000_000, 5_000
	var all []goal
	// speed adds the two figures of most rows: operations per second, and CPU per operation.
	speed := func(title, file, row string, leastSpeed, leastCPU, aimSpeed, aimCPU float64) {
		all = append(all, goal{title: title, file: file, row: row, what: "ops/s", kind: ratioTo, least: leastSpeed, aim: aimSpeed, more: true},
			goal{title: title, file: file, row: row, what: "CPU µs/op", kind: ratioTo, least: leastCPU, aim: aimCPU})
	}
	lower := func(title, file, row, what string, kind goalKind, least, aim float64) *goal {
		all = append(all, goal{title: title, file: file, row: row, what: what, kind: kind, least: least, aim: aim, more: kind == factor})
		return &all[len(all)-1]
	}
	speed("get 100 B, 16x16", "throughput", "get 100 B, 16x16", 6, 0.12, 10, 0.06)
	speed("get, 100x1", "throughput", "get 100 B, 100x1", 1.6, 0.5, 2.3, 0.33)
	lower("get, 1x1", "throughput", "get 100 B, 1x1", "p50 µs", ratioTo, 0.25, 0.15)
	speed("getChildren of 1,000, 16x16", "throughput", "getChildren of 1000, 16x16", 5, 0.2, 12, 0.06)
	speed("mixed 90/10, 16x16", "throughput", "mixed: 90% get, 10% set, 16x16", 2.5, 0.3, 4, 0.15)
	speed("set 100 B, 16x16", "throughput", "set 100 B, 16x16", 3, 0.25, 5, 0.12)
	speed("create, 16x16", "throughput", "create 100 B, 16x16", 3, 0.25, 5, 0.12)
	speed("set 100 B, 100x1", "throughput", "set 100 B, 100x1", 1.5, 0.6, 2.3, 0.4)
	lower("set 100 B, 1x1", "throughput", "set 100 B, 1x1", "p50 µs", ratioTo, 0.7, 0.5)
	speed("multi of 10, 16x16", "throughput", "multi of 10 sets, 16x16", 4, 0.2, 6, 0.1)
	watchers := fanOuts[0].String()
	lower("watch: 1,000 watchers notified", "watches", watchers, "µs per event", factor, 1.4, 2)
	lower("watch: 1,000 watchers notified", "watches", watchers, "CPU µs per event", ratioTo, 0.6, 0.4)
	speed("session opened and closed", "connects", "session opened and closed, 16x1", 1.8, 0.6, 2.8, 0.35)
	speed("three members: set 16x16", "ensemble", "set 100 B, 16x16", 3, 0.33, 5, 0.18)
	speed("three members: set 100x1", "ensemble", "set 100 B, 100x1", 2, 0.5, 3, 0.3)
	lower("three members: set 1x1 through a follower", "ensemble", "set 100 B, 1x1", "p50 µs", ratioTo, 0.75, 0.5)
	speed("three members: get 16x16", "ensemble", "get 100 B, 16x16", 5, 0.15, 9, 0.07)
	lower("exec to first answered create, empty, one member", "start", startOne, "wall ms", itself, 50, 15)
	lower("exec to first answered create, empty, three members", "start", startThree, "wall ms", itself, 500, 150)
	for _, what := range []string{"wall ms", "CPU ms"} {
		lower("start after kill with 1,000,000 znodes", "start", startAgain, what, factor, 4, 10).znodes = manyZnodes
	}
	lower("resident, empty", "resident", residentEmpty, "RSS MB", itself, 20, 10)
	for _, what := range []string{"RSS MB", "peak MB"} {
		lower("resident, under load with few znodes", "resident", residentLoaded, what, itself, 50, 25)
	}
	for _, what := range []string{"RSS MB", "peak MB"} {
		lower("resident, 1,000,000 znodes of 100 B", "resident", residentZnodes, what, itself, 440, 300).znodes = manyZnodes
	}
	lower("resident, 5,000 idle sessions", "resident", residentSessions, "RSS MB", itself, 65, 30).sessions = manySessions
	lower("leader killed: no successful write for", "failover", failoverRow, "no write ms", itself, 400, 150)
	lower("leader killed: clients of living members cut", "failover", failoverRow, "clients of the others cut", itself, 0, 0)
	lower("writes while checkpoints of 1,000,000 znodes run, to without", "calm", fmt.Sprintf(calmRowPattern, checkpointing), "p99.9 ratio", itself, 3, 1.5).znodes = manyZnodes
	return all
}

// goalWarm is how many seconds a JVM must be under load before figures count.
const goalWarm = 10

// otherwise describes how the conditions differ from the goal's, or returns an empty string.
func (g *goal) otherwise(c conditions) string {
	switch warmed := g.file == "throughput" || g.file == "ensemble" || g.file == "connects" || g.file == "watches"; {
	case g.znodes != 0 && c.Znodes != g.znodes:
		return thousands(float64(c.Znodes)) + " znodes"
	case g.sessions != 0 && c.Sessions != g.sessions:
		return thousands(float64(c.Sessions)) + " sessions"
	case warmed && c.Warm < goalWarm:
		return number(c.Warm) + " s of load before"
	}
	return ""
}

// standing is the result for a goal.
type standing struct {
	goal
	measured, own, other, ceiling float64 // measured follows from own and other by the goal's kind; NaN: missing
	failed                        bool    // the measurement was tried
	differently                   string  // how the conditions differ from the goal's; empty: not at all
}

// Verdicts.
const (
	aimMet      = "aim met"
	leastMet    = "least met"
	missed      = "missed"
	failed      = "failed"
	notMeasured = "not measured"
	notAsAsked  = "not as asked" // measured under other conditions
)

// verdict compares the figure with the goal.
func (s *standing) verdict() string {
	reached := func(limit float64) bool {
		if s.more {
			return s.measured >= limit
		}
		return s.measured <= limit
	}
	switch {
	case s.failed:
		return failed
	case math.IsNaN(s.measured):
		return notMeasured
	case s.differently != "":
		return notAsAsked
	case reached(s.aim):
		return aimMet
	case reached(s.least):
		return leastMet
	}
	return missed
}

// benchTargets reads the directory's figures and prints which goals they reach.
func benchTargets(_ context.Context, s *settings) {
	if s.out.dir == "" {
		must.Failf("where are the figures? Give the folder with -out")
	}
	figures := readFigures(s.out.dir)
	goals := goals()
	var table [][]string
	count := map[string]int{}
	for _, g := range goals {
		st := figures.standing(g)
		cell := func(v float64) string {
			if math.IsNaN(v) {
				return ""
			}
			return number(v)
		}
		what := g.what
		if g.kind != itself {
			what += ", " + string(g.kind)
		}
		verdict := st.verdict()
		count[verdict]++
		if verdict == notAsAsked {
			verdict += ": " + st.differently
		}
		table = append(table, []string{g.title, what, cell(st.own), cell(st.other), cell(st.ceiling), cell(st.measured), number(g.least), number(g.aim), verdict})
	}
	s.out.table("What is to be reached, and what is", []string{"row", "quantity", "gozkd", "ZooKeeper", "bare server", "measured", "at least", "aim", ""}, table)
	s.out.printf("\n%d goals: %d aims met, %d met at least, %d missed; %d failed, %d not measured, %d measured under other conditions.\n", len(goals),
		count[aimMet], count[leastMet], count[missed], count[failed], count[notMeasured], count[notAsAsked])
	s.out.printf("\nMeasured is gozkd's figure itself, or its ratio to ZooKeeper's, or how many times better it is where less is better. " +
		"The bare server does nothing but read frames, write a log and answer; only gets and sets have one.\n")
	for _, line := range figures.from() {
		s.out.printf("\n* %s", line)
	}
	s.out.printf("\n")
}

// figureKey identifies a figure of a directory.
type figureKey struct{ file, row, what string }

// figuresFound holds the figures of a directory.
type figuresFound struct {
	medians    map[figureKey]map[string]float64 // by server: the first word of its name
	conditions map[string]conditions            // by file
	failed     map[[2]string]bool               // by file and row; row "": the whole file
}

// from returns, per file that goals need, the date and commit of its figures.
func (f *figuresFound) from() (lines []string) {
	for _, g := range goals() {
		line := g.file + ": not measured"
		if c, ok := f.conditions[g.file]; ok {
			line = fmt.Sprintf("%s: %s, commit %s", g.file, c.Date, c.Commit)
		}
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// readFigures reads all JSON files of a directory.
func readFigures(dir string) *figuresFound {
	found := &figuresFound{map[figureKey]map[string]float64{}, map[string]conditions{}, map[[2]string]bool{}}
	names := must.Get(filepath.Glob(filepath.Join(dir, "*.json")))
	if len(names) == 0 {
		must.Failf("%s has no figures: %w", dir, fs.ErrNotExist)
	}
	for _, name := range names {
		b := must.Get(os.ReadFile(name))
		var c contents
		if err := json.Unmarshal(b, &c); err != nil {
			must.Failf("%s: %w", name, err)
		}
		file := strings.TrimSuffix(filepath.Base(name), ".json")
		found.conditions[file] = c.Conditions
		for _, p := range c.Failed {
			found.failed[[2]string{file, p.Row}] = true
		}
		for _, r := range c.Readings {
			found.note(figureKey{file, r.Row, r.What}, r.Server, r.Value.Median)
		}
		for _, c := range c.Rows {
			for _, f := range c.Servers {
				found.note(figureKey{file, c.key(), "ops/s"}, f.Server, f.OpsPerSecond.Median)
				found.note(figureKey{file, c.key(), "CPU µs/op"}, f.Server, f.CPU.Median)
				found.note(figureKey{file, c.key(), "p50 µs"}, f.Server, f.P50)
			}
		}
	}
	return found
}

func (f *figuresFound) note(k figureKey, server string, v float64) {
	if f.medians[k] == nil {
		f.medians[k] = map[string]float64{}
	}
	kind, _, _ := strings.Cut(server, " ")
	f.medians[k][kind] = v
}

// get returns a figure, or NaN.
func (f *figuresFound) get(k figureKey, kind string) float64 {
	if v, ok := f.medians[k][kind]; ok {
		return v
	}
	return math.NaN()
}

func (f *figuresFound) standing(g goal) standing {
	k := figureKey{g.file, g.row, g.what}
	st := standing{goal: g, own: f.get(k, "gozkd"), other: f.get(k, "ZooKeeper"), ceiling: math.NaN()}
	if g.file == "throughput" { // the bare server got the same frames, and syncs for sets
		row := g.row
		if set, shape, ok := strings.Cut(row, "set 100 B, "); ok && set == "" {
			row = "set 100 B" + bareSynced + ", " + shape
		}
		st.ceiling = f.get(figureKey{"limits", row, g.what}, "bare")
	}
	switch st.measured = st.own; g.kind {
	case ratioTo:
		st.measured = st.own / st.other
	case factor:
		st.measured = st.other / st.own
	}
	st.differently = g.otherwise(f.conditions[g.file])
	// A measured figure counts, even if something else of its row has failed.
	st.failed = math.IsNaN(st.measured) && (f.failed[[2]string{g.file, g.row}] || f.failed[[2]string{g.file, ""}])
	return st
}
