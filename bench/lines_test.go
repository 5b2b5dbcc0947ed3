//go:build linux

package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestSizesAxis(t *testing.T) {
	labels := func(a axis) (list []string) {
		for _, t := range a.ticks {
			list = append(list, t.label)
		}
		return list
	}
	for _, test := range []struct {
		sizes  []float64
		labels []string
		at     map[float64]float64 // pixels of an axis from 100 to 400
	}{
		{[]float64{1e3, 1e6, 1e4}, []string{"1 k", "10 k", "100 k", "1 M"}, map[float64]float64{1e3: 100, 1e4: 200, 1e6: 400}},
		{[]float64{1, 3, 5, 7}, []string{"1", "3", "5", "7"}, map[float64]float64{1: 100, 7: 400, 3: 100 + 300*math.Log(3)/math.Log(7)}},
		{[]float64{0, 100, 1e4}, []string{"0", "100", "1 k", "10 k"}, map[float64]float64{0: 100, 100: 200, 1e4: 400}},
		{[]float64{50}, []string{"50"}, map[float64]float64{50: 250}},
		{[]float64{0}, []string{"0", "1"}, map[float64]float64{0: 100}},
	} {
		a := sizesAxis(test.sizes, 100, 400)
		if got := labels(a); !slices.Equal(got, test.labels) {
			t.Errorf("%v: ticks %q, want %q", test.sizes, got, test.labels)
		}
		for v, want := range test.at {
			if got := a.at(v); math.Abs(got-want) > 1e-6 {
				t.Errorf("%v: %v is at %v, want %v", test.sizes, v, got, want)
			}
		}
	}
}

func TestFiguresAxis(t *testing.T) {
	// From below up, as figures grow: 300 is the bottom.
	for _, test := range []struct {
		figures   []float64
		low, high float64
	}{
		{[]float64{12, 15}, 1, 2}, {[]float64{10}, 1, 2}, {[]float64{0.02, 3000}, -2, 4}, {[]float64{100, 1000}, 2, 3},
	} {
		a := figuresAxis(test.figures, 300, 20)
		if a.low != test.low || a.high != test.high {
			t.Errorf("%v: from 1e%v to 1e%v, want 1e%v to 1e%v", test.figures, a.low, a.high, test.low, test.high)
		}
		if bottom, top := a.at(math.Pow(10, a.low)), a.at(math.Pow(10, a.high)); math.Abs(bottom-300) > 1e-6 || math.Abs(top-20) > 1e-6 {
			t.Errorf("%v: drawn from %v to %v", test.figures, bottom, top)
		}
		decades := 0
		for _, k := range a.ticks {
			if k.decade {
				decades++
			}
		}
		if want := int(a.high-a.low) + 1; decades != want {
			t.Errorf("%v: %d gridlines at decades, want %d", test.figures, decades, want)
		}
	}
}

func TestSpreadLabels(t *testing.T) {
	nan := math.NaN()
	for _, test := range []struct{ at, want []float64 }{
		{nil, nil},
		{[]float64{50, 20}, []float64{50, 20}},                           // room enough
		{[]float64{50, 50}, []float64{45, 55}},                           // apart, each as little
		{[]float64{50, nan, 52}, []float64{46, nan, 56}},                 // in their order
		{[]float64{0, 1, 2}, []float64{0, 10, 20}},                       // not beyond the bounds
		{[]float64{100, 99, 98}, []float64{100, 90, 80}},                 // nor at the other end
		{[]float64{50, 62, 58}, []float64{140. / 3, 200. / 3, 170. / 3}}, // one that is pushed pushes the next
	} {
		got := spreadLabels(test.at, 10, 0, 100)
		for i := range got {
			if math.IsNaN(got[i]) != math.IsNaN(test.want[i]) || math.Abs(got[i]-test.want[i]) > 1e-6 {
				t.Errorf("%v: %v, want %v", test.at, got, test.want)
				break
			}
		}
	}
}

// Everything that is drawn lies within the picture, each line has its label, and labels do not lie on one another.
func TestLinesPicture(t *testing.T) {
	var lines []line
	for i, name := range []string{"gozkd a", "gozkd b", "ZooKeeper <&>", "gozkd gap"} {
		l := line{label: name, colour: "#000"}
		for _, x := range []float64{0, 100, 1e6} {
			l.points = append(l.points, point{x, 50 + float64(i)/10})
		}
		lines = append(lines, l)
	}
	lines[3].points[1].Y = 0 // has no place
	picture := linesPicture("what & how", []panel{{title: "one", axis: "things", lines: lines}, {title: "empty"}, {title: "two", lines: lines[:1]}})

	type element struct {
		name       string
		attributes map[string]string
		text       string
	}
	var drawn []element
	var origin [2]float64
	d := xml.NewDecoder(bytes.NewReader(picture))
	within := func(x, y float64) {
		x, y = x+origin[0], y+origin[1]
		if x < 0 || y < 0 || x > 2*panelWidth || y > pictureTop+2*panelHeight || math.IsNaN(x+y) {
			t.Errorf("(%v, %v) is outside of the picture", x, y)
		}
	}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := element{name: token.Name.Local, attributes: make(map[string]string)}
			for _, a := range token.Attr {
				e.attributes[a.Name.Local] = a.Value
			}
			drawn = append(drawn, e)
			value := func(name string) float64 {
				v, err := strconv.ParseFloat(e.attributes[name], 64)
				if err != nil {
					t.Errorf("%s of a %s: %v", name, e.name, err)
				}
				return v
			}
			switch e.name {
			case "g":
				fields := strings.FieldsFunc(e.attributes["transform"], func(r rune) bool { return strings.ContainsRune("translate( )", r) })
				for i, f := range fields {
					if origin[i], err = strconv.ParseFloat(f, 64); err != nil {
						t.Fatal(err)
					}
				}
			case "circle":
				within(value("cx"), value("cy"))
			case "text":
				within(value("x"), value("y"))
			case "line":
				within(value("x1"), value("y1"))
				within(value("x2"), value("y2"))
			}
		case xml.EndElement:
			if token.Name.Local == "g" {
				origin = [2]float64{}
			}
		case xml.CharData:
			if len(drawn) > 0 {
				drawn[len(drawn)-1].text += string(token)
			}
		}
	}
	var labels []float64
	circles := 0
	for _, e := range drawn {
		switch {
		case e.name == "circle":
			circles++
		case e.name == "text" && len(labels) < len(lines) && strings.HasPrefix(e.text, lines[len(labels)].label+" 50"):
			y, _ := strconv.ParseFloat(e.attributes["y"], 64)
			for _, other := range labels {
				if math.Abs(y-other) < labelHeight-0.2 { // which is printed with one digit behind the point
					t.Errorf("label %q at %v lies on one at %v", e.text, y, other)
				}
			}
			labels = append(labels, y)
		}
	}
	if len(labels) != len(lines) {
		t.Errorf("%d labels of %d lines", len(labels), len(lines))
	}
	if want := 4*3 - 1 + 3; circles != want {
		t.Errorf("%d points are drawn, want %d", circles, want)
	}
	for _, text := range []string{"nothing was measured", "what &amp; how", ">1 M<", ">0<", "things"} {
		if !strings.Contains(string(picture), text) {
			t.Errorf("the picture does not say %q", text)
		}
	}
}
