//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// growth holds the figures of a piece.
type growth struct {
	piece   growthPiece
	curves  []*curve
	remarks []string
	busiest float64 // largest share of a processor that the generator used
	busyAt  string
}

// curve is a figure at all sizes on a server.
type curve struct {
	Panel   string  `json:"panel"` // curves with the same Panel share a panel
	Unit    string  `json:"unit"`
	Measure string  `json:"measure"`
	Server  string  `json:"server"`
	Points  []point `json:"points"`
	Fit     *fit    `json:"fit,omitempty"` // nil: too few points
}

// note records a figure.
func (g *growth) note(panel, unit, measure, server string, size int, y float64) {
	p := point{float64(size), y}
	for _, c := range g.curves {
		if c.Panel == panel && c.Measure == measure && c.Server == server {
			c.Points = append(c.Points, p)
			return
		}
	}
	g.curves = append(g.curves, &curve{Panel: panel, Unit: unit, Measure: measure, Server: server, Points: []point{p}})
}

// noteLoad records the figures of a round. how is the shape, or another label of the panel.
func (g *growth) noteLoad(server string, size int, how, measure string, r *result) {
	us := func(q float64) float64 { return float64(r.latencies.quantile(q)) / 1e3 }
	if g.piece.rates {
		g.note(how+": operations", "/s", measure, server, size, r.opsPerSecond())
	}
	g.note(how+": p50", "µs", measure, server, size, us(0.5))
	g.note(how+": p99", "µs", measure, server, size, us(0.99))
	g.note(how+": server CPU per operation", "µs", measure, server, size, r.cpuPerOp())
	if busy := r.ownCPU.Seconds() / r.elapsed.Seconds(); busy > g.busiest {
		g.busiest, g.busyAt = busy, fmt.Sprintf("%s %s of %s, %s %s", measure, how, server, thousands(float64(size)), g.piece.axis)
	}
}

// noteMemory records the resident memory of the server's processes, at present and at its peak.
func (g *growth) noteMemory(t target, size int) memory {
	m := memoryOfAll(t.pids)
	g.note("resident memory", "MiB", "at once", t.name, size, float64(m.rss)/(1<<20))
	g.note("resident memory", "MiB", "peak", t.name, size, float64(m.peak)/(1<<20))
	return m
}

// noteEach records by how much each object grew the resident memory. Below a thousand objects,
// other work of the server dominates, and nothing is recorded.
func (g *growth) noteEach(t target, size int, what string, before, after memory) {
	const enough = 1000
	if size >= enough {
		g.note("memory for each "+what, "bytes", "at once", t.name, size, float64(after.rss-before.rss)/float64(size))
	}
}

// remark adds a sentence below the tables, once.
func (g *growth) remark(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); !slices.Contains(g.remarks, s) {
		g.remarks = append(g.remarks, s)
	}
}

// print prints the table and its summary, and writes growth-<piece>.json and .svg if there is a
// directory.
func (g *growth) print(o *output) {
	if g.curves == nil { // all failed
		return
	}
	for _, c := range g.curves {
		if f, ok := fitOf(c.Points); ok {
			c.Fit = &f
		}
	}
	g.remark("The generator used at most %.0f%% of one processor: %s.", 100*g.busiest, g.busyAt)
	head, rows := g.table()
	o.table(g.piece.title, head, rows)
	o.printf("\n")
	for _, s := range g.summary() {
		o.printf("* %s\n", s)
	}
	o.printf("\n%s\n", strings.Join(append([]string{g.piece.note}, g.remarks...), " "))
	if o.dir == "" {
		must.Do(o.failed)
		return
	}
	name := "growth-" + g.piece.name
	o.printf("\n![%s](%s.svg)\n", g.piece.title, name)
	b := must.Get(json.MarshalIndent(struct {
		Machine string   `json:"machine"`
		Date    string   `json:"date"`
		Commit  string   `json:"commit"`
		Title   string   `json:"title"`
		Size    string   `json:"size"` // the quantity that the size counts
		Curves  []*curve `json:"curves"`
	}{o.machine, o.conditions.Date, o.conditions.Commit, g.piece.title, g.piece.axis, g.curves}, "", " "))
	path := filepath.Join(o.dir, name)
	picture, err := g.picture()
	must.Do(errors.Join(o.failed, err, os.WriteFile(path+".json", append(b, '\n'), 0o644), os.WriteFile(path+".svg", picture, 0o644)))
}

// table has a line per figure and server, with the sizes side by side.
func (g *growth) table() (head []string, rows [][]string) {
	var sizes []float64
	for _, c := range g.curves {
		for _, p := range c.Points {
			sizes = append(sizes, p.X)
		}
	}
	slices.Sort(sizes)
	sizes = slices.Compact(sizes)
	head = []string{"what", "server"}
	for _, s := range sizes {
		head = append(head, thousands(s))
	}
	head = append(head, "per tenfold", "last step", "grows as")
	for _, c := range g.inOrder() {
		row := []string{c.title(), c.Server}
		for _, s := range sizes {
			cell := ""
			for _, p := range c.Points {
				if p.X == s {
					cell = number(p.Y)
				}
			}
			row = append(row, cell)
		}
		if c.Fit == nil {
			row = append(row, "", "", "")
		} else {
			row = append(row, fmt.Sprintf("×%.2f", c.Fit.PerTenfold), fmt.Sprintf("×%.2f", c.Fit.LastStep), c.Fit.word(c.Unit))
		}
		rows = append(rows, row)
	}
	return head, rows
}

func (c *curve) title() string { return fmt.Sprintf("%s, %s: %s", c.Panel, c.Unit, c.Measure) }

// inOrder returns the curves grouped by panel and, within it, by measure.
func (g *growth) inOrder() []*curve {
	var list []*curve
	for _, panel := range g.panelNames() {
		var measures []string
		for _, c := range g.curves {
			if c.Panel == panel && !slices.Contains(measures, c.Measure) {
				measures = append(measures, c.Measure)
			}
		}
		for _, m := range measures {
			for _, c := range g.curves {
				if c.Panel == panel && c.Measure == m {
					list = append(list, c)
				}
			}
		}
	}
	return list
}

func (g *growth) panelNames() []string {
	var names []string
	for _, c := range g.curves {
		if !slices.Contains(names, c.Panel) {
			names = append(names, c.Panel)
		}
	}
	return names
}

func (g *growth) serverNames() []string {
	var names []string
	for _, c := range g.curves {
		if !slices.Contains(names, c.Server) {
			names = append(names, c.Server)
		}
	}
	return names
}

// summary returns a line per server with the figures that grow and their shapes.
func (g *growth) summary() []string {
	var lines []string
	for _, server := range g.serverNames() {
		by := make(map[string][]string)
		all, flat := 0, 0
		for _, c := range g.inOrder() {
			if c.Server != server || c.Fit == nil {
				continue
			}
			if all++; c.Fit.As == shapeFlat {
				flat++
				continue
			}
			by[c.Fit.As] = append(by[c.Fit.As], fmt.Sprintf("%s %s (×%.2f)", c.Panel, c.Measure, c.Fit.PerTenfold))
		}
		if all == 0 {
			continue
		}
		var parts []string
		for _, shape := range []string{shapeLogarithm, shapeLinear, shapePower, shapeUneven} {
			if by[shape] != nil {
				parts = append(parts, shape+": "+strings.Join(by[shape], ", "))
			}
		}
		if parts == nil {
			parts = []string{"nothing grows"}
		}
		lines = append(lines, fmt.Sprintf("%s, per tenfold: %d of %d figures are flat; %s.", server, flat, all, strings.Join(parts, "; ")))
	}
	return lines
}

// picture has a panel per group of figures. The colour shows the server, the dashes show the
// figure.
func (g *growth) picture() ([]byte, error) {
	colours := []color.Color{blue, red, green}
	dashes := [][]vg.Length{nil, {7, 3}, {2, 3}, {9, 3, 2, 3}}
	servers := g.serverNames()
	var panels []panel
	for _, name := range g.panelNames() {
		p := panel{axis: g.piece.axis}
		var measures []string
		for _, c := range g.inOrder() {
			if c.Panel != name {
				continue
			}
			p.title = c.Panel + ", " + c.Unit
			if !slices.Contains(measures, c.Measure) {
				measures = append(measures, c.Measure)
			}
			short, _, _ := strings.Cut(c.Server, " ")
			p.lines = append(p.lines, line{
				label: short + " " + c.Measure, points: c.Points,
				colour: colours[slices.Index(servers, c.Server)%len(colours)],
				dashes: dashes[(len(measures)-1)%len(dashes)],
			})
		}
		panels = append(panels, p)
	}
	return linesPicture(g.piece.title+": "+strings.Join(servers, " and "), panels)
}
