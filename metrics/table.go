package metrics

import "github.com/prometheus/client_golang/prometheus"

// metric describes a value to Prometheus. typ is not used for server.Summary and server.Histogram.
type metric struct {
	typ   prometheus.ValueType
	label string // distinguishes values with the same name; empty: the name is unique
	help  string
}

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue

	perPeer  = "peer"
	perSpace = "key" // as ZooKeeper calls it
	perOp    = "op"
	perStage = "stage"
)

// table has every value of server.Monitor that is not a text, by name. Values with ZooKeeper's
// names have ZooKeeper's types: many of its values that only rise are gauges. testdata holds the
// output of a ZooKeeper. Source: ZooKeeperServer.registerMetrics,
// LeaderZooKeeperServer.registerMetrics and ServerMetrics of ZooKeeper 3.9.
var table = map[string]metric{
	"avg_latency":                  {gauge, "", "Average time from a request to its reply, in milliseconds."},
	"max_latency":                  {gauge, "", "Longest time from a request to its reply, in milliseconds."},
	"min_latency":                  {gauge, "", "Shortest time from a request to its reply, in milliseconds."},
	"packets_received":             {gauge, "", "Requests and four-letter words received."},
	"packets_sent":                 {gauge, "", "Replies and watch events that were sent."},
	"num_alive_connections":        {gauge, "", "Connections of clients."},
	"outstanding_requests":         {gauge, "", "Writes under way."},
	"znode_count":                  {gauge, "", "Znodes, the root counted twice, as in ZooKeeper."},
	"watch_count":                  {gauge, "", "Watches of this server's clients."},
	"ephemerals_count":             {gauge, "", "Ephemeral znodes."},
	"approximate_data_size":        {gauge, "", "Length of all paths and data, in bytes."},
	"global_sessions":              {gauge, "", "Sessions of the whole ensemble."},
	"local_sessions":               {gauge, "", "0: every session is global."},
	"last_client_response_size":    {gauge, "", "Size of the last reply, in bytes; -1: none."},
	"min_client_response_size":     {gauge, "", "Size of the smallest reply, in bytes; -1: none."},
	"max_client_response_size":     {gauge, "", "Size of the largest reply, in bytes; -1: none."},
	"uptime":                       {gauge, "", "Time since the start, in milliseconds."},
	"open_file_descriptor_count":   {gauge, "", "File descriptors that the process has open."},
	"max_file_descriptor_count":    {gauge, "", "File descriptors that the process may have open."},
	"auth_failed_count":            {gauge, "", "Authentications that failed."},
	"fsync_threshold_exceed_count": {gauge, "", "Syncs of the log that took longer than fsync.warningthresholdms."},
	"connection_drop_probability":  {gauge, "", "0: connections are not throttled."},
	"outstanding_tls_handshake":    {gauge, "", "0: handshakes are not counted."},
	"non_mtls_remote_conn_count":   {gauge, "", "0, as in a ZooKeeper without Netty."},
	"non_mtls_local_conn_count":    {gauge, "", "0, as in a ZooKeeper without Netty."},

	"bytes_received_count":                  {counter, "", "Bytes of requests, with their lengths."},
	"response_bytes":                        {counter, "", "Bytes of replies, with their lengths."},
	"watch_bytes":                           {counter, "", "Bytes of watch events, with their lengths."},
	"connection_request_count":              {counter, "", "Requests for a session, new or existing."},
	"connection_rejected":                   {counter, "", "Connections that were refused because there were too many."},
	"connection_drop_count":                 {counter, "", "Connections that clients closed or lost."},
	"connection_revalidate_count":           {counter, "", "Clients that reconnected with their session."},
	"revalidate_count":                      {counter, "", "Leader: sessions that were re-attached on other members."},
	"cnxn_closed_without_zk_server_running": {counter, "", "Clients that were refused because there was no leader."},
	"sessionless_connections_expired":       {counter, "", "Connections that were closed because they did not ask for a session in time."},
	"stale_sessions_expired":                {counter, "", "Sessions that expired."},
	"request_throttle_wait_count":           {counter, "", "Times that a connection was not read because too many writes were under way."},
	"digest_mismatches_count":               {counter, "", "Leader: reports of members whose state differed."},
	"looking_count":                         {counter, "", "Changes of the leader, including to the same one."},
	"diff_count":                            {counter, "", "Leader: members that caught up by the log."},
	"snap_count":                            {counter, "", "Leader: checkpoints sent to members."},
	"proposal_count":                        {counter, "", "Leader: requests that were proposed."},
	"commit_count":                          {counter, "", "Leader: requests that were committed."},

	"response_packet_cache_hits":                {counter, "", "0: there is no such cache."},
	"response_packet_cache_misses":              {counter, "", "0: there is no such cache."},
	"response_packet_get_children_cache_hits":   {counter, "", "0: there is no such cache."},
	"response_packet_get_children_cache_misses": {counter, "", "0: there is no such cache."},
	"dead_watchers_queued":                      {counter, "", "0: watches of a closed connection are removed at once."},
	"dead_watchers_cleared":                     {counter, "", "0: watches of a closed connection are removed at once."},
	"add_dead_watcher_stall_time":               {counter, "", "0: watches of a closed connection are removed at once."},
	"throttled_ops":                             {counter, "", "0: no request is refused for being late."},
	"stale_requests":                            {counter, "", "0: no request is refused for being late."},
	"stale_requests_dropped":                    {counter, "", "0: no request is refused for being late."},
	"stale_replies":                             {counter, "", "0: no request is refused for being late."},
	"large_requests_rejected":                   {counter, "", "0: there is no limit for large requests as such."},
	"ensemble_auth_success":                     {counter, "", "0: members don't authenticate each other by SASL."},
	"ensemble_auth_fail":                        {counter, "", "0: members don't authenticate each other by SASL."},
	"ensemble_auth_skip":                        {counter, "", "0: members don't authenticate each other by SASL."},
	"unsuccessful_handshake":                    {counter, "", "0: handshakes are not counted."},
	"tls_handshake_exceeded":                    {counter, "", "0: handshakes are not counted."},
	"insecure_admin_count":                      {counter, "", "0: the admin server has one kind of port."},
	"unrecoverable_error_count":                 {counter, "", "0: such an error ends the server."},

	"fsynctime":                              {help: "Time of a write and sync of the log, in milliseconds."},
	"snapshottime":                           {help: "Time of writing a checkpoint, in milliseconds."},
	"dbinittime":                             {help: "Time of loading checkpoint and log at the start, in milliseconds."},
	"readlatency":                            {help: "Time from a request that changes nothing to its reply, in milliseconds."},
	"updatelatency":                          {help: "Time from a write to its reply, in milliseconds."},
	"propagation_latency":                    {help: "Time from when the leader made an entry until this server begins to apply it, in milliseconds, for each request."},
	"proposal_latency":                       {help: "Not on the leader: time from when the leader made an entry until it arrived, in milliseconds, for each request."},
	"proposal_ack_creation_latency":          {help: "Not on the leader: time from when the leader made an entry until it was in this server's log, in milliseconds, for each request."},
	"commit_propagation_latency":             {help: "Not on the leader: time from when the leader made an entry until it was known here to be committed, in milliseconds, for each request."},
	"quorum_ack_latency":                     {help: "Leader: time from when it made an entry until a quorum had it, in milliseconds, for each request."},
	"election_time":                          {help: "Time from the loss of a leader until there was one again, in milliseconds."},
	"unavailable_time":                       {help: "Time from the loss of a leader until this member could work under another one, in milliseconds."},
	"leader_unavailable_time":                {help: "The same on a member that became the leader, in milliseconds."},
	"follower_sync_time":                     {help: "Time from when the leader was known until this member had applied everything committed before, in milliseconds."},
	"observer_sync_time":                     {help: "The same on an observer, in milliseconds."},
	"prep_processor_queue_time_ms":           {help: "Time of a write until it became part of an entry, or was sent to the leader."},
	"prep_processor_queue_size":              {help: "Writes of this server's clients that became part of the same entry."},
	"sync_processor_batch_size":              {help: "Requests of an entry."},
	"sync_processor_queue_size":              {help: "Appends to the log that one sync was for."},
	"sync_process_time":                      {help: "The same as fsynctime: write and sync are one step."},
	"sync_processor_queue_and_flush_time_ms": {help: "Time from when a write became part of an entry until it was in this server's log."},
	"sync_processor_queue_flush_time_ms":     {help: "The same as fsynctime, with more quantiles."},
	"read_commitproc_time_ms":                {help: "Time until the reply to reads that waited for a write of their connection."},
	"write_commitproc_time_ms":               {help: "Time from when a write was in this server's log until it was known to be committed."},
	"read_final_proc_time_ms":                {help: "Time until the reply to reads that did not wait."},
	"write_final_proc_time_ms":               {help: "Time of applying committed entries, for each write of this server's clients."},
	"requests_in_session_queue":              {help: "Requests queued on a connection when a write of it was applied."},
	"reads_issued_from_session_queue":        {help: "Reads that waited for the same writes."},
	"request_throttle_queue_time_ms":         {help: "Time for which a connection was not read because too many writes were under way."},
	"node_created_watch_count":               {help: "Connections that were notified of the creation of a znode."},
	"node_deleted_watch_count":               {help: "Connections that were notified of the deletion of a znode."},
	"node_changed_watch_count":               {help: "Connections that were notified of a change of a znode's data."},
	"node_children_watch_count":              {help: "Connections that were notified of a change of a znode's children."},

	"read_per_namespace":                 {label: perSpace, help: "Bytes of a read below that child of the root: path and reply."},
	"write_per_namespace":                {label: perSpace, help: "Bytes of a write below that child of the root: path and data."},
	"quota_exceeded_error_per_namespace": {counter, perSpace, "Writes below that child of the root that a quota refused."},
	"quota_count_limit_per_namespace":    {gauge, perSpace, "Limit of znodes; -1: none."},
	"quota_bytes_limit_per_namespace":    {gauge, perSpace, "Limit of bytes; -1: none."},
	"quota_count_usage_per_namespace":    {gauge, perSpace, "Znodes that count towards the limit."},
	"quota_bytes_usage_per_namespace":    {gauge, perSpace, "Bytes that count towards the limit."},

	"quorum_size":                 {gauge, "", "Voters of the ensemble."},
	"pending_syncs":               {gauge, "", "Sync requests of this server's clients that are waiting."},
	"leader_uptime":               {gauge, "", "Leader: time since it was elected, in milliseconds."},
	"learners":                    {gauge, "", "Leader: members that answered recently."},
	"followers":                   {gauge, "", "The name of learners before ZooKeeper 3.6."},
	"synced_followers":            {gauge, "", "Leader: followers that are in step."},
	"synced_non_voting_followers": {gauge, "", "Leader: of the followers that are in step, those that do not vote yet."},
	"synced_observers":            {gauge, "", "Leader: observers that are in step."},
	"last_proposal_size":          {gauge, "", "Leader: size of the last request in the log, in bytes; -1: none."},
	"min_proposal_size":           {gauge, "", "Leader: size of the smallest request in the log, in bytes; -1: none."},
	"max_proposal_size":           {gauge, "", "Leader: size of the largest request in the log, in bytes; -1: none."},

	"gozkd_leader_id":                    {gauge, "", "Number of the leader; 0: none is known."},
	"gozkd_epoch":                        {gauge, "", "Epoch of the newest zxid."},
	"gozkd_term":                         {gauge, "", "Term of raft."},
	"gozkd_applied_index":                {gauge, "", "Index in raft's log of the last entry that this server has applied."},
	"gozkd_quorum_reachable":             {gauge, "", "1: there is a leader."},
	"gozkd_voters_connected":             {gauge, "", "Voters that this server is connected with, including itself if it votes."},
	"gozkd_peer_connected":               {gauge, perPeer, "1: messages can be sent to the member now."},
	"gozkd_peer_lag_entries":             {gauge, perPeer, "Leader: entries that the leader has applied and the member does not have."},
	"gozkd_peer_in_step":                 {gauge, perPeer, "Leader: 1 if the member gets entries as they are made."},
	"gozkd_request_duration_seconds":     {label: perOp, help: "Time from a request to its reply."},
	"gozkd_write_stage_duration_seconds": {label: perStage, help: "Time of a write in each of its stages."},
	"gozkd_log_sync_duration_seconds":    {help: "Time of a write and sync of the log."},
	"gozkd_checkpoint_duration_seconds":  {help: "Time of writing a checkpoint."},
	"gozkd_apply_duration_seconds":       {help: "Time of applying the entries that became known to be committed at once."},
	"gozkd_entry_requests":               {help: "Requests of an entry."},
	"gozkd_slow_requests_total":          {counter, "", "Requests that took at least as long as the threshold for slow requests."},
	"gozkd_sessions_lost_since_election": {gauge, "", "Sessions that expired since the leader was elected."},
	"gozkd_requests_resent_total":        {counter, "", "Writes of this member that were sent again because the leader or the network may have lost them."},
}
