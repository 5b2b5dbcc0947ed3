package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// printRow says how one client fared on one server: what failed and why, and the logs with it.
func printRow(w io.Writer, r row, verbose bool) {
	fmt.Fprintf(w, "%s on %s: %d of %d passed in %s\n",
		r.client, r.server, r.report.Passed(), len(r.report.Results), r.took.Round(10*time.Millisecond))
	for _, res := range r.report.Results {
		switch {
		case res.Err != nil:
			fmt.Fprintf(w, "  FAIL %s: %v\n", res.Name, res.Err)
		case verbose:
			fmt.Fprintf(w, "  ok   %s\n", res.Name)
		}
	}
	if r.ok() {
		return
	}
	if r.err != nil {
		fmt.Fprintf(w, "  error: %v\n", r.err)
	}
	if log := strings.TrimSpace(r.report.Log); log != "" {
		fmt.Fprintf(w, "  log:\n    %s\n", strings.ReplaceAll(tail(log), "\n", "\n    "))
	}
}

// tail returns the end of a log: enough to see what happened last.
func tail(log string) string {
	const maxBytes = 4 << 10
	if len(log) <= maxBytes {
		return log
	}
	return "(cut) ..." + log[len(log)-maxBytes:]
}

// printTable prints one line per client and server, as Markdown that also reads well as it is.
func printTable(w io.Writer, rows []row) {
	t := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	line := func(cells ...string) { fmt.Fprintf(t, "| %s\t|\n", strings.Join(cells, "\t| ")) }
	line("client", "version", "server", "cases", "passed")
	line("---", "---", "---", "---", "---")
	for _, r := range rows {
		passed := strconv.Itoa(r.report.Passed())
		if r.err != nil {
			passed += " (did not finish)"
		}
		line(r.client, r.report.Version, r.server, strconv.Itoa(len(r.report.Results)), passed)
	}
	_ = t.Flush() // a table that cannot be printed cannot be complained about either
}
