package fourletter

import (
	"bufio"
	"sort"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/facts"
)

const javaDate = "Mon Jan 02 15:04:05 MST 2006"

// writeDump answers dump: when sessions expire, who has ephemerals, and when connections close.
func writeDump(w *bufio.Writer, s Server) {
	say(w, "SessionTracker dump:\n")
	title, local := "Session Sets", s.LocalExpiries()
	if local != nil {
		writeExpiries(w, "Local Session Sets", local)
		title = "Global Session Sets"
	}
	if buckets := s.Expiries(); buckets != nil {
		writeExpiries(w, title, buckets)
	} else { // the leader decides when sessions expire, and only the leader knows
		sessions := s.Sessions()
		say(w, "Global Sessions(%d):\n", len(sessions))
		for i := range sessions {
			say(w, "%s\t%dms\n", proto.SessionID(sessions[i].ID), sessions[i].Timeout.Milliseconds())
		}
	}

	owners := s.Ephemerals()
	say(w, "ephemeral nodes dump:\nSessions with Ephemerals (%d):\n", len(owners))
	for _, owner := range owners {
		say(w, "%s:\n", proto.SessionID(owner.Session))
		for _, path := range owner.Paths {
			say(w, "\t%s\n", path)
		}
	}

	conns := s.Connections()
	sort.SliceStable(conns, func(i, j int) bool { return conns[i].Expires.Before(conns[j].Expires) })
	var sets [][]facts.Connection
	for rest := conns; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Expires.Equal(rest[0].Expires) {
			n++
		}
		sets, rest = append(sets, rest[:n]), rest[n:]
	}
	say(w, "Connections dump:\nConnections Sets (%d)/(%d):\n", len(sets), len(conns))
	for _, set := range sets {
		say(w, "%d expire at %s:\n", len(set), set[0].Expires.Format(javaDate))
		for i := range set {
			say(w, "\tip: /%s sessionId: %s\n", set[i].Remote, proto.SessionID(set[i].Session))
		}
	}
}

func writeExpiries(w *bufio.Writer, title string, buckets []facts.Expiry) {
	n := 0
	for i := range buckets {
		n += len(buckets[i].Sessions)
	}
	say(w, "%s (%d)/(%d):\n", title, len(buckets), n)
	for i := range buckets {
		say(w, "%d expire at %s:\n", len(buckets[i].Sessions), buckets[i].At.Format(javaDate))
		for _, id := range buckets[i].Sessions {
			say(w, "\t%s\n", proto.SessionID(id))
		}
	}
}

// writeKinds answers kind: the containers and the znodes with a time to live. The last line is
// their number, so that a reader can tell an answer that was cut off.
func writeKinds(w *bufio.Writer, s Server) {
	all := s.ZnodeKinds()
	for _, z := range all {
		if z.TTL == 0 {
			say(w, "container\t%s\n", z.Path)
		} else {
			say(w, "ttl\t%d\t%s\n", z.TTL.Milliseconds(), z.Path)
		}
	}
	say(w, "%d\n", len(all))
}
