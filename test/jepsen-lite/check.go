package jepsenlite

import (
	"fmt"
	"strings"
)

// An Anomaly is a broken promise in a history.
type Anomaly struct {
	Check   string  // name of the check
	What    string  // description
	Records []int64 // Seq of the records that show it
}

// String returns the anomaly on one line.
func (a Anomaly) String() string {
	return fmt.Sprintf("%s: %s (records %v)", a.Check, a.What, a.Records)
}

// A check looks for a kind of anomaly in the history of a round, in order of Seq.
type check struct {
	name string
	find func(h []*Record, found func(what string, records ...*Record))
}

// Check runs all checks over the history of a round. It returns the anomalies in no particular
// order, at most maxFound per check, because a broken promise usually breaks in many places.
func Check(h []*Record) []Anomaly {
	var all []Anomaly
	for _, c := range checks() {
		all = append(all, c.run(h)...)
	}
	return all
}

const maxFound = 20

func (c check) run(h []*Record) []Anomaly {
	var all []Anomaly
	c.find(h, func(what string, records ...*Record) {
		if len(all) == maxFound {
			return
		}
		a := Anomaly{Check: c.name, What: what}
		for _, r := range records {
			a.Records = append(a.Records, r.Seq)
		}
		all = append(all, a)
	})
	return all
}

func checks() []check {
	return []check{
		// For every load.
		{"zxid-order", findZxidOrder},
		{"reply-order", findReplyOrder},
		{"session-zxid", findSessionZxid},
		{"session-view", findSessionView},
		{"session-lost", findSessionLost},
		{"one-state", findOneState},
		{"watch", findWatch},
		{"replay", findReplay},
		{"replicas", findReplicas},
		{"full", findFull},
		{"progress", findProgress},
		// For a single load.
		{"set", findSet},
		{"sequence", findSequence},
		{"bank", findBank},
		{"queue", findQueue},
		{"lock", findLock},
		{"ephemeral", findEphemeral},
		{"pipeline", findPipeline},
	}
}

// isOf reports whether a record is a request of a load's clients.
func isOf(r *Record, load string) bool {
	return r.Kind == KindReply && strings.HasPrefix(r.Client, load+"-") && len(r.Parts) > 0
}

func baseName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
