package consensus

import (
	"fmt"
	"strings"
	"testing"
)

// add adds the counts of another run.
func (s *simStats) add(o *simStats) {
	for i := range s.steps {
		s.steps[i] += o.steps[i]
	}
	s.simulatedMs += o.simulatedMs
	s.skippedMs += o.skippedMs
	s.progress.slowestMs = max(s.progress.slowestMs, o.progress.slowestMs)
	mine, theirs := s.counters(), o.counters()
	for i := range mine {
		*mine[i].n += *theirs[i].n
	}
}

type simCounter struct {
	name string
	n    *int
}

func (s *simStats) counters() []simCounter {
	return append(s.decisions.counters(), []simCounter{
		{"lives ended", &s.crashes}, {"starts", &s.restarts}, {"crashes at a disk operation", &s.tornOps}, {"leaders", &s.leaders},
		{"requests", &s.requests}, {"applied", &s.applied}, {"acknowledged", &s.acknowledged}, {"reads", &s.reads},
		{"messages", &s.messages}, {"messages lost", &s.lost}, {"doubled", &s.duplicated}, {"delayed", &s.delayed},
		{"checkpoints", &s.checkpoints}, {"checkpoint transfers", &s.transfers}, {"broken", &s.brokenTransfers}, {"installed", &s.installed}, {"read in place", &s.readInPlace},
		{"members that formed", &s.forms}, {"emptied or restored, and voting again", &s.readmitted},
		{"restored", &s.rolledBack}, {"found outdated", &s.outdated}, {"memberships", &s.confChanges},
		{"targets reached or not", &s.reconciled}, {"not reached", &s.notReached}, {"sessions expired", &s.expired}, {"late expiries refused", &s.lateExpiries},
		{"levels activated", &s.activated}, {"starts refused for a level", &s.levelRefused}, {"requests of level 2", &s.levelRequests},
		{"entries relayed to learners", &s.relayedEntries}, {"entries sent to learners by the leader", &s.unrelayedEntries},
		{"growth refused", &s.growthRefused}, {"times full", &s.timesFull}, {"lives ended by a full disk", &s.outOfRoom},
		{"answers in time", &s.progress.answers}, {"after more than two election timeouts", &s.progress.slow},
	}...)
}

func (s *simStats) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%.1f simulated ensemble-hours, %.1f of them with heartbeats only\nfaults:",
		float64(s.simulatedMs)/3_600_000, float64(s.skippedMs)/3_600_000)
	for i, n := range s.steps {
		fmt.Fprintf(&b, " %v %d,", stepKind(i), n)
	}
	b.WriteString("\nevents:")
	for _, c := range s.counters() {
		fmt.Fprintf(&b, " %s %d,", c.name, *c.n)
	}
	fmt.Fprintf(&b, " slowest answer %d ms", s.progress.slowestMs)
	return b.String()
}

func (s *simStats) log(t *testing.T) { t.Log(s) }
