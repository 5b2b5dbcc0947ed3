package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// formatRow describes a client's result on a server: failures with their reasons, and the logs.
func formatRow(r row, verbose bool) string {
	var w strings.Builder
	fmt.Fprintf(&w, "%s on %s: %d of %d passed in %s\n",
		r.client, r.server, r.report.Passed(), len(r.report.Results), r.took.Round(10*time.Millisecond))
	for _, res := range r.report.Results {
		switch {
		case res.Err != nil:
			fmt.Fprintf(&w, "  FAIL %s: %v\n", res.Name, res.Err)
		case verbose:
			fmt.Fprintf(&w, "  ok   %s\n", res.Name)
		}
	}
	if r.ok() {
		return w.String()
	}
	if r.err != nil {
		fmt.Fprintf(&w, "  error: %v\n", r.err)
	}
	if log := strings.TrimSpace(r.report.Log); log != "" {
		fmt.Fprintf(&w, "  log:\n    %s\n", strings.ReplaceAll(tail(log), "\n", "\n    "))
	}
	return w.String()
}

// tail returns the end of a log.
func tail(log string) string {
	const maxBytes = 4 << 10
	if len(log) <= maxBytes {
		return log
	}
	return "(cut) ..." + log[len(log)-maxBytes:]
}

// formatTable returns a line per client and server, as Markdown that is readable as text.
func formatTable(rows []row) string {
	lines := [][]string{{"client", "version", "server", "cases", "passed"}, {"---", "---", "---", "---", "---"}}
	for _, r := range rows {
		passed := strconv.Itoa(r.report.Passed())
		if r.try > 1 {
			passed += fmt.Sprintf(" (at try %d)", r.try)
		}
		if r.err != nil {
			passed += " (did not finish)"
		}
		lines = append(lines, []string{r.client, r.report.Version, r.server, strconv.Itoa(len(r.report.Results)), passed})
	}
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], len(cell))
		}
	}
	var w strings.Builder
	for _, line := range lines {
		for i, cell := range line {
			fmt.Fprintf(&w, "| %-*s ", widths[i], cell)
		}
		w.WriteString("|\n")
	}
	return w.String()
}
