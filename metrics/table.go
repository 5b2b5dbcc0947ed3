package metrics

import "github.com/prometheus/client_golang/prometheus"

// metric is what Prometheus is told of a value. typ is not used for a server.Summary.
type metric struct {
	typ     prometheus.ValueType
	perPeer bool // with a label peer
	help    string
}

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

// table has every value of server.Monitor that is not a text, by name. The types of ZooKeeper's are ZooKeeper's, of which
// many that only rise are gauges. Source: ZooKeeperServer.registerMetrics, LeaderZooKeeperServer.registerMetrics and
// ServerMetrics of ZooKeeper 3.9.
var table = map[string]metric{
	"avg_latency":                  {gauge, false, "Average time from a request to its reply, in milliseconds."},
	"max_latency":                  {gauge, false, "Longest time from a request to its reply, in milliseconds."},
	"min_latency":                  {gauge, false, "Shortest time from a request to its reply, in milliseconds."},
	"packets_received":             {gauge, false, "Requests and four-letter words that came."},
	"packets_sent":                 {gauge, false, "Replies and watch events that were sent."},
	"num_alive_connections":        {gauge, false, "Connections of clients."},
	"outstanding_requests":         {gauge, false, "Writes that are under way."},
	"znode_count":                  {gauge, false, "Znodes, the root counted twice, as in ZooKeeper."},
	"watch_count":                  {gauge, false, "Watches of this server's clients."},
	"ephemerals_count":             {gauge, false, "Ephemeral znodes."},
	"approximate_data_size":        {gauge, false, "Length of all paths and data, in bytes."},
	"global_sessions":              {gauge, false, "Sessions of the whole ensemble."},
	"uptime":                       {gauge, false, "Time since the start, in milliseconds."},
	"open_file_descriptor_count":   {gauge, false, "File descriptors that the process has open."},
	"max_file_descriptor_count":    {gauge, false, "File descriptors that the process may have open."},
	"auth_failed_count":            {gauge, false, "Authentications that failed."},
	"connection_rejected":          {counter, false, "Connections that were refused because there were too many."},
	"stale_sessions_expired":       {counter, false, "Sessions that expired."},
	"fsync_threshold_exceed_count": {gauge, false, "Syncs of the log that took longer than fsync.warningthresholdms."},
	"fsynctime":                    {help: "Time of a sync of the log, in milliseconds."},
	"snapshottime":                 {help: "Time of writing a checkpoint, in milliseconds."},

	"quorum_size":                 {gauge, false, "Voters of the ensemble."},
	"pending_syncs":               {gauge, false, "Sync requests of this server's clients that wait."},
	"leader_uptime":               {gauge, false, "Leader: time since it was elected, in milliseconds."},
	"learners":                    {gauge, false, "Leader: members that answered lately."},
	"followers":                   {gauge, false, "The name of learners before ZooKeeper 3.6."},
	"synced_followers":            {gauge, false, "Leader: followers that are in step."},
	"synced_non_voting_followers": {gauge, false, "Leader: of the followers that are in step, those that do not vote yet."},
	"synced_observers":            {gauge, false, "Leader: observers that are in step."},
	"last_proposal_size":          {gauge, false, "Leader: size of the last request in the log, in bytes; -1: none."},
	"min_proposal_size":           {gauge, false, "Leader: size of the smallest request in the log, in bytes; -1: none."},
	"max_proposal_size":           {gauge, false, "Leader: size of the largest request in the log, in bytes; -1: none."},

	"gozkd_leader_id":        {gauge, false, "Number of the leader; 0: none is known."},
	"gozkd_epoch":            {gauge, false, "Epoch of the newest zxid."},
	"gozkd_term":             {gauge, false, "Term of raft."},
	"gozkd_applied_index":    {gauge, false, "Index in raft's log of the last entry that is applied here."},
	"gozkd_quorum_reachable": {gauge, false, "1: there is a leader."},
	"gozkd_voters_connected": {gauge, false, "Voters that this server has a connection with, itself among them if it votes."},
	"gozkd_peer_connected":   {gauge, true, "1: messages can be sent to that member now."},
	"gozkd_peer_lag_entries": {gauge, true, "Leader: entries that are applied here and that the member does not have."},
	"gozkd_peer_in_step":     {gauge, true, "Leader: 1 if the member gets entries as they come."},
}
