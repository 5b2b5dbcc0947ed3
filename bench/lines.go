//go:build linux

package main

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"math"
	"slices"
)

// line is one line of a panel.
type line struct {
	label  string // at its end
	colour string
	dash   string // of SVG's stroke-dasharray; empty: solid
	points []point
}

// panel is one pair of logarithmic axes. Lines of one unit belong into one.
type panel struct {
	title string // with the unit
	axis  string // what x is
	lines []line
}

// The sizes of a picture of lines, in pixels.
const (
	panelWidth, panelHeight = 570, 330
	panelColumns            = 2
	plotLeft, plotRight     = 58, 208 // margins: labels of the axis, labels of the lines
	plotTop, plotBottom     = 40, 44
	pictureTop              = 34
	labelHeight             = 13 // so far labels of lines are apart at least
)

// linesPicture draws panels side by side as an SVG.
func linesPicture(title string, panels []panel) []byte {
	columns := min(panelColumns, max(len(panels), 1))
	rows := (len(panels) + columns - 1) / columns
	width, height := columns*panelWidth, pictureTop+rows*panelHeight
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="11">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	svgText(&b, 12, 22, "start", "#111", ` font-size="15"`, title)
	for i, p := range panels {
		fmt.Fprintf(&b, `<g transform="translate(%d %d)">`+"\n", i%columns*panelWidth, pictureTop+i/columns*panelHeight)
		p.draw(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func (p panel) draw(b *bytes.Buffer) {
	var xs, ys []float64
	for _, l := range p.lines {
		for _, q := range l.points {
			if q.Y > 0 {
				xs, ys = append(xs, q.X), append(ys, q.Y)
			}
		}
	}
	svgText(b, plotLeft, 18, "start", "#111", ` font-weight="bold"`, p.title)
	if len(xs) == 0 {
		svgText(b, plotLeft, plotTop+20, "start", "#555", "", "nothing was measured")
		return
	}
	x := sizesAxis(xs, plotLeft, panelWidth-plotRight)
	y := figuresAxis(ys, panelHeight-plotBottom, plotTop)
	for _, t := range y.ticks {
		colour := "#eee"
		if t.decade {
			colour = "#ccc"
		}
		svgLine(b, x.from, y.at(t.value), x.to, y.at(t.value), colour)
		if t.label != "" {
			svgText(b, plotLeft-6, y.at(t.value)+4, "end", "#555", "", t.label)
		}
	}
	for _, t := range x.ticks {
		svgLine(b, x.at(t.value), y.from, x.at(t.value), y.to, "#ccc")
		svgText(b, x.at(t.value), y.from+15, "middle", "#555", "", t.label)
	}
	svgText(b, (x.from+x.to)/2, y.from+31, "middle", "#555", "", p.axis)

	var ends []float64
	for _, l := range p.lines {
		ends = append(ends, l.draw(b, x, y))
	}
	for i, at := range spreadLabels(ends, labelHeight, y.to, y.from+labelHeight) {
		l := p.lines[i]
		if math.IsNaN(ends[i]) {
			continue
		}
		last := l.points[len(l.points)-1]
		fmt.Fprintf(b, `<polyline points="%.1f,%.1f %.1f,%.1f" fill="none" stroke="%s" stroke-width="0.6"/>`+"\n", x.at(last.X)+4, ends[i], x.to+13, at, l.colour)
		svgText(b, x.to+16, at+4, "start", l.colour, "", l.label+" "+shortNumber(last.Y))
	}
}

// draw returns where the line ends, or NaN if its last point can't be drawn.
func (l line) draw(b *bytes.Buffer, x, y axis) float64 {
	end := math.NaN()
	var path bytes.Buffer
	command := 'M'
	for _, q := range l.points {
		if q.Y <= 0 { // no place on the axis: a gap
			command, end = 'M', math.NaN()
			continue
		}
		end = y.at(q.Y)
		fmt.Fprintf(&path, "%c%.1f %.1f", command, x.at(q.X), end)
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="2.4" fill="%s"/>`+"\n", x.at(q.X), end, l.colour)
		command = 'L'
	}
	dash := ""
	if l.dash != "" {
		dash = fmt.Sprintf(` stroke-dasharray="%s"`, l.dash)
	}
	fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="1.7"%s/>`+"\n", path.String(), l.colour, dash)
	return end
}

// axis is logarithmic. A size of 0 has its place one decade below the smallest other size.
type axis struct {
	from, to  float64 // pixels
	low, high float64 // logarithms at these
	ticks     []tick
}

type tick struct {
	value  float64
	label  string
	decade bool
}

// at returns the pixel of v.
func (a axis) at(v float64) float64 {
	l := a.low
	if v > 0 {
		l = math.Log10(v)
	}
	return a.from + (a.to-a.from)*(l-a.low)/(a.high-a.low)
}

// sizesAxis goes from the smallest to the largest size, with ticks at the decades between, or at the sizes themselves
// where that would be fewer than two.
func sizesAxis(sizes []float64, from, to float64) axis {
	sizes = slices.Clone(sizes)
	slices.Sort(sizes)
	sizes = slices.Compact(sizes)
	positive := sizes
	a := axis{from: from, to: to}
	if sizes[0] == 0 {
		positive = sizes[1:]
		a.ticks = append(a.ticks, tick{0, "0", true})
	}
	if len(positive) == 0 {
		positive = []float64{1}
	}
	a.low, a.high = math.Log10(positive[0]), math.Log10(positive[len(positive)-1])
	decades := ticksBetween(a.low, a.high, 1)
	if len(positive) < len(sizes) {
		a.low--
	}
	if a.high == a.low {
		a.low, a.high = a.low-0.5, a.high+0.5
	}
	if len(decades) < 2 {
		decades = nil
		for _, v := range positive {
			decades = append(decades, tick{v, shortNumber(v), true})
		}
	}
	a.ticks = append(a.ticks, decades...)
	return a
}

// figuresAxis covers whole decades, so that what is flat looks flat. Between up to two decades 2 and 5 have labels too.
func figuresAxis(figures []float64, from, to float64) axis {
	a := axis{from: from, to: to, low: math.Floor(math.Log10(slices.Min(figures))), high: math.Ceil(math.Log10(slices.Max(figures)))}
	if a.high == a.low {
		a.high++
	}
	a.ticks = ticksBetween(a.low, a.high, 1, 2, 5)
	if a.high-a.low > 2 {
		for i, t := range a.ticks {
			if !t.decade {
				a.ticks[i].label = ""
			}
		}
	}
	return a
}

// ticksBetween returns the steps of each decade that lie between two logarithms, both included.
func ticksBetween(low, high float64, steps ...float64) []tick {
	const slack = 1e-9 // of logarithms that are not quite whole
	var ticks []tick
	for decade := math.Floor(low); decade <= high+slack; decade++ {
		for _, step := range steps {
			v := step * math.Pow(10, decade)
			if l := math.Log10(v); l >= low-slack && l <= high+slack {
				ticks = append(ticks, tick{v, shortNumber(v), step == 1})
			}
		}
	}
	return ticks
}

// spreadLabels moves labels apart until no two are nearer than gap, as little as it takes to keep their order, and
// within the bounds if there is room. What is NaN stays so and takes no room.
func spreadLabels(at []float64, gap, lowest, highest float64) []float64 {
	placed := slices.Clone(at)
	var order []int
	for i, v := range at {
		if !math.IsNaN(v) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(at[i], at[j]) })
	// Labels that touch become one block, centred on where its labels wanted to be.
	type block struct {
		sum float64 // of where the first would have to be for each label to be at its place
		n   int
	}
	top := func(b block) float64 {
		first := b.sum / float64(b.n)
		return max(min(first, highest-gap*float64(b.n-1)), lowest)
	}
	var blocks []block
	for _, i := range order {
		blocks = append(blocks, block{at[i], 1})
		for len(blocks) > 1 {
			a, b := blocks[len(blocks)-2], blocks[len(blocks)-1]
			if top(a)+gap*float64(a.n) <= top(b) {
				break
			}
			merged := block{a.sum + b.sum - gap*float64(a.n*b.n), a.n + b.n}
			blocks = append(blocks[:len(blocks)-2], merged)
		}
	}
	next := 0
	for _, b := range blocks {
		for k := range b.n {
			placed[order[next]] = top(b) + gap*float64(k)
			next++
		}
	}
	return placed
}

// shortNumber prints at most three digits, with k, M or G for thousands, millions or billions.
func shortNumber(v float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e9, " G"}, {1e6, " M"}, {1e3, " k"}} {
		if v >= unit.size*0.9995 {
			return fmt.Sprintf("%.3g%s", v/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%.3g", v)
}

func svgText(b *bytes.Buffer, x, y float64, anchor, colour, attributes, s string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s"%s>`, x, y, anchor, colour, attributes)
	_ = xml.EscapeText(b, []byte(s)) // a Buffer takes everything
	b.WriteString("</text>\n")
}

func svgLine(b *bytes.Buffer, x1, y1, x2, y2 float64, colour string) {
	fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`+"\n", x1, y1, x2, y2, colour)
}
