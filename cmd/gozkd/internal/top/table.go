package top

import (
	"strings"

	"charm.land/lipgloss/v2"
)

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
	cell func(row T, width int) (string, lipgloss.Style)
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

// maxRank is the highest rank of a column.
const maxRank = 9

// heading returns the titles. An arrow follows the title marked, upwards if rises is true.
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

func line[T any](columns []column[T], row T) string {
	cells := make([]string, len(columns))
	for i, c := range columns {
		text, style := c.cell(row, c.width)
		cells[i] = style.Render(fit(text, c.width, c.right))
	}
	return strings.Join(cells, strings.Repeat(" ", gap))
}
