//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// output prints tables to standard output and, if there is a directory, writes them to a Markdown
// file per command, with JSON and pictures beside it.
type output struct {
	dir        string // empty: no directory
	machine    string // description
	conditions conditions
	stdout     io.Writer
	w          io.Writer       // stdout and the command's Markdown
	file       *os.File        // the command's Markdown, or nil
	problems   []problem       // of the command
	wrote      map[string]bool // JSON files of the command, without extension
}

// conditions holds the flags that affect the figures. A command ignores those of others.
type conditions struct {
	Date     string  `json:"date"`
	Commit   string  `json:"commit"` // of the tree that gozkd and this program are built from
	Rounds   int     `json:"rounds"`
	Seconds  float64 `json:"seconds_of_a_round"`
	Warm     float64 `json:"seconds_of_load_before"`
	Znodes   int     `json:"znodes"`
	Sessions int     `json:"sessions"`
	Kills    int     `json:"kills"`
}

func newOutput(dir string) *output {
	if dir != "" {
		must.Do(os.MkdirAll(dir, 0o755))
	}
	return &output{dir: dir, stdout: os.Stdout}
}

// begin is called before each command. It removes the figures of an earlier run, which a failure
// would otherwise leave among the new ones.
func (o *output) begin(command string, flags []string) {
	o.w, o.problems, o.wrote = o.stdout, nil, map[string]bool{}
	o.conditions.Date = time.Now().Format(time.DateOnly)
	if o.dir != "" {
		for _, ending := range []string{".json", ".svg"} {
			must.Do(os.RemoveAll(filepath.Join(o.dir, command+ending)))
		}
		f := must.Get(os.Create(filepath.Join(o.dir, command+".md")))
		if o.file != nil { // unbuffered, so nothing can be lost
			_ = o.file.Close()
		}
		o.file = f // the last file closes with the process
		o.w = io.MultiWriter(o.stdout, f)
	}
	line := strings.Join(append([]string{"go run ./bench", command}, flags...), " ")
	o.printf("%s, `%s`, commit %s\n\n%s\n", o.conditions.Date, line, o.conditions.Commit, o.machine)
}

func (o *output) printf(format string, args ...any) { must.Get(fmt.Fprintf(o.w, format, args...)) }

// table prints a Markdown table, aligned to be readable as text.
func (o *output) table(title string, head []string, rows [][]string) {
	o.printf("\n### %s\n\n", title)
	w := tabwriter.NewWriter(o.w, 0, 0, 1, ' ', tabwriter.Debug)
	for _, row := range slices.Concat([][]string{head, slices.Repeat([]string{"---"}, len(head))}, rows) {
		row = append(row, make([]string, max(len(head)-len(row), 0))...)
		fmt.Fprintf(w, "| %s\t\n", strings.Join(row, "\t "))
	}
	must.Do(w.Flush())
}

// comparison is a row at a shape on every server, in the order of the command line.
type comparison struct {
	Row     string    `json:"row"`
	Shape   string    `json:"shape"`
	Servers []figures `json:"servers,omitempty"` // none if the row failed
}

// key names the row and the shape, as in goals and problems.
func (c *comparison) key() string { return c.Row + ", " + c.Shape }

// figures are a server's results over all rounds of a comparison. Times are microseconds.
type figures struct {
	Server       string  `json:"server"`
	OpsPerSecond spread  `json:"ops_per_second"`
	CPU          spread  `json:"cpu_us_per_op"` // all members added up
	P50          float64 `json:"p50_us"`
	P99          float64 `json:"p99_us"`
	P999         float64 `json:"p99_9_us"`
	Max          float64 `json:"max_us"`
	BytesPerOp   float64 `json:"disk_bytes_per_op"` // by the kernel's count
	Syncs        float64 `json:"disk_syncs_per_second"`
	OpsPerSync   float64 `json:"ops_per_sync"` // 0: no sync
	ResidentMiB  float64 `json:"resident_mib"` // after the last round
	Generator    float64 `json:"generator_us_per_op"`
	GeneratorOf  float64 `json:"generator_of_one_cpu"` // near 1 the generator is the limit
}

// spread holds the median, lowest and highest of the rounds.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

func spreadOf(rounds []float64) spread {
	return spread{median(rounds), slices.Min(rounds), slices.Max(rounds)}
}

// ratio prints the ratio of the medians, with the lowest and highest ratio of any two rounds.
func ratio(a, b spread) string {
	return fmt.Sprintf("%.2f (%.2f to %.2f)", a.Median/b.Median, a.Min/b.Max, a.Max/b.Min)
}

func (m *measured) figures(server string, mem memory) figures {
	us := func(q float64) float64 { return float64(m.latencies.quantile(q)) / 1e3 }
	f := figures{
		Server: server, OpsPerSecond: spreadOf(m.rates), CPU: spreadOf(m.cpu), P50: us(0.5), P99: us(0.99), P999: us(0.999),
		Max: float64(m.latencies.max()) / 1e3, BytesPerOp: float64(m.disk.bytes) / float64(m.ops),
		Syncs: float64(m.disk.syncs) / m.elapsed.Seconds(), ResidentMiB: float64(mem.rss) / (1 << 20),
		Generator: m.own.Seconds() * 1e6 / float64(m.ops), GeneratorOf: m.own.Seconds() / m.elapsed.Seconds(),
	}
	if m.disk.syncs > 0 {
		f.OpsPerSync = float64(m.ops) / float64(m.disk.syncs)
	}
	return f
}

// comparisons prints tables of all and writes <name>.json and <name>.svg if there is a directory.
// Ratios compare the first server with the last.
func (o *output) comparisons(name string, all []comparison) {
	var rates, rest [][]string
	head := []string{"row", "shape"}
	for _, c := range all {
		if c.Servers == nil {
			rates = append(rates, []string{c.Row, c.Shape, "failed"})
			continue
		}
		first := len(head) == 2 // the first row names the columns
		cells := []string{c.Row, c.Shape}
		compare := func(what string, of func(figures) spread, format func(float64) string) {
			for _, f := range c.Servers {
				v := of(f)
				cells = append(cells, fmt.Sprintf("%s (%.0f%%)", format(v.Median), 100*(v.Max-v.Min)/v.Median))
				if first {
					head = append(head, f.Server+", "+what)
				}
			}
			if n := len(c.Servers); n > 1 {
				cells = append(cells, ratio(of(c.Servers[0]), of(c.Servers[n-1])))
				if first {
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
	if len(head) == 2 { // all failed
		head = append(head, "")
	}
	o.table(fmt.Sprintf("Operations per second, and CPU of the server for each: median of %d rounds of %g s (spread)",
		o.conditions.Rounds, o.conditions.Seconds), head, rates)
	o.table("The same rounds: latency in µs, and what else it took", []string{
		"row", "shape", "server", "p50", "p99", "p99.9", "max", "disk bytes/op", "disk syncs/s", "ops/sync", "RSS MiB", "generator µs/op (of one CPU)",
	}, rest)
	o.json(name, contents{Rows: all})
	if o.dir != "" && slices.ContainsFunc(all, func(c comparison) bool { return len(c.Servers) > 1 }) {
		must.Do(os.WriteFile(filepath.Join(o.dir, name+".svg"), must.Get(ratiosPicture(all)), 0o644))
	}
}

// number prints three digits, or a whole number in full.
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

// reading is a figure of a server outside the tables of rows and shapes, of one or more rounds.
type reading struct {
	Row    string `json:"row"`
	What   string `json:"what"` // the quantity with its unit, such as "wall ms"
	Server string `json:"server"`
	Value  spread `json:"value"`
}

// contents is the content of a JSON file.
type contents struct {
	Machine    string       `json:"machine"`
	Conditions conditions   `json:"conditions"`
	Rows       []comparison `json:"rows,omitempty"`
	Readings   []reading    `json:"readings,omitempty"`
	Failed     []problem    `json:"failed,omitempty"`
}

// report prints the readings, with the ratio of the first server's median to the last server's, and
// writes them as <name>.json if there is a directory.
func (o *output) report(name, title string, list []reading) {
	byRow := make(map[[2]string][]reading)
	for _, r := range list {
		key := [2]string{r.Row, r.What}
		byRow[key] = append(byRow[key], r)
	}
	var table [][]string
	for _, r := range list {
		cells := []string{r.Row, r.What, r.Server, number(r.Value.Median)}
		if r.Value.Min != r.Value.Max {
			cells[3] += fmt.Sprintf(" (%s to %s)", number(r.Value.Min), number(r.Value.Max))
		}
		same := byRow[[2]string{r.Row, r.What}]
		if last := same[len(same)-1]; len(same) > 1 && r == same[0] && last.Value.Median != 0 {
			cells = append(cells, fmt.Sprintf("%.2f", r.Value.Median/last.Value.Median))
		}
		table = append(table, cells)
	}
	o.table(title, []string{"what", "quantity", "server", "median (min to max)", "ratio"}, table)
	o.readings(name, list)
}

// readings writes the figures as <name>.json if there is a directory.
func (o *output) readings(name string, list []reading) { o.json(name, contents{Readings: list}) }

// json writes c as <name>.json if there is a directory, with machine, conditions and failures.
func (o *output) json(name string, c contents) {
	if o.dir != "" {
		c.Machine, c.Conditions, c.Failed = o.machine, o.conditions, o.problems
		o.wrote[name] = true
		must.Do(os.WriteFile(filepath.Join(o.dir, name+".json"), append(must.Get(json.MarshalIndent(c, "", " ")), '\n'), 0o644))
	}
}

// once is the spread of a single reading.
func once(v float64) spread { return spread{v, v, v} }

// problem is a row that could not be measured.
type problem struct {
	Row    string `json:"row"` // as in the readings; of a throughput table its name, a comma, and its shape; empty: the whole command
	Server string `json:"server,omitempty"`
	Why    string `json:"why"`

	err error
}

func (p *problem) String() string {
	var words []string
	for _, w := range []string{p.Row, p.Server, p.Why} {
		if w != "" {
			words = append(words, w)
		}
	}
	return strings.Join(words, ": ")
}

// fail records that a row could not be measured on a server, prints the failure on standard error,
// and lets the other rows go on; end prints it below the tables. If ctx has ended, fail ends the
// command.
func (o *output) fail(ctx context.Context, row, server string, err error) {
	if ctx.Err() != nil {
		must.Do(errors.Join(ctx.Err(), err))
	}
	why, _, _ := strings.Cut(err.Error(), "\n") // a server's log may follow
	p := problem{row, server, why, err}
	progress("FAILED: %s", strings.TrimSuffix(p.String(), why)+err.Error())
	o.problems = append(o.problems, p)
}

// attempt measures a row on a server, and reports whether nothing went wrong; otherwise see fail.
func (o *output) attempt(ctx context.Context, row, server string, measure func()) bool {
	err := must.Try(measure)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		o.fail(ctx, row, server, err)
	}
	return err == nil
}

// end is called after each command with its error. It prints the failures below the tables, and
// returns an error if there are any.
func (o *output) end(command string, err error) error {
	if err != nil {
		why, _, _ := strings.Cut(err.Error(), "\n")
		o.problems = append(o.problems, problem{Why: why, err: err})
		if !o.wrote[command] { // so that the directory distinguishes a failure from a command that was not run
			o.readings(command, nil)
		}
	}
	for _, p := range o.problems {
		o.printf("\n**Failed**: %s\n", &p)
		if p.Row != "" || p.Server != "" {
			err = errors.Join(err, fmt.Errorf("%s: %w", &problem{Row: p.Row, Server: p.Server}, p.err))
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	return nil
}
