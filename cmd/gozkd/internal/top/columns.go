package top

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/internal/probe"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/facts"
)

// memberColumns returns the columns of a member that serves. The widest screen shows all of them.
func memberColumns(e *ensemble, th theme) []column[*member] {
	plain := func(text func(m *member) string) func(*member, int) (string, ansi.Style) {
		return func(m *member, _ int) (string, ansi.Style) { return text(m), nil }
	}
	number := func(title string, width, rank int, text func(m *member) string) column[*member] {
		return column[*member]{title: title, width: width, rank: rank, right: true, cell: plain(text)}
	}
	monitored := func(key string, format func(int64) string) func(*member) string {
		return func(m *member) string {
			if n, ok := m.last.Monitor.Int(key); ok {
				return format(n)
			}
			return absent
		}
	}
	decimal := func(n int64) string { return count(float64(n)) }
	top := 0.0
	for _, m := range e.members {
		top = max(top, peak(m.values(requests)))
	}
	columns := []column[*member]{
		{title: "ID", width: 3, right: true, cell: plain(idText)},
		{title: "SERVER", width: 15, grows: true, most: 28, cell: plain(func(m *member) string { return m.Address })},
		{title: "ROLE", width: 10, cell: func(m *member, _ int) (string, ansi.Style) { return m.role(e, th) }},
		number("ZXID", 13, 6, func(m *member) string { return m.last.State.Zxid.String() }),
		number("LAG", 6, 1, func(m *member) string { return lagText(e.lag(m)) }),
		number("REQ/S", 5, 0, func(m *member) string { return perSecond(m.rates.Requests) }),
		{title: "TREND", width: 8, rank: 2, cell: func(m *member, width int) (string, ansi.Style) {
			return sparkline(m.values(requests), width, top), th.trend
		}},
		number("READ/S", 6, 7, func(m *member) string { return perSecond(m.rates.Reads) }),
		number("WRITE/S", 7, 7, func(m *member) string { return perSecond(m.rates.Writes) }),
		number("LAT ms", 6, 1, latencyText),
		number("FSYNC", 5, 3, func(m *member) string { return millis(m.rates.FsyncMs) }),
		number("OUT", 4, 1, func(m *member) string { return decimal(m.last.State.Outstanding) }),
		number("CONN", 5, 1, func(m *member) string { return decimal(m.last.State.Connections) }),
		number("WATCH", 5, 5, monitored("watch_count", decimal)),
		number("ZNODES", 6, 8, func(m *member) string { return decimal(m.last.State.Znodes) }),
		number("DATA", 5, 8, monitored("approximate_data_size", size)),
		{title: "VERSION", width: 12, rank: 9, grows: true, most: 46, cell: plain(versionText)},
	}
	if slices.ContainsFunc(e.members, func(m *member) bool { tls, _ := m.last.Monitor.PeerLinks(); return tls > 0 }) {
		columns = append(columns, number("LINKS TLS", 9, 4, linksText))
	}
	return columns
}

func linksText(m *member) string {
	tls, all := m.last.Monitor.PeerLinks()
	if all == 0 {
		return absent
	}
	return fmt.Sprintf("%d of %d", tls, all)
}

func idText(m *member) string {
	if m.ID == 0 {
		return absent
	}
	return strconv.FormatUint(memberid.Number(m.ID), 10)
}

// role returns the text of the column ROLE, and its style.
func (m *member) role(e *ensemble, th theme) (text string, style ansi.Style) {
	switch {
	case !m.hasSample:
		return "asking", th.dim
	case m.unasked():
		return e.peer(m).Role, th.dim
	case m.last.Err != nil && probe.Reached(m.last.Err):
		return "cut off", th.bad
	case m.last.Err != nil:
		return "down", th.bad
	}
	switch m.last.State.Mode {
	case facts.Leader, facts.Standalone:
		style = th.leader
	case facts.ReadOnly:
		style = th.warn
	}
	return m.last.State.Mode, style
}

func lagText(l lag) string {
	switch {
	case !l.known:
		return absent
	case l.estimated && l.n > 0:
		return "~" + count(float64(l.n))
	}
	return count(float64(l.n))
}

// versionText returns the release: gozkd's own release if the member runs gozkd.
func versionText(m *member) string {
	release, rest, _ := strings.Cut(m.last.State.Version, "-")
	if m.last.State.Gozkd() {
		return printable.Dotted(rest)
	}
	return printable.Dotted(release)
}

// latencyText returns the latency of the last round or, if mntr lacks it, since the start, with *.
func latencyText(m *member) string {
	if _, ok := m.last.Monitor["cnt_readlatency"]; ok {
		return millis(m.rates.LatencyMs)
	}
	return millis(m.last.State.LatencyMs.Avg) + "*"
}

type metric func(*Rates) float64

func requests(r *Rates) float64 { return r.Requests }

func (m *member) values(of metric) []float64 {
	list := make([]float64, len(m.trend))
	for i := range m.trend {
		list[i] = of(&m.trend[i])
	}
	return list
}

// clientColumn is a column of the table of clients that the table can be sorted by.
type clientColumn struct {
	column[*session]
	// compare puts first what users want to see: the largest numbers, the first names.
	compare func(a, b *session) int
	// rises: compare sorts in ascending order.
	rises bool
}

func clientColumns(now time.Time) []clientColumn {
	number := func(title string, width, rank int, value func(*session) float64, text func(float64) string) clientColumn {
		return clientColumn{
			column: column[*session]{title: title, width: width, rank: rank, right: true,
				cell: func(s *session, _ int) (string, ansi.Style) { return text(value(s)), nil }},
			compare: func(a, b *session) int { return cmp.Compare(value(b), value(a)) }, // an unknown number, NaN, is the smallest
		}
	}
	name := func(title string, width, rank int, grows bool, text func(*session) string) clientColumn {
		return clientColumn{
			column: column[*session]{title: title, width: width, rank: rank, grows: grows, most: 28,
				cell: func(s *session, _ int) (string, ansi.Style) { return printable.Dotted(text(s)), nil }},
			compare: func(a, b *session) int { return strings.Compare(text(a), text(b)) },
			rises:   true,
		}
	}
	ageMs := func(ms float64) string { return age(time.Duration(ms) * time.Millisecond) }
	whole := func(of func(*session) int64) func(*session) float64 {
		return func(s *session) float64 { return float64(of(s)) }
	}
	return []clientColumn{
		number("REQ/S", 6, 0, func(s *session) float64 { return s.Requests }, perSecond),
		name("CLIENT", 21, 0, true, func(s *session) string { return s.Client }),
		name("AT", 3, 0, false, func(s *session) string { return idText(s.Member) }),
		name("SESSION", 18, 1, false, func(s *session) string { return proto.SessionID(s.Session).String() }),
		number("QUEUED", 7, 0, whole(func(s *session) int64 { return s.Queued }), count),
		number("AVG ms", 7, 2, func(s *session) float64 { return s.LatencyMs.Avg }, count),
		number("MAX ms", 7, 1, whole(func(s *session) int64 { return s.LatencyMs.Max }), count),
		number("PACKETS", 8, 4, whole(func(s *session) int64 { return s.Received }), count),
		number("AGE", 4, 2, func(s *session) float64 { return float64(now.UnixMilli() - s.SinceMs) }, ageMs),
		number("TIMEOUT", 8, 4, whole(func(s *session) int64 { return s.TimeoutMs }), ageMs),
		name("OP", 4, 3, false, func(s *session) string { return s.LastOp }),
		name("ZXID", 18, 5, false, func(s *session) string { return s.LastZxid.String() }),
	}
}

// sorted returns the sessions in the order of a column; equal ones keep their place, by address.
func sorted(list []session, by clientColumn, reversed bool) []*session {
	rows := make([]*session, len(list))
	for i := range list {
		rows[i] = &list[i]
	}
	slices.SortFunc(rows, func(a, b *session) int {
		order := by.compare(a, b)
		if reversed {
			order = -order
		}
		return cmp.Or(order, strings.Compare(a.Client, b.Client), cmp.Compare(a.Session, b.Session))
	})
	return rows
}

// column is a column of a table with rows of type T.
type column[T any] struct {
	title string
	width int
	// rank selects the columns to drop if there is not enough room: the highest ranks first.
	rank  int
	right bool
	// grows: the column takes the remaining room, up to most, or all of it if most is 0.
	grows bool
	most  int
	// cell returns the text and its style. width is the current width of the column.
	cell func(row T, width int) (string, ansi.Style)
}

const gap = 1 // cells between columns

// lay returns the columns that fit into width, with their widths.
func lay[T any](columns []column[T], width int) []column[T] {
	shown := make([]bool, len(columns))
	used := -gap
	for rank := 0; rank <= maxRank; rank++ {
		for i, c := range columns {
			if c.rank == rank && used+gap+c.width <= width {
				shown[i] = true
				used += gap + c.width
			}
		}
	}
	var list []column[T]
	for i, c := range columns {
		if !shown[i] {
			continue
		}
		if c.grows {
			more := width - used
			if c.most > 0 {
				more = min(more, c.most-c.width)
			}
			c.width += more
			used += more
		}
		list = append(list, c)
	}
	return list
}

const maxRank = 9

// heading returns the titles. An arrow follows the title marked, upwards if rises is true.
func heading[T any](columns []column[T], style ansi.Style, marked string, rises bool) string {
	cells := make([]string, len(columns))
	for i, c := range columns {
		title := c.title
		if title == marked {
			title += map[bool]string{true: "↑", false: "↓"}[rises]
		}
		cells[i] = fit(title, c.width, c.right)
	}
	return style.Styled(strings.Join(cells, strings.Repeat(" ", gap)))
}

func line[T any](columns []column[T], row T) string {
	cells := make([]string, len(columns))
	for i, c := range columns {
		text, style := c.cell(row, c.width)
		cells[i] = style.Styled(fit(text, c.width, c.right))
	}
	return strings.Join(cells, strings.Repeat(" ", gap))
}
