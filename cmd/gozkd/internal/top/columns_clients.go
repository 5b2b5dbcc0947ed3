package top

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/gozkd/gozkd/proto"
)

// clientColumn is a column of the table of clients that the table can be sorted by.
type clientColumn struct {
	column[*session]
	// compare orders rows as users want to see them first: numbers from the largest, names from the
	// first.
	compare func(a, b *session) int
	// rises: compare sorts in ascending order.
	rises bool
}

// clientColumns returns the columns of a connection.
func clientColumns(now time.Time) []clientColumn {
	number := func(title string, width, rank int, value func(*session) float64, text func(float64) string) clientColumn {
		return clientColumn{
			column: column[*session]{title: title, width: width, rank: rank, right: true,
				cell: func(s *session, _ int) (string, lipgloss.Style) { return text(value(s)), lipgloss.Style{} }},
			compare: func(a, b *session) int { return cmp.Compare(orNone(value(b)), orNone(value(a))) },
		}
	}
	name := func(title string, width, rank int, grows bool, text func(*session) string) clientColumn {
		return clientColumn{
			column: column[*session]{title: title, width: width, rank: rank, grows: grows, most: 28,
				cell: func(s *session, _ int) (string, lipgloss.Style) { return clean(text(s)), lipgloss.Style{} }},
			compare: func(a, b *session) int { return strings.Compare(text(a), text(b)) },
			rises:   true,
		}
	}
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
		number("AGE", 4, 2, func(s *session) float64 { return float64(now.UnixMilli() - s.SinceMs) },
			func(ms float64) string { return age(time.Duration(ms) * time.Millisecond) }),
		number("TIMEOUT", 8, 4, whole(func(s *session) int64 { return s.TimeoutMs }),
			func(ms float64) string { return age(time.Duration(ms) * time.Millisecond) }),
		name("OP", 4, 3, false, func(s *session) string { return s.LastOp }),
		name("ZXID", 13, 5, false, func(s *session) string { return s.LastZxid.String() }),
	}
}

// orNone makes an unknown number the smallest.
func orNone(v float64) float64 {
	if math.IsNaN(v) {
		return math.Inf(-1)
	}
	return v
}

// sorted returns the sessions in the order of a column. Equal sessions are sorted by address, so
// that they keep their place.
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
