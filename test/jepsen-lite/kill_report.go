package jepsenlite

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// A KillReport is the result of RunKills.
type KillReport struct {
	Server string
	Seed   uint64
	Tick   time.Duration
	Kills  int

	Answered, Unanswered int
	Gaps                 []time.Duration // without a successful write, one per kill
	Closed               int             // connections of other members' clients that ended at a kill
	Refused              int             // connections that another member closed later
	SessionsLost         int

	Anomalies []Anomaly
	Left      string // directory with history, logs and pictures of a failure; empty: none
}

// Failed reports whether a client of a surviving member noticed more than a delay.
func (r *KillReport) Failed() bool {
	return r.Closed > 0 || r.SessionsLost > 0 || len(r.Anomalies) > 0
}

// quantile returns the smallest value that a fraction q of all values does not exceed, or zero
// without values.
func quantile(values []time.Duration, q float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	i := int(q*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// Print writes the report for people.
func (r *KillReport) Print(w io.Writer) {
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-34s %s\n", name, fmt.Sprintf(format, args...))
	}
	ms := func(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
	row("server", "%s, tickTime %v", r.Server, r.Tick)
	row("seed", "%d", r.Seed)
	row("leaders killed", "%d", r.Kills)
	row("operations", "%d answered, %d without an answer", r.Answered, r.Unanswered)
	row("without a successful write", "median %v, p90 %v, longest %v", ms(quantile(r.Gaps, 0.5)), ms(quantile(r.Gaps, 0.9)), ms(quantile(r.Gaps, 1)))
	row("clients of the other members", "%d connections closed, %d turned away later", r.Closed, r.Refused)
	row("sessions lost", "%d", r.SessionsLost)
	row("anomalies", "%d", len(r.Anomalies))
	for _, a := range r.Anomalies {
		fmt.Fprintln(w, "  "+shorten(a.String()))
	}
	if r.Left != "" {
		row("history, logs, pictures", "%s", r.Left)
	}
}
