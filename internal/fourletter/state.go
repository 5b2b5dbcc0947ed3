package fourletter

import (
	"bufio"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/facts"
)

// writeVersion writes the first lines of srvr and stat.
func writeVersion(w *bufio.Writer, st *facts.Stats) {
	say(w, "Zookeeper version: %s\n", st.Version)
	if st.Mode == facts.ReadOnly {
		say(w, "READ-ONLY mode; serving only read-only clients\n")
	}
}

// writeStats writes the lines that srvr and stat share.
func writeStats(w *bufio.Writer, st *facts.Stats) {
	say(w, "Latency min/avg/max: %d/%s/%d\n", st.MinLatencyMs, decimal(st.AvgLatencyMs), st.MaxLatencyMs)
	say(w, "Received: %d\nSent: %d\n", st.Received, st.Sent)
	say(w, "Connections: %d\nOutstanding: %d\n", st.Connections, st.Outstanding)
	say(w, "Zxid: %s\nMode: %s\nNode count: %d\n", proto.Zxid(st.Zxid), st.Mode, st.Znodes)
	if st.Mode == facts.Leader {
		p := st.ProposalBytes
		say(w, "Proposal sizes last/min/max: %d/%d/%d\n", p.Last, p.Min, p.Max)
	}
	for _, warning := range []struct{ about, text string }{
		{"Archive", st.Fenced}, {"Membership", st.Outside}, {"Certificates", st.Certificates},
	} {
		if warning.text != "" {
			say(w, "%s: %s\n", warning.about, warning.text)
		}
	}
}

// writeSettings writes lines of the form key=value.
func writeSettings(w *bufio.Writer, settings []facts.Setting) {
	for _, s := range settings {
		say(w, "%s=%s\n", s.Key, s.Value)
	}
}

func writeMonitor(w *bufio.Writer, s Server) {
	for _, v := range s.Monitor() {
		for key, is := range v.Lines() {
			if f, ok := is.(float64); ok {
				is = decimal(f)
				if strings.HasSuffix(v.Name, "_seconds") { // ZooKeeper's four digits would round most durations to 0
					is = strconv.FormatFloat(f, 'f', 6, 64)
				}
			}
			say(w, "zk_%s\t%v\n", key, is)
		}
	}
}

// decimal formats a float as Java does, with at least one digit after the point, and with at most
// four as ZooKeeper does.
func decimal(v float64) string {
	text := strconv.FormatFloat(facts.Round(v), 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}
