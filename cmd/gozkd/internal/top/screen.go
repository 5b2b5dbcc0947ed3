package top

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/internal/probe"
)

// screen returns the whole screen: m.height lines of at most m.width cells.
func (m *model) screen() string {
	if m.help {
		return m.frame(helpLines(m.theme), nil)
	}
	lines := m.head()
	footer := []string{m.footer()}
	// A high screen always shows the trends.
	const panelRoom = 12
	if trends := m.trendLines(); m.panel != trendsPanel && len(lines)+len(trends)+panelRoom < m.height {
		lines = append(lines, trends...)
	}
	fixed, rows := m.panelLines()
	lines = append(lines, fixed...)
	room := m.height - len(lines) - len(footer)
	rows = rows[max(0, min(m.scroll, len(rows)-room)):]
	if more := len(rows) - room; more > 0 && room > 0 {
		rows = append(rows[:room-1:room-1], m.theme.dim.Styled(fmt.Sprintf("… %d more", more+1)))
	}
	return m.frame(append(lines, rows...), footer)
}

// frame puts the footer at the bottom and cuts off lines that do not fit.
func (m *model) frame(lines, footer []string) string {
	room := max(0, m.height-len(footer))
	if len(lines) > room {
		lines = lines[:room]
	}
	for len(lines) < room {
		lines = append(lines, "")
	}
	lines = append(lines, footer...)
	for i, l := range lines {
		lines[i] = ansi.Truncate(l, m.width, "…")
	}
	return strings.Join(lines[:min(len(lines), m.height)], "\n")
}

// head returns the lines above the panel: the ensemble and its members.
func (m *model) head() []string {
	e, th := &m.ensemble, m.theme
	lines := []string{m.titleLine(), m.totalsLine()}
	for _, p := range e.problems() {
		lines = append(lines, th.bad.Styled("! "+printable.Dotted(p)))
	}
	lines = append(lines, m.notes(e.info())...)
	lines = append(lines, memberLines(e, th, m.width, max(3, m.height/2))...)
	lines = append(lines, m.notes(e.missing(func(s *Sample) error { return s.MonitorErr }))...)
	return append(lines, "")
}

func (m *model) titleLine() string {
	e := &m.ensemble
	t := e.totals()
	role := "no leader"
	if l := e.followed(); l != nil {
		role = "leader " + l.name()
	} else if len(e.members) == 1 && e.members[0].up() {
		role = e.members[0].last.State.Mode
	} else if t.unknown > 0 {
		role = "leader unknown"
	}
	text := fmt.Sprintf("gozkd top  %d of %d up", t.serve, len(e.members))
	if t.unknown > 0 {
		text += fmt.Sprintf(", %d unknown", t.unknown)
	}
	text += "  " + role
	if t.up > 0 {
		text += fmt.Sprintf("  epoch %d  zxid %s", e.zxid().Epoch(), e.zxid())
	}
	clock := ""
	if !e.now.IsZero() {
		clock = e.now.Format("15:04:05")
	}
	if m.interval > 0 {
		clock = "every " + m.interval.String() + "  " + clock
	}
	if m.paused {
		clock = "PAUSED  " + clock
	}
	left := max(0, m.width-len(clock)-1)
	return m.theme.title.Styled(fit(fit(text, left, false)+" "+clock, m.width, false))
}

// totalsLine returns as many totals as fit, the most important first.
func (m *model) totalsLine() string {
	t := m.ensemble.totals()
	text, full := fmt.Sprintf("req %s/s", perSecond(t.rates.Requests)), false
	add := func(known bool, format, value string) {
		part := "  " + fmt.Sprintf(format, value)
		if full = full || known && len(text)+len(part) > m.width; known && !full {
			text += part
		}
	}
	add(!math.IsNaN(t.rates.LatencyMs), "lat %s ms", millis(t.rates.LatencyMs))
	add(true, "out %s", count(float64(t.outstanding)))
	add(true, "conns %s", count(float64(t.connections)))
	add(t.watches >= 0, "watches %s", count(float64(t.watches)))
	add(true, "znodes %s", count(float64(t.znodes)))
	add(t.dataBytes >= 0, "data %s", size(t.dataBytes))
	add(!math.IsNaN(t.rates.Reads), "reads %s/s", perSecond(t.rates.Reads))
	add(!math.IsNaN(t.rates.Writes), "writes %s/s", perSecond(t.rates.Writes))
	return text
}

// memberLines returns the table of members with at most most rows.
func memberLines(e *ensemble, th theme, width, most int) []string {
	columns := lay(memberColumns(e, th), width)
	lines := []string{heading(columns, th.heading, "", false)}
	for i, m := range e.members {
		if i == most-1 && len(e.members) > most {
			lines = append(lines, th.dim.Styled(fmt.Sprintf("… %d more", len(e.members)-i)))
			break
		}
		if m.up() {
			lines = append(lines, line(columns, m))
			continue
		}
		// The cause takes the place of the other columns.
		named := columns[:min(3, len(columns))]
		text := line(named, m)
		_, style := m.role(e, th)
		lines = append(lines, text+" "+style.Styled(fit(causeText(e, m), width-ansi.StringWidth(text)-gap, false)))
	}
	return lines
}

// causeText returns why and for how long a member has not been serving, and its lag if known.
func causeText(e *ensemble, m *member) string {
	if !m.hasSample {
		return ""
	}
	text := printable.Dotted(probe.Cause(m.last.Err))
	if down := e.now.Sub(m.since); down >= time.Second {
		text += " (for " + age(down) + ")"
	}
	if l := e.lag(m); l.known {
		text += ", lag " + lagText(l)
	}
	return text
}

func (m *model) footer() string {
	keys := []struct{ key, does string }{
		{"1-3 tab", "panel"}, {"s", "sort"}, {"r", "reverse"}, {"↑↓", "scroll"}, {"p", "pause"}, {"space", "now"}, {"?", "help"}, {"q", "quit"},
	}
	text := ""
	for _, k := range keys {
		longer := text + m.theme.key.Styled(k.key) + " " + k.does + "  "
		if ansi.StringWidth(longer) > m.width+2 {
			break
		}
		text = longer
	}
	return strings.TrimRight(text, " ")
}

func helpLines(th theme) []string {
	text := []string{
		"gozkd top",
		"",
		"  1 2 3, tab      panel: clients, hot paths and clients, trends",
		"  s S             sort the clients by the next or previous column",
		"  r               reverse the order",
		"  ↑ ↓ pgup pgdn   scroll the panel; also home and end",
		"  p               pause: freeze the screen",
		"  space, ?, q     ask all members now, this page, quit",
		"",
		"  REQ/S           requests per second since the last round, including pings",
		"  LAG             log entries that the member lacks, as the leader says; with ~",
		"                  transactions its zxid is behind, read at about the same time",
		"  LAT ms          mean latency of the requests since the last round; with *",
		"                  since the member's start, because mntr does not report it",
		"  FSYNC           mean duration of a sync of the log, in ms",
		"  OUT CONN WATCH  unanswered requests, connections, watches",
		"  cut off         the member runs, but has no leader",
		"  in step, ...    what the others know of a member whose client port is unknown",
		"",
		"  A gap in a trend: the member was down, or its counters were reset.",
		"  If data is missing: 4lw.commands.whitelist=srvr,mntr,cons,conf,hotp in zoo.cfg",
	}
	text[0] = th.title.Styled(text[0])
	return append(text, "", th.dim.Styled("  any key: back"))
}

// theme holds the styles. The zero value is plain text.
type theme struct {
	title, heading, dim, bad, warn, leader, trend, key ansi.Style
}

// colors returns the theme for a terminal, in the sixteen colors that its user has configured, or
// without colors if NO_COLOR is set.
func colors(getenv func(string) string) theme {
	if getenv("TERM") == "dumb" {
		return theme{}
	}
	const bold, faint, reverse = "1", "2", "7"
	th := theme{title: ansi.Style{bold}, heading: ansi.Style{reverse}, dim: ansi.Style{faint}, bad: ansi.Style{bold}, leader: ansi.Style{bold}, key: ansi.Style{bold}}
	if getenv("NO_COLOR") == "" {
		const red, green, yellow, cyan = "31", "32", "33", "36"
		th.bad, th.warn, th.leader, th.trend = ansi.Style{bold, red}, ansi.Style{yellow}, ansi.Style{bold, green}, ansi.Style{cyan}
	}
	return th
}
