//go:build linux

package main

import (
	"bytes"
	"fmt"
	"math"
)

// targetsPicture draws how far each goal is reached, as an SVG with a logarithmic axis: 1 is "at least", what is right of it is better
// by that factor; a mark shows where the aim is.
func targetsPicture(all []standing) []byte {
	const (
		left, right, top = 480, 70, 40
		rowHeight, bar   = 20, 12
		width            = 1080
		lowest, highest  = 0.25, 16.0
	)
	x := func(v float64) float64 {
		v = min(max(v, lowest), highest)
		return left + (width-left-right)*math.Log(v/lowest)/math.Log(highest/lowest)
	}
	height := top + rowHeight*len(all) + 24
	var b bytes.Buffer
	text := beginBars(&b, width, height)
	text(width-right/2, 16, "end", "How many times better than the least that is asked for; the dark mark is the aim. Green: aim met, blue: least met, red: missed, grey: not as asked")
	for _, tick := range []float64{0.25, 0.5, 1, 2, 4, 8, 16} {
		colour := "#ddd"
		if tick == 1 {
			colour = "#555"
		}
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="%s"/>`+"\n", x(tick), top-6, x(tick), height-20, colour)
		text(x(tick), float64(height-6), "middle", fmt.Sprint(tick))
	}
	for i := range all {
		s := &all[i]
		y := float64(top + i*rowHeight)
		text(left-8, y+bar-1, "end", s.title+": "+s.what)
		v := s.better(s.measured)
		if math.IsNaN(v) {
			text(x(1)+4, y+bar-1, "start", s.verdict())
			continue
		}
		colour := map[string]string{aimMet: "#3ca951", leastMet: "#4269d0", missed: "#ff725c", notAsAsked: "#bbb"}[s.verdict()]
		from, to := min(x(1), x(v)), max(x(1), x(v))
		fmt.Fprintf(&b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" fill="%s"/>`+"\n", from, y, to-from, bar, colour)
		text(to+4, y+bar-1, "start", number(s.measured))
		if aim := s.better(s.aim); !math.IsNaN(aim) {
			fmt.Fprintf(&b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#222" stroke-width="2"/>`+"\n", x(aim), y-2, x(aim), y+bar+2)
		}
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// better returns how many times better v is than the least that is asked for: 1 if that is 0 and so is v.
func (s *standing) better(v float64) float64 {
	switch {
	case s.least == v:
		return 1
	case s.more:
		return v / s.least
	}
	return s.least / v
}
