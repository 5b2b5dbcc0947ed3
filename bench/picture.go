//go:build linux

package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"slices"
)

// ratiosPicture draws, for each row and shape, how many times as fast the first server was as the last, and how many times
// less CPU it used, as an SVG with a logarithmic axis: a bar to the right of 1 is the first server's win.
func ratiosPicture(all []comparison) []byte {
	const (
		left, right, top = 260, 60, 46
		rowHeight, bar   = 30, 10
		width            = 900
	)
	type pair struct{ speed, cpu float64 }
	var pairs []pair
	limit := 10.0                                                                                   // the axis goes from 1/2 to this
	all = slices.DeleteFunc(slices.Clone(all), func(c comparison) bool { return c.Servers == nil }) // failed
	for _, c := range all {
		a, b := c.Servers[0], c.Servers[len(c.Servers)-1]
		p := pair{a.OpsPerSecond.Median / b.OpsPerSecond.Median, b.CPU.Median / a.CPU.Median}
		pairs = append(pairs, p)
		limit = max(limit, p.speed*1.1, p.cpu*1.1)
	}
	const lowest = 0.5
	x := func(v float64) float64 {
		v = max(v, lowest)
		return left + (width-left-right)*math.Log(v/lowest)/math.Log(limit/lowest)
	}
	height := top + rowHeight*len(all) + 20
	var b bytes.Buffer
	text := beginBars(&b, width, height)
	if len(all) > 0 {
		s := all[0].Servers
		text(left, 16, "start", fmt.Sprintf("%s against %s: how many times", s[0].Server, s[len(s)-1].Server))
		fmt.Fprintf(&b, `<rect x="%d" y="24" width="12" height="10" fill="#4269d0"/>`+"\n", left)
		text(left+18, 33, "start", "as many operations per second")
		fmt.Fprintf(&b, `<rect x="%d" y="24" width="12" height="10" fill="#97bbf5"/>`+"\n", left+220)
		text(left+238, 33, "start", "as many operations per second of server CPU")
	}
	for _, tick := range []float64{0.5, 1, 2, 5, 10, 20, 50, 100} {
		if tick > limit {
			break
		}
		colour := "#ddd"
		if tick == 1 {
			colour = "#555"
		}
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="%s"/>`+"\n", x(tick), top-6, x(tick), height-18, colour)
		text(x(tick), float64(height-6), "middle", fmt.Sprint(tick))
	}
	for i, c := range all {
		y := float64(top + i*rowHeight)
		text(left-8, y+bar+4, "end", c.Row+", "+c.Shape)
		for j, v := range []float64{pairs[i].speed, pairs[i].cpu} {
			from, to := min(x(1), x(v)), max(x(1), x(v))
			fmt.Fprintf(&b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" fill="%s"/>`+"\n", from, y+float64(j*bar), to-from, bar,
				[]string{"#4269d0", "#97bbf5"}[j])
			text(to+4, y+float64(j*bar)+9, "start", fmt.Sprintf("%.1f", v))
		}
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// beginBars begins a picture of that size with a white ground. text writes into it.
func beginBars(b *bytes.Buffer, width, height int) (text func(x, y float64, anchor, s string)) {
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	return func(x, y float64, anchor, s string) {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s">`, x, y, anchor)
		_ = xml.EscapeText(b, []byte(s)) // a Buffer takes everything
		b.WriteString("</text>\n")
	}
}
