package top

import (
	"strings"

	"charm.land/lipgloss/v2"
)

// column is one of a table of T.
type column[T any] struct {
	title string
	width int
	// rank says which columns are left out first where there is not enough room: those with the highest.
	rank  int
	right bool
	// grows: what room is left goes to this column, up to most; 0: all of it.
	grows bool
	most  int
	// cell returns the text and how it looks. width is the column's now.
	cell func(row T, width int) (string, lipgloss.Style)
}

const gap = 1 // between columns

// lay returns the columns that fit into width, in their order, with their widths.
func lay[T any](columns []column[T], width int) []column[T] {
	shown := make([]bool, len(columns))
	used := -gap
	for rank := 0; rank <= lastRank; rank++ {
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

// lastRank is the highest rank of a column.
const lastRank = 9

// heading returns the line of titles; marked is the title of the column that sorts, with an arrow behind it: up
// for rising.
func heading[T any](columns []column[T], style lipgloss.Style, marked string, rises bool) string {
	cells := make([]string, len(columns))
	for i, c := range columns {
		title := c.title
		if title == marked {
			if rises {
				title += "↑"
			} else {
				title += "↓"
			}
		}
		cells[i] = fit(title, c.width, c.right)
	}
	return style.Render(strings.Join(cells, strings.Repeat(" ", gap)))
}

// line returns a row.
func line[T any](columns []column[T], row T) string {
	cells := make([]string, len(columns))
	for i, c := range columns {
		text, style := c.cell(row, c.width)
		cells[i] = style.Render(fit(text, c.width, c.right))
	}
	return strings.Join(cells, strings.Repeat(" ", gap))
}
