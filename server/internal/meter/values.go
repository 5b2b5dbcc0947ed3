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

// Upper bounds of histograms, as powers of two: of nanoseconds, 33 µs to 34 s; of requests, 1 to
// 32,768.
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
	t, conns := &m.Traffic, &m.Conns
	l.Add("connection_drop_probability", math.Float64frombits(conns.DropShare.Load()))
	l.Add("auth_failed_count", conns.AuthFailed.Load())
	l.Add("outstanding_tls_handshake", handshakes)
	l.Add("non_mtls_remote_conn_count", conns.PlainRemote.Load())
	l.Add("non_mtls_local_conn_count", conns.PlainLocal.Load())
	l.Add("fsync_threshold_exceed_count", m.Log.SlowSyncs.Load())

	l.Add("bytes_received_count", t.BytesReceived.Load())
	l.Add("response_bytes", t.ResponseBytes.Load())
	l.Add("watch_bytes", t.WatchBytes.Load())
	l.Add("connection_request_count", conns.Requests.Load())
	l.Add("connection_rejected", conns.Rejected.Load())
	l.Add("connection_drop_count", conns.Broken.Load())
	l.Add("connection_revalidate_count", conns.Reattached.Load())
	l.Add("revalidate_count", m.Sessions.Revalidated.Load())
	l.Add("cnxn_closed_without_zk_server_running", conns.NotServed.Load())
	l.Add("sessionless_connections_expired", conns.Sessionless.Load())
	l.Add("stale_sessions_expired", m.Sessions.Expired.Load())
	l.Add("request_throttle_wait_count", m.Requests.ThrottleWaits.Load())
	l.Add("throttled_ops", m.Requests.ThrottledOps.Load())
	l.Add("stale_requests", m.Requests.Stale.Load())
	l.Add("stale_requests_dropped", m.Requests.StaleDropped.Load())
	l.Add("stale_replies", m.Requests.StaleReplies.Load())
	l.Add("large_requests_rejected", m.Requests.LargeRejected.Load())
	l.Add("digest_mismatches_count", m.DigestsDiffer.Load())

	l.Add("looking_count", c.Leaders)
	l.Add("diff_count", c.CaughtUp)
	l.Add("snap_count", c.Checkpoints)
	l.Add("proposal_count", c.Proposed)
	l.Add("commit_count", m.Writes.commits.Load())
	l.Add("unsuccessful_handshake", conns.HandshakesFailed.Load())
	l.Add("tls_handshake_exceeded", conns.HandshakesExceeded.Load())
	for _, name := range neverCounted {
		l.Add(name, int64(0))
	}
}

// AddTimes appends ZooKeeper's summaries.
func (m *Meter) AddTimes(l *facts.Values) {
	basic := func(name string, hs ...*histogram.Histogram) { l.Add(name, summary(false, perMs, hs...)) }
	detailed := func(name string, hs ...*histogram.Histogram) { l.Add(name, summary(true, perMs, hs...)) }
	number := func(name string, h *histogram.Histogram) { l.Add(name, summary(false, 1, h)) }
	w, q, e := &m.Writes, &m.Requests, &m.Elections

	basic("fsynctime", &m.Log.Syncs)
	basic("snapshottime", &m.Log.Checkpoints)
	basic("dbinittime", &m.Log.Opening)
	detailed("readlatency", q.ops.choose(func(op proto.OpCode) bool { return !op.Info().Write })...)
	detailed("updatelatency", q.ops.choose(func(op proto.OpCode) bool { return op.Info().Write })...)
	detailed("propagation_latency", &w.propagation)
	detailed("proposal_latency", &w.proposing)
	detailed("proposal_ack_creation_latency", &w.acking)
	detailed("commit_propagation_latency", &w.committing)
	detailed("quorum_ack_latency", &w.quorumAcks)
	basic("election_time", &e.searched)
	basic("unavailable_time", &e.unavailable)
	basic("leader_unavailable_time", &e.leaderUnavailable)
	basic("follower_sync_time", &e.followerSyncs)
	basic("observer_sync_time", &e.observerSyncs)

	detailed("prep_processor_queue_time_ms", &w.stages[stageQueued])
	number("prep_processor_queue_size", &w.waiting)
	number("sync_processor_batch_size", &w.entries)
	number("sync_processor_queue_size", &m.Log.AppendsPerSync)
	basic("sync_process_time", &m.Log.Syncs)
	detailed("sync_processor_queue_and_flush_time_ms", &w.stages[stageLogged])
	detailed("sync_processor_queue_flush_time_ms", &m.Log.Syncs)
	detailed("read_commitproc_time_ms", &q.readsQueued)
	detailed("write_commitproc_time_ms", &w.stages[stageCommitted])
	detailed("read_final_proc_time_ms", &q.readsAtOnce)
	detailed("write_final_proc_time_ms", &w.stages[stageApplied])
	number("requests_in_session_queue", &q.inQueue)
	number("reads_issued_from_session_queue", &q.readsFromQueue)
	detailed("request_throttle_queue_time_ms", &q.Throttled)
	number("connection_token_deficit", &m.Conns.TokensMissing)

	number("node_created_watch_count", &m.Watchers.created)
	number("node_deleted_watch_count", &m.Watchers.deleted)
	number("node_changed_watch_count", &m.Watchers.changed)
	number("node_children_watch_count", &m.Watchers.children)
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
		if over := n.overQuota.Load(); over != 0 {
			l.AddKey("quota_exceeded_error_per_namespace", n.name, over)
		}
	}
}

// AddOwn appends the values for which ZooKeeper has no names.
func (m *Meter) AddOwn(l *facts.Values) {
	m.Requests.ops.each(func(op proto.OpCode, h *histogram.Histogram) {
		l.AddKey("gozkd_request_duration_seconds", op.String(), seconds(h))
	})
	for i := range m.Writes.stages {
		l.AddKey("gozkd_write_stage_duration_seconds", stageNames[i], seconds(&m.Writes.stages[i]))
	}
	l.Add("gozkd_log_sync_duration_seconds", seconds(&m.Log.Syncs))
	l.Add("gozkd_checkpoint_duration_seconds", seconds(&m.Log.Checkpoints))
	l.Add("gozkd_apply_duration_seconds", seconds(&m.Writes.applying))
	l.Add("gozkd_entry_requests", facts.NewHistogram(1, numberPowers, histogram.Snapshot(&m.Writes.entries)))
	l.Add("gozkd_slow_clients_closed_total", m.Conns.Evicted.Load())
	l.Add("gozkd_watching_clients_closed_total", m.Conns.TooManyWatches.Load())
	l.Add("gozkd_slow_requests_total", m.Slow.requests.Load())
	l.Add("gozkd_sessions_lost_since_election", m.Sessions.LostSinceElection.Load())
}

// summary describes the values of all hs, which were recorded in units of 1/unit.
func summary(detailed bool, unit float64, hs ...*histogram.Histogram) facts.Summary {
	return facts.NewSummary(detailed, unit, histogram.Snapshot(hs...))
}

// seconds describes durations.
func seconds(h *histogram.Histogram) facts.Histogram {
	return facts.NewHistogram(float64(time.Second), durationPowers, histogram.Snapshot(h))
}
