//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// goal is one figure that gozkd must reach: a ratio to ZooKeeper's, or a value of its own.
type goal struct {
	title      string
	file       string // of the folder, without its ending
	row, what  string // of the readings; a row of a throughput table is its name, a comma, and its shape
	ratio      bool
	least, aim float64
	more       bool // larger is better
}

// goals returns what must be reached, in the order of the table.
func goals() []goal {
	var all []goal
	// speed adds the two figures that most rows have: operations per second, and CPU of each.
	speed := func(title, file, row string, leastSpeed, leastCPU, aimSpeed, aimCPU float64) {
		all = append(all, goal{title, file, row, "ops/s", true, leastSpeed, aimSpeed, true}, goal{title, file, row, "CPU µs/op", true, leastCPU, aimCPU, false})
	}
	lower := func(title, file, row, what string, ratio bool, least, aim float64) {
		all = append(all, goal{title, file, row, what, ratio, least, aim, false})
	}
	speed("get 100 B, 16x16", "throughput", "get 100 B, 16x16", 6, 0.12, 10, 0.06)
	speed("get, 100x1", "throughput", "get 100 B, 100x1", 1.6, 0.5, 2.3, 0.33)
	lower("get, 1x1", "throughput", "get 100 B, 1x1", "p50 µs", true, 0.25, 0.15)
	speed("getChildren of 1,000, 16x16", "throughput", "getChildren of 1000, 16x16", 5, 0.2, 12, 0.06)
	speed("mixed 90/10, 16x16", "throughput", "mixed: 90% get, 10% set, 16x16", 2.5, 0.3, 4, 0.15)
	speed("set 100 B, 16x16", "throughput", "set 100 B, 16x16", 3, 0.25, 5, 0.12)
	speed("create, 16x16", "throughput", "create 100 B, 16x16", 3, 0.25, 5, 0.12)
	speed("set 100 B, 100x1", "throughput", "set 100 B, 100x1", 1.5, 0.6, 2.3, 0.4)
	lower("set 100 B, 1x1", "throughput", "set 100 B, 1x1", "p50 µs", true, 0.7, 0.5)
	speed("multi of 10, 16x16", "throughput", "multi of 10 sets, 16x16", 4, 0.2, 6, 0.1)
	watchers := fanOuts[0].String()
	lower("watch: 1,000 notified, time", "watches", watchers, "µs per event", true, 1/1.4, 1/2.0)
	lower("watch: 1,000 notified, CPU", "watches", watchers, "CPU µs per event", true, 0.6, 0.4)
	speed("session opened and closed", "connects", "session opened and closed, 16x1", 1.8, 0.6, 2.8, 0.35)
	speed("three members: set 16x16", "ensemble", "set 100 B, 16x16", 3, 0.33, 5, 0.18)
	speed("three members: set 100x1", "ensemble", "set 100 B, 100x1", 2, 0.5, 3, 0.3)
	lower("three members: set 1x1 through a follower", "ensemble", "set 100 B, 1x1", "p50 µs", true, 0.75, 0.5)
	speed("three members: get 16x16", "ensemble", "get 100 B, 16x16", 5, 0.15, 9, 0.07)
	lower("start, empty, one member", "start", startOne, "wall ms", false, 50, 15)
	lower("start, empty, three members", "start", startThree, "wall ms", false, 500, 150)
	lower("start after kill, time", "start", startAgain, "wall ms", true, 1/4.0, 1/10.0)
	lower("start after kill, CPU", "start", startAgain, "CPU ms", true, 1/4.0, 1/10.0)
	lower("resident, empty", "resident", residentEmpty, "RSS MB", false, 20, 10)
	lower("resident, under load with few znodes", "resident", residentLoaded, "peak MB", false, 50, 25)
	lower("resident, 1,000,000 znodes, at the end", "resident", residentZnodes, "RSS MB", false, 440, 300)
	lower("resident, 1,000,000 znodes, at the peak", "resident", residentZnodes, "peak MB", false, 440, 300)
	lower("resident, 5,000 idle sessions", "resident", residentSessions, "RSS MB", false, 65, 30)
	lower("leader killed: no write for", "failover", "leader killed, tickTime 2000", "no write ms", false, 400, 150)
	lower("leader killed: clients of the others cut", "failover", "leader killed, tickTime 2000", "clients of the others cut", false, 0, 0)
	lower("p99.9 of writes while checkpoints run, to without", "calm", fmt.Sprintf(calmRowPattern, checkpointing), "p99.9 ratio", false, 3, 1.5)
	return all
}

// standing is how a goal stands.
type standing struct {
	goal
	measured, own, other, ceiling float64 // measured is own, or own over other; NaN: not there
}

// verdict says how near the goal is.
func (s *standing) verdict() string {
	reached := func(limit float64) bool {
		if s.more {
			return s.measured >= limit
		}
		return s.measured <= limit
	}
	switch {
	case math.IsNaN(s.measured):
		return "not measured"
	case reached(s.aim):
		return "aim met"
	case reached(s.least):
		return "least met"
	}
	return "missed"
}

// benchTargets reads the figures of the folder and says which goals they reach.
func benchTargets(_ context.Context, s *settings) error {
	if s.out.dir == "" {
		return errors.New("where are the figures? Give the folder with -out")
	}
	figures, err := readFigures(s.out.dir)
	if err != nil {
		return err
	}
	var all []standing
	var table [][]string
	count := map[string]int{}
	for _, g := range goals() {
		st := figures.standing(g)
		all = append(all, st)
		count[st.verdict()]++
		cell := func(v float64) string {
			if math.IsNaN(v) {
				return ""
			}
			return number(v)
		}
		what := g.what
		if g.ratio {
			what += ", ratio"
		}
		table = append(table, []string{g.title, what, cell(st.own), cell(st.other), cell(st.ceiling), cell(st.measured), number(g.least), number(g.aim), st.verdict()})
	}
	s.out.table("What is to be reached, and what is", []string{"row", "quantity", "gozkd", "ZooKeeper", "bare server", "measured", "at least", "aim", ""}, table)
	s.out.printf("\n%d goals: %d aims met, %d met at least, %d missed, %d not measured.\n", len(all), count["aim met"], count["least met"], count["missed"], count["not measured"])
	return errors.Join(s.out.failed, s.out.picture("targets", targetsPicture(all)))
}

// figureKey names a figure of a folder.
type figureKey struct{ file, row, what string }

// figuresFound are the medians of a folder, by server: the first word of its name.
type figuresFound map[figureKey]map[string]float64

// readFigures reads all JSON files of a folder that commands wrote.
func readFigures(dir string) (figuresFound, error) {
	found := figuresFound{}
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s has no figures: %w", dir, fs.ErrNotExist)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var content struct {
			Rows     []comparison `json:"rows"`
			Readings []reading    `json:"readings"`
		}
		if err := json.Unmarshal(b, &content); err != nil {
			continue // another command's, of another form
		}
		file := strings.TrimSuffix(filepath.Base(name), ".json")
		for _, r := range content.Readings {
			found.note(figureKey{file, r.Row, r.What}, r.Server, r.Value.Median)
		}
		for _, c := range content.Rows {
			row := c.Row + ", " + c.Shape
			for _, f := range c.Servers {
				found.note(figureKey{file, row, "ops/s"}, f.Server, f.OpsPerSecond.Median)
				found.note(figureKey{file, row, "CPU µs/op"}, f.Server, f.CPU.Median)
				found.note(figureKey{file, row, "p50 µs"}, f.Server, f.P50)
			}
		}
	}
	return found, nil
}

func (f figuresFound) note(k figureKey, server string, v float64) {
	if f[k] == nil {
		f[k] = map[string]float64{}
	}
	kind, _, _ := strings.Cut(server, " ")
	f[k][kind] = v
}

// get returns a figure, or NaN.
func (f figuresFound) get(k figureKey, kind string) float64 {
	if v, ok := f[k][kind]; ok {
		return v
	}
	return math.NaN()
}

func (f figuresFound) standing(g goal) standing {
	k := figureKey{g.file, g.row, g.what}
	st := standing{goal: g, own: f.get(k, "gozkd"), other: f.get(k, "ZooKeeper"), ceiling: math.NaN()}
	if g.file == "throughput" { // the same frames of a bare server, which syncs for sets
		row := g.row
		if set, shape, ok := strings.Cut(row, "set 100 B, "); ok && set == "" {
			row = "set 100 B" + bareSynced + ", " + shape
		}
		st.ceiling = f.get(figureKey{"limits-bare", row, g.what}, "bare")
	}
	if st.measured = st.own; g.ratio {
		st.measured = st.own / st.other
	}
	return st
}
