package top

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// absent is printed for unknown values.
const absent = "-"

// count formats a number in at most five cells: 12, 4213, 12.3k, 7.1M.
func count(v float64) string {
	if math.IsNaN(v) {
		return absent
	}
	for _, unit := range []string{"", "k", "M", "G", "T"} {
		switch {
		case unit == "" && math.Round(v) < 1e4:
			return strconv.FormatFloat(v, 'f', 0, 64)
		case unit != "" && math.Round(v*10)/10 < 100:
			return strconv.FormatFloat(v, 'f', 1, 64) + unit
		case unit != "" && math.Round(v) < 1000:
			return strconv.FormatFloat(v, 'f', 0, 64) + unit
		}
		v /= 1000
	}
	return strconv.FormatFloat(v*1000, 'e', 0, 64)
}

// perSecond formats a rate, with a decimal while it is small.
func perSecond(v float64) string {
	if v > 0 && v < 9.95 {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return count(v)
}

// millis formats milliseconds in at most five cells.
func millis(v float64) string {
	switch {
	case math.IsNaN(v):
		return absent
	case v < 9.995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case v < 99.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return count(v)
}

// size formats a number of bytes in at most five cells.
func size(n int64) string {
	switch v := float64(n); {
	case n < 0:
		return absent
	case n < 10000:
		return strconv.FormatInt(n, 10)
	case v < 999.5*(1<<10):
		return fmt.Sprintf("%.0fK", v/(1<<10))
	case v < 9.95*(1<<20):
		return fmt.Sprintf("%.1fM", v/(1<<20))
	case v < 999.5*(1<<20):
		return fmt.Sprintf("%.0fM", v/(1<<20))
	default:
		return fmt.Sprintf("%.1fG", v/(1<<30))
	}
}

// age formats a duration in at most five cells: 45s, 12m, 3h, 9d.
func age(d time.Duration) string {
	switch {
	case d < 0:
		return absent
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// blocks are the heights of a chart, from 0.
var blocks = [...]rune{'▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'}

// sparkline draws the last values as heights up to top, with a gap for unknown ones.
func sparkline(values []float64, width int, top float64) string {
	if width <= 0 {
		return ""
	}
	if over := len(values) - width; over > 0 {
		values = values[over:]
	}
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", width-len(values)))
	for _, v := range values {
		switch {
		case math.IsNaN(v):
			b.WriteByte(' ')
		case top <= 0 || v <= 0:
			b.WriteRune(blocks[0])
		default:
			b.WriteRune(blocks[min(len(blocks)-1, int(v/top*float64(len(blocks))))])
		}
	}
	return b.String()
}

// peak returns the largest known value, at least 0.
func peak(values []float64) (top float64) {
	for _, v := range values {
		if v > top {
			top = v
		}
	}
	return top
}

// fit truncates a text with an ellipsis, or pads it, on the left if right is true, to width cells.
// Of a long number at the right, such as a zxid, the end is what changes.
func fit(s string, width int, right bool) string {
	if width <= 0 {
		return ""
	}
	if over := ansi.StringWidth(s) - width; over > 0 && right {
		s = ansi.TruncateLeft(s, over+1, "…")
	}
	s = ansi.Truncate(s, width, "…")
	fill := strings.Repeat(" ", width-ansi.StringWidth(s)) // a wide character may leave a cell
	if right {
		return fill + s
	}
	return s + fill
}
