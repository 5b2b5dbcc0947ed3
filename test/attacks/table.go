package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// The targets.
const (
	maxP99       = 250 * time.Millisecond
	maxMemory    = 500e6
	maxSigterm   = 2 * time.Second
	maxLogPerSec = 50e3
)

// row is the outcome of an attack against a server.
type row struct {
	attack    *attack
	server    string
	others    others
	peak      int64
	sigterm   time.Duration
	logRate   float64  // bytes per second
	writeRate float64  // replicated writes per second besides those of the probe
	races     int      // reports of the race detector
	died      []string // processes that ended by themselves
	breaches  []string
	lasting   []string // damage that a restart did not mend
	notes     []string
	failed    string // why the attack was not carried out; empty: it was
}

// missed returns the targets that the row misses.
func (r *row) missed(s *settings) (list []string) {
	miss := func(missed bool, format string, args ...any) {
		if missed {
			list = append(list, fmt.Sprintf("%s: %s: %s", r.server, r.attack.name, fmt.Sprintf(format, args...)))
		}
	}
	o := &r.others
	miss(o.Samples == 0, "the others got no answer")
	miss(r.failed != "", "attack not carried out: %s", r.failed)
	if !s.race { // with the race detector everything is slow and large
		miss(o.P99 > maxP99, "p99 of others %v, target %v", o.P99.Round(time.Millisecond), maxP99)
		miss(o.Disconnected > 0, "others were disconnected %d times", o.Disconnected)
		miss(float64(r.peak) > maxMemory, "%.0f MB of memory, target %.0f", float64(r.peak)/1e6, maxMemory/1e6)
		miss(r.sigterm > maxSigterm, "%.1f s from SIGTERM to the end, target %v", r.sigterm.Seconds(), maxSigterm)
		miss(r.logRate > maxLogPerSec, "%.0f kB of log per second, target %.0f", r.logRate/1e3, maxLogPerSec/1e3)
	}
	writes := r.attack.writes
	miss(writes > 0 && r.writeRate > float64(writes), "%.0f replicated writes per second, target %d", r.writeRate, writes)
	miss(r.races > 0, "%d reports of the race detector", r.races)
	for _, d := range r.died {
		miss(true, "died: %s", d)
	}
	for _, b := range r.breaches {
		miss(true, "a stranger got: %s", b)
	}
	for _, l := range r.lasting {
		miss(true, "lasting damage: %s", l)
	}
	return list
}

// cells returns the figures of the row: attack, server, the others' p50, p99 and maximum in ms,
// peak in MB, seconds after SIGTERM, remarks.
func (r *row) cells() []string {
	ms := func(d time.Duration) string { return fmt.Sprintf("%.0f", d.Seconds()*1e3) }
	remarks := slices.Clone(r.notes)
	remark := func(there bool, format string, args ...any) {
		if there {
			remarks = append(remarks, fmt.Sprintf(format, args...))
		}
	}
	remark(r.others.Disconnected > 0, "**others disconnected: %d**", r.others.Disconnected)
	remark(len(r.died) > 0, "**died: %d**", len(r.died))
	remark(len(r.lasting) > 0, "**damaged after the restart**")
	remark(r.logRate >= 1e3, "log %.0f kB/s", r.logRate/1e3)
	remark(r.attack.writes > 0, "%.0f writes/s", r.writeRate)
	remark(r.failed != "", "**not carried out**")
	for _, b := range r.breaches {
		remarks = append(remarks, "**"+b+"**")
	}
	p50, p99, highest := ms(r.others.P50), ms(r.others.P99), ms(r.others.Max)
	if r.others.Samples == 0 {
		p50, p99, highest = "–", "–", "–"
	}
	return []string{r.attack.name, r.server, p50, p99, highest,
		fmt.Sprintf("%.0f", float64(r.peak)/1e6), fmt.Sprintf("%.1f", r.sigterm.Seconds()), strings.Join(remarks, "; ")}
}

// String returns the row for the terminal, with the damage in full.
func (r *row) String() string {
	cells := r.cells()
	s := fmt.Sprintf("%-20s %-10s others p50 %s p99 %s max %s ms | %s MB | SIGTERM %s s | %s",
		cells[0], cells[1], cells[2], cells[3], cells[4], cells[5], cells[6], cells[7])
	for _, d := range slices.Concat(r.died, r.lasting, []string{r.failed}) {
		if d != "" {
			s += "\n    " + d
		}
	}
	return s
}

// table returns the rows in Markdown: one line per attack, one column per server, each with p99,
// peak memory, the time after SIGTERM if it is a second or more, and remarks.
func table(rows []*row) string {
	var servers []string
	for _, r := range rows {
		if !slices.Contains(servers, r.server) {
			servers = append(servers, r.server)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| attack | the stranger sends | %s |\n|---|---%s|\n", strings.Join(servers, " | "), strings.Repeat("|---", len(servers)))
	for _, a := range allAttacks() {
		cells := make([]string, len(servers))
		for _, r := range rows {
			if r.attack.name != a.name {
				continue
			}
			c := r.cells()
			text := fmt.Sprintf("%s ms, %s MB", c[3], c[5])
			if r.sigterm >= time.Second {
				text += fmt.Sprintf(", SIGTERM %s s", c[6])
			}
			if c[7] != "" {
				text += "; " + c[7]
			}
			cells[slices.Index(servers, r.server)] = text
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", a.name, a.what, strings.Join(cells, " | "))
	}
	return b.String()
}

// The marks in the page between which the table stands.
const (
	tableBegin = "<!-- attacks: generated -->\n"
	tableEnd   = "<!-- attacks: end -->\n"
)

// writePage replaces the table in a page.
func writePage(name, table string) error {
	page, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	before, rest, found := bytes.Cut(page, []byte(tableBegin))
	_, after, closed := bytes.Cut(rest, []byte(tableEnd))
	if !found || !closed {
		return errors.New(name + " has no marks for the table")
	}
	text := string(before) + tableBegin + table + tableEnd + string(after)
	return os.WriteFile(name, []byte(text), 0o644)
}
