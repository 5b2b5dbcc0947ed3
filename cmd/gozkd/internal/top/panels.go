package top

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/gozkd/gozkd/internal/printable"
)

// panelLines returns the lines that are always visible, including the tabs, and those that scroll.
func (m *model) panelLines() (fixed, scrolled []string) {
	switch m.panel {
	case hotPanel:
		scrolled = m.hotLines()
	case trendsPanel:
		scrolled = m.trendLines()
	default:
		fixed, scrolled = m.clientLines()
	}
	return append([]string{m.tabs()}, fixed...), scrolled
}

func (m *model) panelLength() int {
	_, scrolled := m.panelLines()
	return len(scrolled)
}

// tabs returns the names of the panels, with the visible panel marked.
func (m *model) tabs() string {
	var b strings.Builder
	for i, name := range panelNames {
		text := fmt.Sprintf(" %d %s ", i+1, name)
		if panel(i) == m.panel {
			b.WriteString(m.theme.title.Styled("[" + text[1:len(text)-1] + "]"))
		} else {
			b.WriteString(m.theme.dim.Styled(text))
		}
	}
	return b.String()
}

func (m *model) notes(list []string) []string {
	lines := make([]string, len(list))
	for i, n := range list {
		lines[i] = m.theme.warn.Styled(fit(printable.Dotted(n), m.width, false))
	}
	return lines
}

// clientLines returns the notes and the heading, and a line per client.
func (m *model) clientLines() (fixed, rows []string) {
	list, missing := m.ensemble.clients()
	fixed = m.notes(missing)
	if len(list) == 0 {
		if len(missing) == 0 && m.ensemble.totals().up > 0 {
			fixed = append(fixed, "no sessions")
		}
		return fixed, nil
	}
	all := clientColumns(m.ensemble.now)
	by := all[m.sortBy]
	columns := make([]column[*session], len(all))
	for i := range all {
		columns[i] = all[i].column
	}
	if columns[m.sortBy].rank > 1 {
		columns[m.sortBy].rank = 1 // the sort column is visible if there is any room
	}
	columns = lay(columns, m.width)
	fixed = append(fixed, heading(columns, m.theme.heading, by.title, by.rises != m.reversed))
	for _, s := range sorted(list, by, m.reversed) {
		rows = append(rows, line(columns, s))
	}
	return fixed, rows
}

// hotLines returns the hot paths and, beside or below them, the hot clients.
func (m *model) hotLines() []string {
	h, missing := m.ensemble.hot()
	lines := m.notes(missing)
	if len(h.Paths)+len(h.Clients) == 0 {
		if len(missing) == 0 && m.ensemble.totals().up > 0 {
			lines = append(lines, fmt.Sprintf("no requests in the last %d s", h.Window))
		}
		return lines
	}
	const tablesBeside = 120
	rate := func(title string, of func(i int) float64) column[int] {
		return column[int]{title: title, width: 8, right: true, cell: func(i, _ int) (string, ansi.Style) { return perSecond(of(i)), nil }}
	}
	name := func(title string, width int, grows bool, of func(i int) string) column[int] {
		return column[int]{title: title, width: width, grows: grows, rank: 1, cell: func(i, _ int) (string, ansi.Style) { return printable.Dotted(of(i)), nil }}
	}
	table := func(width, n int, columns []column[int]) []string {
		columns = lay(columns, width)
		lines := []string{heading(columns, m.theme.heading, "", false)}
		for i := range n {
			lines = append(lines, line(columns, i))
		}
		return lines
	}
	paths := []column[int]{
		rate("READ/S", func(i int) float64 { return h.Paths[i].Reads }), rate("WRITE/S", func(i int) float64 { return h.Paths[i].Writes }),
		name("PATH", 20, true, func(i int) string { return h.Paths[i].Path }),
	}
	clients := []column[int]{
		rate("READ/S", func(i int) float64 { return h.Clients[i].Reads }), rate("WRITE/S", func(i int) float64 { return h.Clients[i].Writes }),
		name("CLIENT", 21, true, func(i int) string { return cmp.Or(h.Clients[i].Address, "(disconnected)") }),
		name("SESSION", 18, false, func(i int) string { return h.Clients[i].Session }),
	}
	if m.width < tablesBeside {
		lines = append(lines, table(m.width, len(h.Paths), paths)...)
		lines = append(lines, "")
		return append(lines, table(m.width, len(h.Clients), clients)...)
	}
	half := (m.width - 2) / 2
	return append(lines, beside(half, table(half, len(h.Paths), paths), table(half, len(h.Clients), clients))...)
}

// beside returns the lines of two blocks next to each other. Those of left are padded to width.
func beside(width int, left, right []string) []string {
	lines := append(left, make([]string, max(0, len(right)-len(left)))...)
	for i, l := range lines {
		lines[i] = fit(l, width, false)
		if i < len(right) {
			lines[i] += "  " + right[i]
		}
	}
	return lines
}

// trends are the charts of the trends panel, each with a common scale for all members.
var trends = [...]struct {
	title string
	of    metric
	text  func(float64) string
}{
	{"requests/s", requests, perSecond},
	{"latency ms", func(r *Rates) float64 { return r.LatencyMs }, millis},
	{"fsync ms", func(r *Rates) float64 { return r.FsyncMs }, millis},
	{"outstanding", func(r *Rates) float64 { return r.Outstanding }, count},
}

func (m *model) trendLines() []string {
	const number, name, chartBeside = 7, 4, 100
	var lines []string
	draw := func(width, i int) []string {
		t := trends[i]
		top := 0.0
		for _, mem := range m.ensemble.members {
			top = max(top, peak(mem.values(t.of)))
		}
		title := t.title
		if top > 0 {
			title += ", up to " + t.text(top)
		}
		block := []string{m.theme.heading.Styled(fit(title, width, false))}
		for _, mem := range m.ensemble.members {
			values := mem.values(t.of)
			now := unknown
			if len(values) > 0 {
				now = values[len(values)-1]
			}
			block = append(block, fit(idText(mem), name-1, true)+" "+m.theme.trend.Styled(sparkline(values, width-number-name, top))+fit(t.text(now), number, true))
		}
		return block
	}
	for i := 0; i < len(trends); i += 2 {
		if m.width < chartBeside {
			lines = append(append(append(lines, draw(m.width, i)...), draw(m.width, i+1)...), "")
			continue
		}
		half := (m.width - 2) / 2
		lines = append(append(lines, beside(half, draw(half, i), draw(half, i+1))...), "")
	}
	return lines
}
