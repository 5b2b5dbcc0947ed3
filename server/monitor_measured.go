package server

import (
	"strconv"
	"strings"
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/proto"
)

// What ZooKeeper's mntr has of its metrics registry, under ZooKeeper's names.

const perMs = float64(time.Millisecond)

// summary makes a Summary of histograms whose unit-th part is told.
func summary(detailed bool, unit float64, hs ...*histogram) Summary {
	d := snapshot(hs...)
	of := func(v float64) int64 { return int64(v / unit) }
	return Summary{
		Count: d.count, Sum: of(d.sum), Min: of(float64(d.min())), Max: of(float64(d.max())), Avg: round(d.mean() / unit),
		detailed: detailed, unit: unit, values: d,
	}
}

// counts returns what consensus has counted since the start or the srst word.
func (s *Server) counts() consensus.Counts {
	before := s.countsAtReset.Load() // first: a reset in between would make the difference negative
	c := s.node.Status().Counts
	if before != nil {
		c.Leaders -= before.Leaders
		c.Proposed -= before.Proposed
		c.Resent -= before.Resent
		c.Checkpoints -= before.Checkpoints
		c.CaughtUp -= before.CaughtUp
	}
	return c
}

// neverCounted are ZooKeeper's counters of what can't happen here, and that dashboards ask for. docs/reference/monitoring.md says why each is 0.
var neverCounted = []string{
	"response_packet_cache_hits", "response_packet_cache_misses", "response_packet_get_children_cache_hits",
	"response_packet_get_children_cache_misses", "dead_watchers_queued", "dead_watchers_cleared", "add_dead_watcher_stall_time",
	"throttled_ops", "stale_requests", "stale_requests_dropped", "stale_replies", "large_requests_rejected",
	"ensemble_auth_success", "ensemble_auth_fail", "ensemble_auth_skip", "unsuccessful_handshake", "tls_handshake_exceeded",
	"insecure_admin_count", "unrecoverable_error_count",
}

func (s *Server) monitorCounts(l *values) {
	st := &s.stats
	l.add("connection_drop_probability", 0.0)
	l.add("auth_failed_count", st.authFailed.Load())
	l.add("outstanding_tls_handshake", int64(0))
	l.add("non_mtls_remote_conn_count", int64(0))
	l.add("non_mtls_local_conn_count", int64(0))
	l.add("fsync_threshold_exceed_count", st.slowSyncs.Load())

	l.add("bytes_received_count", st.bytesReceived.Load())
	l.add("response_bytes", st.responseBytes.Load())
	l.add("watch_bytes", st.watchBytes.Load())
	l.add("connection_request_count", st.connRequests.Load())
	l.add("connection_rejected", st.connsRejected.Load())
	l.add("connection_drop_count", st.connsBroken.Load())
	l.add("connection_revalidate_count", st.connsReattached.Load())
	l.add("revalidate_count", st.revalidated.Load())
	l.add("cnxn_closed_without_zk_server_running", st.connsNotServed.Load())
	l.add("sessionless_connections_expired", st.sessionless.Load())
	l.add("stale_sessions_expired", st.expired.Load())
	l.add("request_throttle_wait_count", st.throttleWaits.Load())
	l.add("digest_mismatches_count", st.digestsDiffer.Load())

	var c consensus.Counts
	if !s.alone() { // a standalone ZooKeeper has no elections and no proposals
		c = s.counts()
	}
	l.add("looking_count", c.Leaders)
	l.add("diff_count", c.CaughtUp)
	l.add("snap_count", c.Checkpoints)
	l.add("proposal_count", c.Proposed)
	l.add("commit_count", st.commits.Load())
	for _, name := range neverCounted {
		l.add(name, int64(0))
	}
}

func (s *Server) monitorTimes(l *values) {
	st := &s.stats
	basic := func(name string, hs ...*histogram) { l.add(name, summary(false, perMs, hs...)) }
	detailed := func(name string, hs ...*histogram) { l.add(name, summary(true, perMs, hs...)) }
	number := func(name string, h *histogram) { l.add(name, summary(false, 1, h)) }
	stages := &st.stages

	basic("fsynctime", &st.syncs)
	basic("snapshottime", &st.checkpoints)
	basic("dbinittime", &st.opening)
	detailed("readlatency", st.ops.choose(func(op proto.OpCode) bool { return !op.Info().Write })...)
	detailed("updatelatency", st.ops.choose(func(op proto.OpCode) bool { return op.Info().Write })...)
	detailed("propagation_latency", &st.propagation)
	detailed("proposal_latency", &st.proposing)
	detailed("proposal_ack_creation_latency", &st.acking)
	detailed("commit_propagation_latency", &st.committing)
	detailed("quorum_ack_latency", &st.quorumAcks)
	basic("election_time", &st.elections)
	basic("unavailable_time", &st.unavailable)
	basic("leader_unavailable_time", &st.leaderUnavailable)
	basic("follower_sync_time", &st.followerSyncs)
	basic("observer_sync_time", &st.observerSyncs)

	detailed("prep_processor_queue_time_ms", &stages[stageQueued])
	number("prep_processor_queue_size", &st.waiting)
	number("sync_processor_batch_size", &st.entries)
	number("sync_processor_queue_size", &st.appends)
	basic("sync_process_time", &st.syncs)
	detailed("sync_processor_queue_and_flush_time_ms", &stages[stageLogged])
	detailed("sync_processor_queue_flush_time_ms", &st.syncs)
	detailed("read_commitproc_time_ms", &st.readsQueued)
	detailed("write_commitproc_time_ms", &stages[stageCommitted])
	detailed("read_final_proc_time_ms", &st.readsAtOnce)
	detailed("write_final_proc_time_ms", &stages[stageApplied])
	number("requests_in_session_queue", &st.inQueue)
	number("reads_issued_from_session_queue", &st.readsFromQueue)
	detailed("request_throttle_queue_time_ms", &st.throttled)

	number("node_created_watch_count", &st.created)
	number("node_deleted_watch_count", &st.deleted)
	number("node_changed_watch_count", &st.changed)
	number("node_children_watch_count", &st.children)
}

func (s *Server) monitorNamespaces(l *values) {
	for _, n := range s.stats.spaces.all() {
		if n.reads.counts.Load() != nil {
			l.addOf("read_per_namespace", n.name, summary(false, 1, &n.reads))
		}
		if n.writes.counts.Load() != nil {
			l.addOf("write_per_namespace", n.name, summary(false, 1, &n.writes))
		}
		if over := n.overQuota.Load(); over != 0 {
			l.addOf("quota_exceeded_error_per_namespace", n.name, over)
		}
	}
	for _, q := range s.quotas() {
		l.addOf("quota_count_limit_per_namespace", q.of, q.countLimit)
		l.addOf("quota_bytes_limit_per_namespace", q.of, q.bytesLimit)
		l.addOf("quota_count_usage_per_namespace", q.of, q.count)
		l.addOf("quota_bytes_usage_per_namespace", q.of, q.bytes)
	}
}

// spaceQuota is the quota of a child of the root. A limit of -1 is none.
type spaceQuota struct {
	of                                   string
	countLimit, bytesLimit, count, bytes int64
}

// maxQuotaZnodes bounds how many znodes are looked at for quotas, with the tree's lock held.
const maxQuotaZnodes = 1000

// quotas returns what the znodes of quotas say, of children of the root.
func (s *Server) quotas() (list []spaceQuota) {
	const root = "/zookeeper/quota"
	looked := 0
	s.Walk(root, func(z Znode) bool {
		looked++
		rest := strings.TrimPrefix(z.Path, root)
		name := namespaceOf(rest)
		switch strings.TrimPrefix(rest, "/"+name) {
		case "/zookeeper_limits":
			limit := quotaNumbers(string(z.Data))
			list = append(list, spaceQuota{
				of: name, countLimit: hardOrSoft(limit, "countHardLimit", "count"), bytesLimit: hardOrSoft(limit, "byteHardLimit", "bytes"),
			})
		case "/zookeeper_stats": // behind the limits, by name
			if i := len(list) - 1; i >= 0 && list[i].of == name {
				used := quotaNumbers(string(z.Data))
				list[i].count, list[i].bytes = used["count"], used["bytes"]
			}
		}
		return looked < maxQuotaZnodes
	})
	return list
}

// hardOrSoft returns the hard limit or, if there is none, the soft one.
func hardOrSoft(limits map[string]int64, hard, soft string) int64 {
	if v, ok := limits[hard]; ok && v > -1 {
		return v
	}
	if v, ok := limits[soft]; ok {
		return v
	}
	return -1
}

// quotaNumbers reads text like "count=4,bytes=-1=;byteHardLimit=20".
func quotaNumbers(text string) map[string]int64 {
	numbers := make(map[string]int64)
	for pair := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ';' }) {
		key, value, _ := strings.Cut(strings.TrimRight(pair, "="), "=")
		if v, err := strconv.ParseInt(value, 10, 64); err == nil {
			numbers[key] = v
		}
	}
	return numbers
}
