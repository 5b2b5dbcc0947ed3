package jepsenlite

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// A Report is the summary of a run.
type Report struct {
	Server string // server under test
	Seed   uint64
	Rounds int
	Took   time.Duration

	Operations map[string]int // with a reply, by operation
	Refused    int            // of these, with an error
	Unanswered int
	Events     int

	Faults map[string]int // by kind

	Sessions     int // of clients
	SessionsLost int // that clients wanted to continue and could not
	Lost         []LostSession
	ConnsLost    int // connections that the client did not close

	LongestGap    time.Duration // without a successful write of any client
	LongestToHeal time.Duration // from the last heal of a round until all members served

	Anomalies []Anomaly
	Left      string // directory with history, logs and pictures of a failure; empty: none
}

// Failed reports whether there was an anomaly.
func (r *Report) Failed() bool { return len(r.Anomalies) > 0 }

// A LostSession is a session that its client wanted to continue and could not. The check
// session-lost says whether it ended too early.
type LostSession struct {
	Client  string
	Timeout time.Duration
	At      time.Duration // since the start of the run
	Alive   time.Duration // before At its last successful request was sent
	Gap     time.Duration // the longest time without a successful write of any client between the two
}

func lostSession(history []*Record, refused *Record) LostSession {
	l := LostSession{Client: refused.Client, At: refused.Return}
	var session proto.SessionID
	var alive time.Duration
	for _, h := range history {
		switch {
		case h.Kind == KindOpen && h.Client == refused.Client && !h.Refused && h.Return < refused.Return:
			session, l.Timeout, alive = h.Session, h.Timeout, max(alive, h.Return)
		case h.OK() && session != 0 && h.Session == session:
			alive = max(alive, h.Call)
		}
	}
	l.Alive = refused.Return - alive
	l.Gap, _ = longestGap(history, alive, refused.Return)
	return l
}

// A roundResult holds the data that is judged after a round.
type roundResult struct {
	history       []*Record
	began, ended  time.Duration // of the traffic
	faults        map[string]int
	unrecovered   error         // not nil: the ensemble, or a client, did not recover
	longestToHeal time.Duration // from the last heal until all members served
}

// count counts a round that ended after took since the start of the run.
func (r *Report) count(res *roundResult, took time.Duration) {
	r.Rounds++
	r.Took = took
	r.add(res.history, res.began, res.ended)
	for k, n := range res.faults {
		r.Faults[k] += n
	}
	r.LongestToHeal = max(r.LongestToHeal, res.longestToHeal)
}

// add counts the records of a round.
func (r *Report) add(history []*Record, began, ended time.Duration) {
	if r.Operations == nil {
		r.Operations = map[string]int{}
	}
	sessions := map[proto.SessionID]bool{}
	for _, h := range history {
		switch h.Kind {
		case KindReply:
			switch {
			case !h.Answered():
				r.Unanswered++
				continue
			case h.Err != proto.OK:
				r.Refused++
			}
			r.Operations[h.Op.String()]++
		case KindEvent:
			r.Events++
		case KindOpen:
			if h.Refused {
				r.SessionsLost++
				r.Lost = append(r.Lost, lostSession(history, h))
			} else {
				sessions[h.Session] = true
			}
		case KindClose:
			if h.Why != WhyClient {
				r.ConnsLost++
			}
		}
	}
	r.Sessions += len(sessions)
	gap, _ := longestGap(history, began, ended)
	r.LongestGap = max(r.LongestGap, gap)
}

// longestGap returns the longest time between successful writes from began to ended, and its start.
func longestGap(history []*Record, began, ended time.Duration) (longest, at time.Duration) {
	var writes []time.Duration
	for _, h := range history {
		if h.Writes() && h.OK() && h.Return >= began && h.Return <= ended {
			writes = append(writes, h.Return)
		}
	}
	writes = append(writes, ended)
	slices.Sort(writes)
	last := began
	for _, w := range writes {
		if w-last > longest {
			longest, at = w-last, last
		}
		last = w
	}
	return longest, at
}

// progressBound is how long a write may take while a majority is well. It is far above the time of
// an election, because these members share a machine with everything else; package test/sim has a
// bound in election timeouts.
const progressBound = 15 * time.Second

// findProgress: while a majority is well, writes succeed.
func findProgress(h []*Record, found func(string, ...*Record)) {
	for _, r := range h {
		if r.Kind != KindWell {
			continue
		}
		if gap, at := longestGap(h, r.Call, r.Return); gap > progressBound {
			found(fmt.Sprintf("no write succeeded from %v on for %v, although a majority was well", at, gap), r)
		}
	}
}

// Print writes the report for people.
func (r *Report) Print(w io.Writer) {
	total := 0
	for _, n := range r.Operations {
		total += n
	}
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-34s %s\n", name, fmt.Sprintf(format, args...))
	}
	row("server", "%s", r.Server)
	row("seed", "%d", r.Seed)
	row("rounds", "%d in %v", r.Rounds, r.Took.Round(time.Second))
	row("operations", "%d answered (%d with an error), %d without an answer, %d events", total, r.Refused, r.Unanswered, r.Events)
	row("", "%s", counts(r.Operations))
	row("faults", "%s", counts(r.Faults))
	row("sessions", "%d, %d lost; %d connections lost", r.Sessions, r.SessionsLost, r.ConnsLost)
	for _, l := range r.Lost {
		row("", "%s, timeout %v, at %v: %v after its last success, %v of it without a write of anybody", l.Client, l.Timeout,
			l.At.Round(time.Millisecond), l.Alive.Round(time.Millisecond), l.Gap.Round(time.Millisecond))
	}
	row("longest without a successful write", "%v", r.LongestGap.Round(time.Millisecond))
	row("longest until all served again", "%v", r.LongestToHeal.Round(time.Millisecond))
	row("anomalies", "%d", len(r.Anomalies))
	for _, a := range r.Anomalies {
		fmt.Fprintln(w, "  "+shorten(a.String()))
	}
	if r.Left != "" {
		row("history, logs, pictures", "%s", r.Left)
	}
}

// counts formats "kill 3, pause 4", by name.
func counts(m map[string]int) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s %d", k, m[k]))
	}
	if parts == nil {
		return "none"
	}
	return strings.Join(parts, ", ")
}

func shorten(s string) string {
	const most = 400
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
