package meter

import (
	"github.com/gozkd/gozkd/internal/histogram"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/facts"
)

// Measure is something that a Meter measures: a duration in nanoseconds or a number.
type Measure uint8

// The measures.
const (
	Syncs          Measure = iota // of the log
	AppendsPerSync                // how many
	Checkpoints
	Opening       // of the data at the start
	TokensMissing // how many the throttle of connections misses, after a connect request
	Throttled     // how long a write waited because too many were under way

	readsAtOnce    // reads that did not wait for others
	readsQueued    // reads that did
	readsFromQueue // how many were answered together
	inQueue        // how many requests waited on a connection

	// The stages of the writes of this server's clients, in their order.
	// docs/reference/monitoring.md says where each ends.
	stageRead
	stageQueued
	stageLogged
	stageCommitted
	stageApplied
	stageWritten
	propagation // this measure and the next three: of writes since the leader's clock
	proposing
	acking
	committing
	quorumAcks
	applying   // one call of Apply
	entrySize  // how many requests an entry has
	ownInEntry // how many of them are of this server's clients

	// How many connections watched for an event, by its type.
	eventsCreated
	eventsDeleted
	eventsChanged
	eventsChildren

	// How long a change of the leader took.
	searched
	unavailable
	leaderUnavailable
	followerSyncs
	observerSyncs
	nMeasures
)

var stageNames = [...]string{"read", "queued", "logged", "committed", "applied", "written"}

// summaries are ZooKeeper's summaries. A detailed summary has quantiles.
var summaries = []struct {
	name     string
	of       Measure
	detailed bool
	unit     float64
}{
	{"fsynctime", Syncs, false, perMs},
	{"snapshottime", Checkpoints, false, perMs},
	{"dbinittime", Opening, false, perMs},
	{"propagation_latency", propagation, true, perMs},
	{"proposal_latency", proposing, true, perMs},
	{"proposal_ack_creation_latency", acking, true, perMs},
	{"commit_propagation_latency", committing, true, perMs},
	{"quorum_ack_latency", quorumAcks, true, perMs},
	{"election_time", searched, false, perMs},
	{"unavailable_time", unavailable, false, perMs},
	{"leader_unavailable_time", leaderUnavailable, false, perMs},
	{"follower_sync_time", followerSyncs, false, perMs},
	{"observer_sync_time", observerSyncs, false, perMs},
	{"prep_processor_queue_time_ms", stageQueued, true, perMs},
	{"prep_processor_queue_size", ownInEntry, false, 1},
	{"sync_processor_batch_size", entrySize, false, 1},
	{"sync_processor_queue_size", AppendsPerSync, false, 1},
	{"sync_process_time", Syncs, false, perMs},
	{"sync_processor_queue_and_flush_time_ms", stageLogged, true, perMs},
	{"sync_processor_queue_flush_time_ms", Syncs, true, perMs},
	{"read_commitproc_time_ms", readsQueued, true, perMs},
	{"write_commitproc_time_ms", stageCommitted, true, perMs},
	{"read_final_proc_time_ms", readsAtOnce, true, perMs},
	{"write_final_proc_time_ms", stageApplied, true, perMs},
	{"requests_in_session_queue", inQueue, false, 1},
	{"reads_issued_from_session_queue", readsFromQueue, false, 1},
	{"request_throttle_queue_time_ms", Throttled, true, perMs},
	{"connection_token_deficit", TokensMissing, false, 1},
	{"node_created_watch_count", eventsCreated, false, 1},
	{"node_deleted_watch_count", eventsDeleted, false, 1},
	{"node_changed_watch_count", eventsChanged, false, 1},
	{"node_children_watch_count", eventsChildren, false, 1},
}

type measures [nMeasures]histogram.Histogram

func (m *measures) Record(of Measure, value int64, n int) { m[of].Record(value, n) }

// Watchers records how many connections watched for an event of that type.
func (m *measures) Watchers(t proto.EventType, watchers int) {
	of := eventsChildren
	switch t {
	case proto.EventCreated:
		of = eventsCreated
	case proto.EventDeleted:
		of = eventsDeleted
	case proto.EventDataChanged:
		of = eventsChanged
	}
	m[of].Record(int64(watchers), 1)
}

func (m *measures) list(l *facts.Values) {
	for _, s := range summaries {
		l.Add(s.name, summary(s.detailed, s.unit, &m[s.of]))
	}
}

func (m *measures) reset() {
	for i := range m {
		m[i].Reset()
	}
}
