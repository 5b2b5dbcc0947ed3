package config

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/gozkd/gozkd/internal/serverlist"
)

// keys lists all keys of a server, in the order of docs/reference/configuration.md. It is
// read-only.
var keys = slices.Concat(workingKeys, ensembleKeys, endpointKeys, securityKeys, tuningKeys, otherKeys)

const (
	maxInt = math.MaxInt32
	// maxTick keeps the default of maxSessionTimeout, 20 ticks, within the protocol's 32-bit
	// milliseconds.
	maxTick = maxInt / 20
)

var workingKeys = []key{
	{name: "dataDir", kind: text, status: works, note: "folder of the checkpoint, and of the log unless dataLogDir is set; created when missing. Without a zoo.cfg: `gozkd-data`",
		bind: bind(func(c *Config) *string { return &c.DataDir })},
	{name: "dataLogDir", kind: text, def: "dataDir", status: works, note: "folder of the log",
		bind: bind(func(c *Config) *string { return &c.DataLogDir })},
	{name: "clientPort", kind: integer(0, 65535), def: "2181", status: works, note: "port for clients; 0 means any free one",
		bind: bind(func(c *Config) *int { return &c.ClientPort })},
	{name: "clientPortAddress", kind: host, def: "all addresses", status: works, note: "address to listen on for clients. Without a zoo.cfg: 127.0.0.1",
		bind: bind(func(c *Config) *string { return &c.ClientPortAddress })},
	{name: "tickTime", kind: integer(1, maxTick), def: "3000", status: works, note: "ms; the unit of session expiry",
		bind: bind(func(c *Config) *time.Duration { return &c.TickTime })},
	{name: "minSessionTimeout", kind: integer(-1, maxInt), def: "2 ticks", status: works, reload: true, note: "ms; the shortest session timeout a client gets; -1 means the default",
		bind: bind(func(c *Config) *time.Duration { return &c.MinSessionTimeout })},
	{name: "maxSessionTimeout", kind: integer(-1, maxInt), def: "20 ticks", status: works, reload: true, note: "ms; the longest session timeout a client gets; -1 means the default",
		bind: bind(func(c *Config) *time.Duration { return &c.MaxSessionTimeout })},
	{name: "maxClientCnxns", kind: integer(0, maxInt), def: "60", status: works, reload: true, note: "connections per client address; 0 means no bound",
		bind: bind(func(c *Config) *int { return &c.MaxClientCnxns })},
	{name: "maxCnxns", kind: integer(0, maxInt), def: "0", status: works, reload: true, note: "connections in all; 0 means no bound",
		bind: bind(func(c *Config) *int { return &c.MaxCnxns })},
	{name: "jute.maxbuffer", kind: property32(1024, 256<<20), def: "1048575", status: works, note: "bytes; the largest request accepted",
		bind: bind(func(c *Config) *int { return &c.JuteMaxBuffer })},
	{name: "globalOutstandingLimit", kind: integer(1, maxInt), def: "1000", status: works, reload: true, note: "requests in flight; above it connections are not read from",
		bind: bind(func(c *Config) *int { return &c.GlobalOutstandingLimit })},
	{name: "nio.sessionlessCnxnTimeout", kind: property32(1, maxInt), def: "10000", status: works, reload: true, note: "ms that a connection may be open without a session",
		bind: bind(func(c *Config) *time.Duration { return &c.HandshakeTimeout })},
	{name: "clientTcpKeepAlive", kind: boolean, def: "false", status: works, note: "TCP keep-alive on client connections",
		bind: bindBool("true", "false", func(c *Config) *bool { return &c.ClientTCPKeepAlive })},
	{name: "4lw.commands.whitelist", kind: wordList, def: "srvr", status: works, reload: true, note: "four-letter words to answer; `*` means all; srvr always is",
		bind: bind(func(c *Config) *[]string { return &c.FourLetterWords })},
	{name: "readonlymode.enabled", kind: boolean, def: "false", status: works, reload: true, note: "answers the word isro; a server itself is never read-only",
		bind: bindBool("true", "false", func(c *Config) *bool { return &c.ReadOnlyMode })},
	{name: "reconfigEnabled", kind: boolean, def: "false", status: works, reload: true, note: "clients may change the members; on a standalone server, with which error that is refused",
		bind: bindBool("true", "false", func(c *Config) *bool { return &c.ReconfigEnabled })},
	{name: "skipACL", kind: yesNo, def: "no", status: works, note: "no ACL checks at all",
		bind: bindBool("yes", "no", func(c *Config) *bool { return &c.SkipACL })},
	{name: "enforceQuota", kind: boolean, def: "false", status: works, reload: true, note: "hard quotas refuse writes",
		bind: bindBool("true", "false", func(c *Config) *bool { return &c.EnforceQuota })},
	{name: "DigestAuthenticationProvider.superDigest", kind: digestID, status: works, reload: true, note: "the user who passes every ACL", secret: true,
		bind: bind(func(c *Config) *string { return &c.SuperDigest })},
	{name: "DigestAuthenticationProvider.enabled", kind: boolean, def: "true", status: works, reload: true, note: "allows the digest scheme",
		bind: bindBool("true", "false", func(c *Config) *bool { return &c.DigestAuthEnabled })},
	{name: "DigestAuthenticationProvider.digestAlg", kind: digestAlg, def: "SHA1", status: refused, fine: []string{"SHA1"}, note: "ids with another hash could not be satisfied"},
	{name: "znode.container.checkIntervalMs", kind: property32(1, maxInt), def: "60000", status: works, note: "ms between two searches for containers and TTL nodes to delete",
		bind: bind(func(c *Config) *time.Duration { return &c.ContainerCheckInterval })},
	{name: "znode.container.maxPerMinute", kind: property32(1, maxInt), def: "10000", status: works, reload: true, note: "how many of them may be deleted per minute",
		bind: bind(func(c *Config) *int { return &c.ContainerMaxPerMinute })},
	{name: "znode.container.maxNeverUsedIntervalMs", kind: property32(0, maxInt), def: "300000", status: works, reload: true, note: "ms that a container without any child ever is kept; 0 means for ever",
		bind: bind(func(c *Config) *time.Duration { return &c.ContainerMaxNeverUsed })},
	{name: "snapCount", kind: integer(2, maxInt), def: "100000", status: works, note: "transactions after which a checkpoint is written; up to 4 times as many where checkpoints would take more than a fifth of the time",
		bind: bind(func(c *Config) *int { return &c.SnapCount })},
	{name: "preAllocSize", kind: property32(4, 4<<20), def: "65536", status: works, note: "KiB; size of a segment of the log",
		bind: bindKiB(func(c *Config) *int64 { return &c.PreAllocBytes })},
	{name: "forceSync", kind: yesNo, def: "yes", status: works, note: "no: a write is acknowledged before it is on disk, and a power loss can lose it",
		bind: bindBool("yes", "no", func(c *Config) *bool { return &c.ForceSync })},
	{name: "fsync.warningthresholdms", kind: property32(1, maxInt), def: "1000", status: works, reload: true, note: "ms; a sync of the log that takes longer is a warning",
		bind: bind(func(c *Config) *time.Duration { return &c.FsyncWarningThreshold })},
	{name: "linearizableReads", kind: boolean, def: "false", status: works, note: "reads see every write that was acknowledged anywhere before they began, at the price of a question to the leader; false: as in ZooKeeper, where sync does that",
		bind: bindBool("true", "false", func(c *Config) *bool { return &c.LinearizableReads })},
}

// serverLines is the name of the row for server lines.
const serverLines = "server.*"

const (
	javaPeers = "a detail of how Java servers talk to each other"
	noVotes   = "stops the start of an ensemble: each participant has one vote, and a majority of them decides. A standalone server has no use for it"
)

var ensembleKeys = []key{
	{name: "dynamicConfigFile", kind: text, status: works, note: "file with the server lines; then there are none in zoo.cfg. It is read and never written"},
	{name: serverLines, kind: text, status: works, note: "a server: `host:peerPort:electionPort[:participant\\|observer][;[host:]clientPort]`. One line is a standalone server, of which only the client address counts; more are an ensemble. The election port is not needed"},
	{name: "myid", kind: integer(1, serverlist.MaxID), status: works, note: "which of the server lines this server is; else the file `myid` in dataDir says it, as in ZooKeeper",
		bind: binding{
			set: func(c *Config, v string) { c.MyID = uint64(mustInt(v)) },
			get: func(c *Config) string {
				if c.MyID == 0 {
					return ""
				}
				return strconv.FormatUint(c.MyID, 10)
			},
		}},
	{name: "initLimit", kind: integer(1, maxInt), def: "10", status: works, note: "ticks that a server may take to catch up with the leader",
		bind: bind(func(c *Config) *int { return &c.InitLimit })},
	{name: "syncLimit", kind: integer(1, maxInt), def: "5", status: works, note: "ticks without a quorum after which clients are disconnected",
		bind: bind(func(c *Config) *int { return &c.SyncLimit })},
	{name: "standaloneEnabled", kind: boolean, def: "true", status: works, note: "false: one server line is an ensemble of one, which reconfig can make larger",
		bind: bindBool("true", "false", func(c *Config) *bool { return &c.StandaloneEnabled })},
	{name: "quorumListenOnAllIPs", kind: boolean, def: "false", status: works, note: "listen for other servers on all addresses, and not on that of the own server line only",
		bind: bindBool("true", "false", func(c *Config) *bool { return &c.ListenOnAllIPs })},
	{name: "peerType", kind: oneOf("participant", "observer"), status: harmless, note: "the server line has the role; another one here is a warning"},
	{name: "group.*", kind: anything, status: harmless, note: noVotes},
	{name: "weight.*", kind: anything, status: harmless, note: noVotes},
	{name: "sslQuorum", kind: boolean, def: "false", status: harmless, note: "true stops the start of an ensemble: there is no TLS between servers yet"},
	{name: "quorum.auth.enableSasl", kind: boolean, def: "false", status: harmless, note: "true stops the start of an ensemble: there is no SASL between servers"},
	{name: "oraclePath", kind: anything, status: harmless, note: "a warning in an ensemble: a majority of the participants decides"},
	{name: "connectToLearnerMasterLimit", kind: integer(0, maxInt), status: harmless, note: javaPeers},
	{name: "electionAlg", kind: integer(3, 3), def: "3", status: harmless, note: "raft elects the leader"},
	{name: "leaderServes", kind: yesNo, def: "yes", status: later, fine: []string{"yes"}, note: "the leader serves clients too"},
	{name: "observerMasterPort", kind: integer(0, 65535), status: harmless, note: javaPeers},
	{name: "syncEnabled", aliases: []string{"observer.syncEnabled"}, kind: boolean, def: "true", status: harmless, note: "observers keep their data on disk as participants do"},
	{name: "observer.*", kind: anything, status: harmless, note: javaPeers},
	{name: "learner.*", kind: anything, status: harmless, note: javaPeers},
	{name: "leader.*", kind: anything, status: harmless, note: javaPeers},
	{name: "follower.*", kind: anything, status: harmless, note: javaPeers},
	{name: "fastleader.*", kind: anything, status: harmless, note: javaPeers},
	{name: "maxConcurrentSnapSyncs", kind: anything, status: harmless, note: javaPeers},
	{name: "maxConcurrentDiffSyncs", kind: anything, status: harmless, note: javaPeers},
	{name: "maxTimeToWaitForEpoch", kind: anything, status: harmless, note: javaPeers},
	{name: "cnxTimeout", kind: anything, status: harmless, note: javaPeers},
	{name: "quorumCnxnTimeoutMs", kind: anything, status: harmless, note: javaPeers},
	{name: "electionPortBindRetry", kind: anything, status: harmless, note: "nobody listens on the election port"},
	{name: "tcpKeepAlive", kind: boolean, status: harmless, note: javaPeers},
	{name: "multiAddress.*", kind: anything, status: harmless, note: "a server line has one address"},
	{name: "sslQuorumReloadCertFiles", kind: boolean, status: harmless, note: "nothing without sslQuorum"},
	{name: "ssl.quorum.*", kind: anything, status: harmless, note: "nothing without sslQuorum", secret: true},
	{name: "portUnification", kind: boolean, status: harmless, note: "nothing without sslQuorum"},
	{name: "quorum.*", kind: anything, status: harmless, note: "nothing without quorum.auth.enableSasl"},
}

var securityKeys = []key{
	{name: "secureClientPort", kind: integer(0, 65535), status: refused, fine: []string{"0"}, note: "there is no TLS yet: clients would find nobody there"},
	{name: "secureClientPortAddress", kind: host, status: refused, note: "there is no TLS yet"},
	{name: "client.portUnification", kind: boolean, def: "false", status: refused, fine: []string{"false"}, note: "there is no TLS yet"},
	{name: "ssl.*", kind: anything, status: later, note: "there is no TLS yet", secret: true},
	{name: "authProvider.*", kind: anything, status: refused, note: "the schemes are world, auth, digest and ip: ACLs of another one could not be satisfied"},
	{name: "sessionRequireClientSASLAuth", kind: boolean, def: "false", status: refused, fine: []string{"false"}, note: "there is no SASL: no client could connect"},
	{name: "enforce.auth.enabled", kind: boolean, def: "false", status: refused, fine: []string{"false"}, note: "not there yet: clients that it should keep out would get in"},
	{name: "enforce.auth.schemes", kind: anything, status: harmless, note: "nothing without enforce.auth.enabled"},
	{name: "allowSaslFailedClients", kind: boolean, def: "false", status: harmless, note: "there is no SASL"},
	{name: "superUser", kind: anything, status: later, note: "a SASL user, and there is no SASL"},
	{name: "X509AuthenticationProvider.superUser", kind: anything, status: later, note: "a TLS user, and there is no TLS yet"},
	{name: "letAnySaslUserDoX", kind: anything, status: later, note: "there is no SASL"},
	{name: "ensembleAuthName", kind: anything, status: later, note: "there is no ensemble scheme"},
	{name: "kerberos.*", kind: anything, status: later, note: "there is no SASL"},
	{name: "sasl.*", kind: anything, status: later, note: "there is no SASL"},
	{name: "audit.enable", kind: boolean, def: "false", status: later, fine: []string{"false"}, note: "there is no audit log yet"},
	{name: "audit.*", kind: anything, status: harmless, note: "nothing without audit.enable"},
	{name: "enableEagerACLCheck", kind: boolean, def: "false", status: harmless, note: "ACLs are checked once, in order"},
}

const noThrottle = "there is no request throttle: globalOutstandingLimit and the memory per connection are the bounds"

var tuningKeys = []key{
	{name: "clientPortListenBacklog", kind: integer(-1, maxInt), def: "-1", status: harmless, reload: true, note: "the backlog is the system's; the word conf reports this number",
		bind: bind(func(c *Config) *int { return &c.ClientPortListenBacklog })},
	{name: "autopurge.snapRetainCount", kind: integer(0, maxInt), def: "3", status: harmless, note: "the one checkpoint is updated in place"},
	{name: "autopurge.purgeInterval", kind: anything, def: "0", status: harmless, note: "the log is cut after each checkpoint"},
	{name: "snapSizeLimitInKb", kind: property32(math.MinInt64, math.MaxInt64), status: harmless, note: "checkpoints write only what changed; snapCount says how often"},
	{name: "txnLogSizeLimitInKb", kind: property32(math.MinInt64, math.MaxInt64), status: harmless, note: "preAllocSize is the size of a segment"},
	{name: "fsync.*", kind: anything, status: harmless, note: "one sync serves all writes that wait"},
	{name: "flushDelay", kind: anything, status: harmless, note: "one sync serves all writes that wait"},
	{name: "maxWriteQueuePollTime", kind: anything, status: harmless, note: "one sync serves all writes that wait"},
	{name: "maxBatchSize", kind: anything, status: harmless, note: "one sync serves all writes that wait"},
	{name: "snapshot.*", kind: anything, status: harmless, note: "the checkpoint has a format of its own"},
	{name: "serializeLastProcessedZxid.enabled", kind: boolean, status: harmless, note: "the checkpoint always records it"},
	{name: "compressed.*", kind: anything, status: harmless, note: "the checkpoint has a format of its own"},
	{name: "jute.maxbuffer.extrasize", kind: property32(0, maxInt), status: harmless, note: "requests are kept as the client sent them, so they do not grow"},
	{name: "throttledOpWaitTime", aliases: []string{"throttled_op_wait_time"}, kind: integer(0, maxInt), def: "0", status: later, fine: []string{"0"}, note: noThrottle},
	{name: "requestThrottleLimit", aliases: []string{"request_throttle_max_requests"}, kind: integer(0, maxInt), def: "0", status: later, fine: []string{"0"}, note: noThrottle},
	{name: "requestThrottleStallTime", aliases: []string{"request_throttle_stall_time"}, kind: integer(0, maxInt), def: "100", status: harmless, note: noThrottle},
	{name: "requestThrottleDropStale", aliases: []string{"request_throttle_drop_stale"}, kind: boolean, def: "true", status: harmless, note: noThrottle},
	{name: "requestStaleLatencyCheck", aliases: []string{"request_stale_latency_check"}, kind: boolean, status: harmless, note: noThrottle},
	{name: "requestStaleConnectionCheck", aliases: []string{"request_stale_connection_check"}, kind: boolean, status: harmless, note: noThrottle},
	{name: "request_throttler.shutdownTimeout", kind: anything, status: harmless, note: noThrottle},
	{name: "largeRequestThreshold", kind: integer(-1, maxInt), def: "-1", status: later, fine: []string{"-1"}, note: noThrottle},
	{name: "largeRequestMaxBytes", kind: integer(0, maxInt), def: "104857600", status: harmless, note: noThrottle},
	{name: "connectionMaxTokens", aliases: []string{"connection_throttle_tokens"}, kind: integer(0, maxInt), def: "0", status: later, fine: []string{"0"}, note: "there is no connection throttle yet; maxCnxns and maxClientCnxns are the bounds"},
	{name: "connectionTokenFillTime", aliases: []string{"connection_throttle_fill_time"}, kind: integer(0, maxInt), status: harmless, note: "nothing without connectionMaxTokens"},
	{name: "connectionTokenFillCount", aliases: []string{"connection_throttle_fill_count"}, kind: integer(0, maxInt), status: harmless, note: "nothing without connectionMaxTokens"},
	{name: "connectionFreezeTime", aliases: []string{"connection_throttle_freeze_time"}, kind: integer(-1, maxInt), status: harmless, note: "nothing without connectionMaxTokens"},
	{name: "connectionDropIncrease", aliases: []string{"connection_throttle_drop_increase"}, kind: anything, status: harmless, note: "nothing without connectionMaxTokens"},
	{name: "connectionDropDecrease", aliases: []string{"connection_throttle_drop_decrease"}, kind: anything, status: harmless, note: "nothing without connectionMaxTokens"},
	{name: "connectionDecreaseRatio", aliases: []string{"connection_throttle_decrease_ratio"}, kind: anything, status: harmless, note: "nothing without connectionMaxTokens"},
	{name: "connection_throttle_weight_enabled", kind: boolean, status: harmless, note: "nothing without connectionMaxTokens"},
	{name: "connection_throttle_global_session_weight", kind: anything, status: harmless, note: "nothing without connectionMaxTokens"},
	{name: "connection_throttle_local_session_weight", kind: anything, status: harmless, note: "nothing without connectionMaxTokens"},
	{name: "connection_throttle_renew_session_weight", kind: anything, status: harmless, note: "nothing without connectionMaxTokens"},
	{name: "maxResponseCacheSize", kind: integer(math.MinInt32, maxInt), status: harmless, note: "replies are encoded straight from the tree, without a cache"},
	{name: "maxGetChildrenResponseCacheSize", kind: integer(math.MinInt32, maxInt), status: harmless, note: "replies are encoded straight from the tree, without a cache"},
	{name: "nio.*", kind: anything, status: harmless, note: "threads and buffers of the Java server"},
	{name: "netty.*", kind: anything, status: harmless, note: "threads and buffers of the Java server"},
	{name: "commitProcessor.*", kind: anything, status: harmless, note: "threads of the Java server"},
	{name: "advancedFlowControlEnabled", kind: boolean, status: harmless, note: "what a connection may have in memory is always bounded"},
	{name: "outstandingHandshake.limit", kind: anything, status: harmless, note: "there is no TLS yet"},
	{name: "serverCnxnFactory", kind: anything, status: harmless, note: "a class of the Java server"},
	{name: "watchManagerName", kind: anything, status: harmless, note: "a class of the Java server; every kind of watch works"},
	{name: "watcherCleanThreadsNum", kind: anything, status: harmless, note: "dead watches leave at once"},
	{name: "watcherCleanThreshold", kind: anything, status: harmless, note: "dead watches leave at once"},
	{name: "watcherCleanIntervalInSeconds", kind: anything, status: harmless, note: "dead watches leave at once"},
	{name: "maxInProcessingDeadWatchers", kind: anything, status: harmless, note: "dead watches leave at once"},
	{name: "fips-mode", kind: boolean, status: harmless, note: "the FIPS mode of Go is a matter of GODEBUG"},
	{name: "bitHashCacheSize", kind: anything, status: harmless, note: "a detail of the Java server"},
	{name: "jvm.pause.*", kind: anything, status: harmless, note: "there is no JVM"},
	{name: "messageTracker.*", kind: anything, status: harmless, note: javaPeers},
}

const emptyMember = "a server without data never votes before it has the data of the others"

var otherKeys = []key{
	{name: "extendedTypesEnabled", kind: boolean, def: "true", status: harmless, fine: []string{"true"}, note: "containers and TTL nodes are always on"},
	{name: "emulate353TTLNodes", kind: boolean, def: "false", status: harmless, note: "concerns only the Java server's files"},
	{name: "localSessionsEnabled", kind: boolean, def: "false", status: later, fine: []string{"false"}, note: "every session is global, which a client can't tell"},
	{name: "localSessionsUpgradingEnabled", kind: boolean, def: "false", status: harmless, note: "nothing without localSessionsEnabled"},
	{name: "digest.enabled", kind: boolean, def: "true", status: harmless, note: "the digest of the data is always kept"},
	{name: "closeSessionTxn.enabled", kind: boolean, def: "true", status: harmless, note: "a session and its ephemerals always end in one transaction"},
	{name: "db.autocreate", kind: boolean, def: "true", status: harmless, note: emptyMember},
	{name: "initialize.*", kind: anything, status: harmless, note: emptyMember},
	{name: "log.*", kind: anything, status: harmless, note: "gozkd.logLevel is the level, and `--log-json` the format; what is logged goes to standard error"},
	{name: "root.logger", kind: anything, status: harmless, note: "gozkd.logLevel is the level, and `--log-json` the format; what is logged goes to standard error"},
	{name: "console.threshold", kind: anything, status: harmless, note: "gozkd.logLevel is the level, and `--log-json` the format; what is logged goes to standard error"},
	{name: "tracelog.*", kind: anything, status: harmless, note: "gozkd.logLevel is the level, and `--log-json` the format; what is logged goes to standard error"},
	{name: "auditlog.*", kind: anything, status: harmless, note: "nothing without audit.enable"},
	{name: "jmx.*", kind: anything, status: harmless, note: "there is no JVM"},
	{name: "client.*", kind: anything, status: harmless, note: "a property of the Java client"},
	{name: "pathStats.*", kind: anything, status: harmless, note: "a detail of the Java server"},
}
