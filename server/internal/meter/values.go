package meter

import (
	"math"
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/internal/histogram"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/facts"
)

const perMs = float64(time.Millisecond)

// Upper bounds of histograms, powers of two: of times, 33 µs to 34 s; of requests, 1 to 32,768.
var (
	durationPowers = []int{15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 32, 35}
	numberPowers   = []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15}
)

// neverCounted are ZooKeeper's counters of events that cannot happen here, but that dashboards ask
// for. Their help texts in package metrics say why each is 0.
var neverCounted = []string{
	"response_packet_cache_hits", "response_packet_cache_misses", "response_packet_get_children_cache_hits",
	"response_packet_get_children_cache_misses", "dead_watchers_queued", "dead_watchers_cleared", "add_dead_watcher_stall_time",
	"ensemble_auth_success", "ensemble_auth_fail", "ensemble_auth_skip",
	"insecure_admin_count", "unrecoverable_error_count",
}

// AddCounts appends ZooKeeper's counters. c are the counts of consensus since the last reset,
// handshakes the TLS handshakes under way.
func (m *Meter) AddCounts(l *facts.Values, c consensus.Counts, handshakes int64) {
	l.Add("connection_drop_probability", math.Float64frombits(m.DropShare.Load()))
	l.Add("outstanding_tls_handshake", handshakes)
	m.counts.list(l, 0, Evicted)
	l.Add("looking_count", c.Leaders)
	l.Add("diff_count", c.CaughtUp)
	l.Add("snap_count", c.Checkpoints)
	l.Add("proposal_count", c.Proposed)
	for _, name := range neverCounted {
		l.Add(name, int64(0))
	}
}

// AddTimes appends ZooKeeper's summaries.
func (m *Meter) AddTimes(l *facts.Values) {
	ops := func(name string, write bool) {
		chosen := m.ops.choose(func(op proto.OpCode) bool { return op.Info().Write == write })
		l.Add(name, summary(true, perMs, chosen...))
	}
	ops("readlatency", false)
	ops("updatelatency", true)
	m.measures.list(l)
}

// AddNamespaces appends the reads, writes and refusals below each child of the root.
func (m *Meter) AddNamespaces(l *facts.Values) {
	for _, n := range m.spaces.all() {
		if !n.reads.Empty() {
			l.AddKey("read_per_namespace", n.name, summary(false, 1, &n.reads))
		}
		if !n.writes.Empty() {
			l.AddKey("write_per_namespace", n.name, summary(false, 1, &n.writes))
		}
		for i, name := range spaceEventNames {
			if count := n.counts[i].Load(); count != 0 {
				l.AddKey(name, n.name, count)
			}
		}
	}
}

// AddOwn appends the values for which ZooKeeper has no names.
func (m *Meter) AddOwn(l *facts.Values) {
	m.ops.each(func(op proto.OpCode, h *histogram.Histogram) {
		l.AddKey("gozkd_request_duration_seconds", op.String(), seconds(h))
	})
	for i, name := range stageNames {
		l.AddKey("gozkd_write_stage_duration_seconds", name, seconds(&m.measures[int(stageRead)+i]))
	}
	l.Add("gozkd_log_sync_duration_seconds", seconds(&m.measures[Syncs]))
	l.Add("gozkd_checkpoint_duration_seconds", seconds(&m.measures[Checkpoints]))
	l.Add("gozkd_apply_duration_seconds", seconds(&m.measures[applying]))
	l.Add("gozkd_entry_requests", facts.NewHistogram(1, numberPowers, histogram.Snapshot(&m.measures[entrySize])))
	m.counts.list(l, Evicted, nEvents)
	l.Add("gozkd_sessions_lost_since_election", m.LostSinceElection.Load())
}

// summary describes the values of all hs, which were recorded in units of 1/unit.
func summary(detailed bool, unit float64, hs ...*histogram.Histogram) facts.Summary {
	return facts.NewSummary(detailed, unit, histogram.Snapshot(hs...))
}

func seconds(h *histogram.Histogram) facts.Histogram {
	return facts.NewHistogram(float64(time.Second), durationPowers, histogram.Snapshot(h))
}
