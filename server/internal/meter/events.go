package meter

import (
	"sync/atomic"

	"github.com/gozkd/gozkd/server/facts"
)

// Event is something that a Meter counts.
type Event uint8

// The events: first those that ZooKeeper counts too.
const (
	AuthFailed  Event = iota
	PlainRemote       // a connection without TLS, from another machine
	PlainLocal        // and from this machine
	SlowSyncs         // syncs of the log
	BytesReceived
	ResponseBytes
	WatchBytes
	ConnectRequests
	ConnectionsRejected
	ConnectionsBroken
	SessionsReattached // a client came back to its session
	SessionsRevalidated
	NotServed   // a connect request that came while clients were not served
	Sessionless // a connection that was closed because it sent no connect request
	SessionsExpired
	ThrottleWaits
	ThrottledOps   // requests that were answered with ErrThrottledOp
	StaleRequests  // requests that waited for others for too long
	StaleDropped   // and were dropped
	StaleReplies   // replies for which the connection was closed
	LargeRejected  // requests
	DigestsDiffer  // members whose state differed
	CommitsLeading // requests that were committed on the leader
	HandshakesFailed
	HandshakesExceeded // handshakes for which there were too many under way
	PacketsReceived
	PacketsSent
	// Evicted and the events after it are ours.
	Evicted        // a connection that was closed because it did not take its replies
	TooManyWatches // a connection that was closed because of its watches
	SlowRequests
	ExpensiveRefused // requests that would have taken too long to apply
	GrowthRefused    // requests that a full state refused
	EventsReplayed   // events that setWatches2 sent again
	ReplaysMissed    // setWatches2 that could not
	Crowded          // connections for which there was no memory
	nEvents
)

// eventNames are the events' names for monitors. Packets have theirs elsewhere, in Stats.
var eventNames = [nEvents]string{
	AuthFailed:          "auth_failed_count",
	PlainRemote:         "non_mtls_remote_conn_count",
	PlainLocal:          "non_mtls_local_conn_count",
	SlowSyncs:           "fsync_threshold_exceed_count",
	BytesReceived:       "bytes_received_count",
	ResponseBytes:       "response_bytes",
	WatchBytes:          "watch_bytes",
	ConnectRequests:     "connection_request_count",
	ConnectionsRejected: "connection_rejected",
	ConnectionsBroken:   "connection_drop_count",
	SessionsReattached:  "connection_revalidate_count",
	SessionsRevalidated: "revalidate_count",
	NotServed:           "cnxn_closed_without_zk_server_running",
	Sessionless:         "sessionless_connections_expired",
	SessionsExpired:     "stale_sessions_expired",
	ThrottleWaits:       "request_throttle_wait_count",
	ThrottledOps:        "throttled_ops",
	StaleRequests:       "stale_requests",
	StaleDropped:        "stale_requests_dropped",
	StaleReplies:        "stale_replies",
	LargeRejected:       "large_requests_rejected",
	DigestsDiffer:       "digest_mismatches_count",
	CommitsLeading:      "commit_count",
	HandshakesFailed:    "unsuccessful_handshake",
	HandshakesExceeded:  "tls_handshake_exceeded",
	Evicted:             "gozkd_slow_clients_closed_total",
	TooManyWatches:      "gozkd_watching_clients_closed_total",
	SlowRequests:        "gozkd_slow_requests_total",
	ExpensiveRefused:    "gozkd_expensive_requests_refused_total",
	GrowthRefused:       "gozkd_growth_refused_total",
	EventsReplayed:      "gozkd_watch_events_replayed_total",
	ReplaysMissed:       "gozkd_watch_replays_missed_total",
	Crowded:             "gozkd_crowded_refusals_total",
}

type counts [nEvents]atomic.Int64

func (c *counts) Count(e Event) { c[e].Add(1) }

// Add counts n events. The shared memory is not written to if n is 0.
func (c *counts) Add(e Event, n int64) {
	if n != 0 {
		c[e].Add(n)
	}
}

// Counted returns how many events there were.
func (c *counts) Counted(e Event) int64 { return c[e].Load() }

func (c *counts) list(l *facts.Values, from, to Event) {
	for e := from; e < to; e++ {
		if eventNames[e] != "" {
			l.Add(eventNames[e], c[e].Load())
		}
	}
}

func (c *counts) reset() {
	for i := range c {
		c[i].Store(0)
	}
}
