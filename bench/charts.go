//go:build linux

package main

import (
	"bytes"
	"fmt"
	"image/color"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

var (
	blue = color.RGBA{0x42, 0x69, 0xd0, 0xff}
	pale = color.RGBA{0x97, 0xbb, 0xf5, 0xff}
)

// newPlot returns an empty plot in a font that every viewer has.
func newPlot(title string) *plot.Plot {
	plot.DefaultFont.Variant = "Sans"
	drawn := plot.New()
	drawn.Title.Text = title
	return drawn
}

// bar is a row of a chart of ratios: its values, drawn from 1 to the left or right.
type bar struct {
	label   string
	values  []float64 // NaN: no value
	colours []color.Color
}

// barsPicture draws ratios as horizontal bars on a logarithmic axis, the first row on top. legend
// names the colours.
func barsPicture(title string, bars []bar, legend map[string]color.Color) ([]byte, error) {
	const thickness = vg.Length(7)
	drawn := newPlot(title)
	drawn.Legend.Top = true
	low, high := -1.0, 1.0 // powers of two
	labels := make([]string, len(bars))
	for i, b := range bars {
		at := len(bars) - 1 - i
		labels[at] = b.label
		for j, v := range b.values {
			if v = math.Log2(v); math.IsNaN(v) || math.IsInf(v, 0) {
				continue
			}
			low, high = min(low, v), max(high, v)
			row := make(plotter.Values, len(bars))
			row[at] = v
			chart, err := plotter.NewBarChart(row, thickness)
			if err != nil {
				return nil, err
			}
			chart.Horizontal, chart.Color, chart.LineStyle.Width = true, b.colours[j], 0
			chart.Offset = thickness * vg.Length(float64(len(b.values)-1)/2-float64(j))
			drawn.Add(chart)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(legend)) {
		chart, err := plotter.NewBarChart(plotter.Values{0}, thickness)
		if err != nil {
			return nil, err
		}
		chart.Color = legend[name]
		drawn.Legend.Add(name, chart)
	}
	drawn.NominalY(labels...)
	drawn.X.Min, drawn.X.Max = math.Floor(low), math.Ceil(high)+1 // room for the legend
	var ticks plot.ConstantTicks
	for v := drawn.X.Min; v <= drawn.X.Max; v++ {
		ticks = append(ticks, plot.Tick{Value: v, Label: fmt.Sprint(math.Exp2(v))})
	}
	drawn.X.Tick.Marker = ticks
	drawn.Add(plotter.NewGrid())
	canvas := vgsvg.New(25*vg.Centimeter, vg.Length(len(bars))*0.75*vg.Centimeter+4*vg.Centimeter)
	drawn.Draw(draw.New(canvas))
	return svg(canvas)
}

// ratiosPicture draws, for each row and shape, how many times as fast the first server was as the
// last, and how many times less CPU it used per operation.
func ratiosPicture(all []comparison) ([]byte, error) {
	var bars []bar
	title := ""
	for _, c := range all {
		if c.Servers == nil { // failed
			continue
		}
		a, b := c.Servers[0], c.Servers[len(c.Servers)-1]
		title = fmt.Sprintf("%s against %s: how many times better", a.Server, b.Server)
		bars = append(bars, bar{
			c.key(), []float64{a.OpsPerSecond.Median / b.OpsPerSecond.Median, b.CPU.Median / a.CPU.Median}, []color.Color{blue, pale},
		})
	}
	return barsPicture(title, bars, map[string]color.Color{"operations per second": blue, "operations per second of CPU": pale})
}

func svg(c *vgsvg.Canvas) ([]byte, error) {
	var b bytes.Buffer
	_, err := c.WriteTo(&b)
	return b.Bytes(), err
}
