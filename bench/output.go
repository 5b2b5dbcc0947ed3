//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// output is where figures go: tables to standard output, and where a folder is given, into a Markdown file per command
// there, with JSON and pictures beside it.
type output struct {
	dir     string // empty: there is none
	machine string // what everything is measured on
	w       io.Writer
	failed  error // the first error of writing
}

func newOutput(dir string) (*output, error) {
	if dir != "" {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	return &output{dir: dir, w: os.Stdout}, nil
}

// begin is called before each command.
func (o *output) begin(command string, flags []string) error {
	o.w = os.Stdout
	if o.dir != "" {
		f, err := os.Create(filepath.Join(o.dir, command+".md"))
		if err != nil {
			return err
		}
		o.w = io.MultiWriter(os.Stdout, f) // closed with the process: what is written is not buffered
	}
	line := strings.Join(append([]string{"go run ./bench", command}, flags...), " ")
	o.printf("%s, `%s`\n\n%s\n", time.Now().Format(time.DateOnly), line, o.machine)
	return o.failed
}

func (o *output) printf(format string, args ...any) {
	if _, err := fmt.Fprintf(o.w, format, args...); o.failed == nil {
		o.failed = err
	}
}

// table prints a Markdown table, aligned so that it reads well as text too.
func (o *output) table(title string, head []string, rows [][]string) {
	width := make([]int, len(head))
	for _, row := range append([][]string{head}, rows...) {
		for i, cell := range row {
			width[i] = max(width[i], len([]rune(cell)))
		}
	}
	line := func(row []string) {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString("| " + cell + strings.Repeat(" ", width[i]-len([]rune(cell))+1))
		}
		o.printf("%s|\n", b.String())
	}
	o.printf("\n### %s\n\n", title)
	line(head)
	rule := make([]string, len(head))
	for i := range rule {
		rule[i] = strings.Repeat("-", max(width[i], 3))
	}
	line(rule)
	for _, row := range rows {
		line(row)
	}
}

// comparison is one row at one shape, on every server in the order of the command line.
type comparison struct {
	Row     string    `json:"row"`
	Shape   string    `json:"shape"`
	Servers []figures `json:"servers"`
}

// figures are what one server did, in all rounds of a comparison. Times are microseconds.
type figures struct {
	Server       string  `json:"server"`
	OpsPerSecond spread  `json:"ops_per_second"`
	CPU          spread  `json:"cpu_us_per_op"` // of the server, all members added up
	P50          float64 `json:"p50_us"`
	P99          float64 `json:"p99_us"`
	P999         float64 `json:"p99_9_us"`
	Max          float64 `json:"max_us"`
	BytesPerOp   float64 `json:"disk_bytes_per_op"` // as the kernel counted what was written to the disk
	Syncs        float64 `json:"disk_syncs_per_second"`
	OpsPerSync   float64 `json:"ops_per_sync"` // 0: there was none
	ResidentMiB  float64 `json:"resident_mib"` // after the last round
	Generator    float64 `json:"generator_us_per_op"`
	GeneratorOf  float64 `json:"generator_of_one_cpu"` // near 1 the generator is the limit
}

// spread is the median of the rounds, and the lowest and highest of them.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

func spreadOf(rounds []float64) spread {
	return spread{median(rounds), slices.Min(rounds), slices.Max(rounds)}
}

// ratio is that of the medians, with the lowest and the highest that any two rounds have.
func ratio(a, b spread) string {
	return fmt.Sprintf("%.2f (%.2f to %.2f)", a.Median/b.Median, a.Min/b.Max, a.Max/b.Min)
}

func (m *measured) figures(server string, mem memory) figures {
	us := func(q float64) float64 { return float64(m.latencies.quantile(q)) / 1e3 }
	f := figures{
		Server: server, OpsPerSecond: spreadOf(m.rates), CPU: spreadOf(m.cpu), P50: us(0.5), P99: us(0.99), P999: us(0.999),
		Max: float64(m.latencies.max) / 1e3, BytesPerOp: float64(m.disk.bytes) / float64(m.ops),
		Syncs: float64(m.disk.syncs) / m.elapsed.Seconds(), ResidentMiB: float64(mem.rss) / (1 << 20),
		Generator: m.own.Seconds() * 1e6 / float64(m.ops), GeneratorOf: m.own.Seconds() / m.elapsed.Seconds(),
	}
	if m.disk.syncs > 0 {
		f.OpsPerSync = float64(m.ops) / float64(m.disk.syncs)
	}
	return f
}

// comparisons prints tables of all, and writes them as <name>.json and <name>.svg where there is a folder. Ratios are those of the
// first server to the last.
func (o *output) comparisons(name, how string, all []comparison) error {
	var rates, rest [][]string
	head := []string{"row", "shape"}
	for i, c := range all {
		cells := []string{c.Row, c.Shape}
		compare := func(what string, of func(figures) spread, format func(float64) string) {
			for _, f := range c.Servers {
				v := of(f)
				cells = append(cells, fmt.Sprintf("%s (%.0f%%)", format(v.Median), 100*(v.Max-v.Min)/v.Median))
				if i == 0 {
					head = append(head, f.Server+", "+what)
				}
			}
			if n := len(c.Servers); n > 1 {
				cells = append(cells, ratio(of(c.Servers[0]), of(c.Servers[n-1])))
				if i == 0 {
					head = append(head, "ratio")
				}
			}
		}
		compare("ops/s", func(f figures) spread { return f.OpsPerSecond }, thousands)
		compare("CPU µs/op", func(f figures) spread { return f.CPU }, func(v float64) string { return fmt.Sprintf("%.2f", v) })
		rates = append(rates, cells)
		for _, f := range c.Servers {
			rest = append(rest, []string{
				c.Row, c.Shape, f.Server, number(f.P50), number(f.P99), number(f.P999), number(f.Max), number(f.BytesPerOp), number(f.Syncs),
				number(f.OpsPerSync), number(f.ResidentMiB), fmt.Sprintf("%.2f (%.0f%%)", f.Generator, 100*f.GeneratorOf),
			})
		}
	}
	o.table("Operations per second, and CPU of the server for each: "+how+" (spread)", head, rates)
	o.table("The same rounds: latency in µs, and what else it took", []string{
		"row", "shape", "server", "p50", "p99", "p99.9", "max", "disk bytes/op", "disk syncs/s", "ops/sync", "RSS MiB", "generator µs/op (of one CPU)",
	}, rest)
	err := o.json(name, struct {
		Machine string       `json:"machine"`
		How     string       `json:"how"`
		Rows    []comparison `json:"rows"`
	}{o.machine, how, all})
	return errors.Join(err, o.picture(name, ratiosPicture(all)))
}

// number prints three digits, or all of a whole number.
func number(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return thousands(v)
}
