//go:build linux

package main

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// ratiosPicture draws, for each row and shape, how many times as fast the first server was as the
// last, and how many times less CPU it used per operation: horizontal bars from 1 to the left or
// right on a logarithmic axis, the first row on top.
func ratiosPicture(all []comparison) ([]byte, error) {
	const thickness = vg.Length(7)
	plot.DefaultFont.Variant = "Sans" // every viewer has this font
	drawn := plot.New()
	drawn.Legend.Top = true
	log2 := func(v float64) float64 {
		if v = math.Log2(v); math.IsNaN(v) || math.IsInf(v, 0) {
			return 0 // no bar
		}
		return v
	}
	var labels []string
	var speed, cpu plotter.Values
	for _, c := range slices.Backward(all) {
		if c.Servers == nil { // failed
			continue
		}
		a, b := c.Servers[0], c.Servers[len(c.Servers)-1]
		drawn.Title.Text = fmt.Sprintf("%s against %s: how many times better", a.Server, b.Server)
		labels = append(labels, c.key())
		speed = append(speed, log2(a.OpsPerSecond.Median/b.OpsPerSecond.Median))
		cpu = append(cpu, log2(b.CPU.Median/a.CPU.Median))
	}
	for i, series := range []struct {
		name   string
		colour color.Color
		values plotter.Values
	}{
		{"operations per second", color.RGBA{0x42, 0x69, 0xd0, 0xff}, speed},
		{"operations per second of CPU", color.RGBA{0x97, 0xbb, 0xf5, 0xff}, cpu},
	} {
		chart, err := plotter.NewBarChart(series.values, thickness)
		if err != nil {
			return nil, err
		}
		chart.Horizontal, chart.Color, chart.LineStyle.Width = true, series.colour, 0
		chart.Offset = thickness * vg.Length(0.5-float64(i))
		drawn.Add(chart)
		drawn.Legend.Add(series.name, chart)
	}
	drawn.NominalY(labels...)
	values := slices.Concat(speed, cpu)
	drawn.X.Min, drawn.X.Max = math.Floor(min(-1, slices.Min(values))), math.Ceil(max(1, slices.Max(values)))+1 // room for the legend
	var ticks plot.ConstantTicks
	for v := drawn.X.Min; v <= drawn.X.Max; v++ {
		ticks = append(ticks, plot.Tick{Value: v, Label: fmt.Sprint(math.Exp2(v))})
	}
	drawn.X.Tick.Marker = ticks
	drawn.Add(plotter.NewGrid())
	canvas := vgsvg.New(25*vg.Centimeter, vg.Length(len(labels))*0.75*vg.Centimeter+4*vg.Centimeter)
	drawn.Draw(draw.New(canvas))
	var b bytes.Buffer
	_, err := canvas.WriteTo(&b)
	return b.Bytes(), err
}
