package config

import (
	"math"
	"slices"

	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/internal/tlsconf"
)

// keys lists all keys of a server, in the order of docs/reference/configuration.md. It is
// read-only.
var keys = slices.Concat(workingKeys, ensembleKeys, peerTLSKeys, endpointKeys, adminTLSKeys, metricsTLSKeys, portKeys, clientTLSKeys, authKeys, securityKeys, auditKeys, archiveKeys, kerberosKeys, throttleKeys, tuningKeys, otherKeys, ignoredKeys)

var clientTLSKeys = tlsKeys(clientTLS, false, func(c *Config) *tlsconf.Options { return &c.ClientTLS })

const (
	maxInt = math.MaxInt32
	// maxTick keeps the default of maxSessionTimeout, 20 ticks, within the protocol's 32-bit
	// milliseconds.
	maxTick = maxInt / 20
)

var workingKeys = []key{
	{name: "dataDir", kind: text, status: works, note: "directory of the checkpoint, and of the log unless dataLogDir is set; created if missing. Without a zoo.cfg: `gozkd-data`",
		field: func(c *Config) any { return &c.DataDir }},
	{name: "dataLogDir", kind: text, def: "dataDir", status: works, note: "directory of the log",
		field: func(c *Config) any { return &c.DataLogDir }},
	{name: "clientPort", kind: integer(0, 65535), def: "2181", status: works, note: "port for clients; 0 means any free port",
		field: func(c *Config) any { return &c.ClientPort }},
	{name: "clientPortAddress", kind: host, def: "all addresses", status: works, note: "address to listen on for clients. Without a zoo.cfg: 127.0.0.1",
		field: func(c *Config) any { return &c.ClientPortAddress }},
	{name: "tickTime", kind: integer(1, maxTick), def: "3000", status: works, note: "ms; the unit of session expiry",
		field: func(c *Config) any { return &c.TickTime }},
	{name: "minSessionTimeout", kind: integer(-1, maxInt), def: "2 ticks", status: works, reload: true, note: "ms; the shortest session timeout a client gets; -1 means the default",
		field: func(c *Config) any { return &c.MinSessionTimeout }},
	{name: "maxSessionTimeout", kind: integer(-1, maxInt), def: "20 ticks", status: works, reload: true, note: "ms; the longest session timeout a client gets; -1 means the default",
		field: func(c *Config) any { return &c.MaxSessionTimeout }},
	{name: "maxClientCnxns", kind: integer(0, maxInt), def: "60", status: works, reload: true, note: "connections per client address; 0 means no bound",
		field: func(c *Config) any { return &c.MaxClientCnxns }},
	{name: "maxCnxns", kind: integer(0, maxInt), def: "0", status: works, reload: true, note: "connections in all; 0 means as many as the limit of file descriptors (`ulimit -n`) suffices for, except a quarter of them, 32 to 2,048, for everything else",
		field: func(c *Config) any { return &c.MaxCnxns }},
	{name: "jute.maxbuffer", kind: property32(-maxInt-1, maxInt), def: "1048575", status: works, note: "bytes; the largest request accepted. Less than 1024 counts as 1024, more than 256 MiB as 256 MiB",
		field: func(c *Config) any { return &c.JuteMaxBuffer }},
	{name: "globalOutstandingLimit", kind: integer(1, maxInt), def: "1000", status: works, reload: true, note: "bound on requests in flight; above it the server stops reading from connections",
		field: func(c *Config) any { return &c.GlobalOutstandingLimit }},
	{name: "nio.sessionlessCnxnTimeout", kind: property32(1, maxInt), def: "10000", status: works, reload: true, note: "ms; how long a connection may be open without a session",
		field: func(c *Config) any { return &c.HandshakeTimeout }},
	{name: "clientTcpKeepAlive", kind: boolean, def: "false", status: works, note: "TCP keep-alive on client connections",
		field: func(c *Config) any { return &c.ClientTCPKeepAlive }},
	{name: "4lw.commands.whitelist", kind: wordList, def: "srvr", status: works, reload: true, note: "four-letter words to answer, in addition to srvr; `*` means all",
		field: func(c *Config) any { return &c.FourLetterWords }},
	{name: "readonlymode.enabled", kind: boolean, def: "false", status: works, reload: true, note: "a member without a quorum serves reads to clients that ask for a read-only server, see [Read-only mode](../guide/operate.md#read-only-mode); also enables the word isro. No effect on the reads of a standalone server",
		field: func(c *Config) any { return &c.ReadOnlyMode }},
	{name: "localSessionsEnabled", kind: boolean, def: "false", status: works, note: "a session is opened without a write to the log, and only its server knows it, see [Local sessions](../guide/operate.md#local-sessions). No effect on a standalone server",
		field: func(c *Config) any { return &c.LocalSessions }},
	{name: "localSessionsUpgradingEnabled", kind: boolean, def: "false", status: works, note: "the first ephemeral znode of a local session makes it a global one; otherwise it is refused (-120). No effect without localSessionsEnabled",
		field: func(c *Config) any { return &c.LocalSessionUpgrades }},
	{name: "reconfigEnabled", kind: boolean, def: "false", status: works, reload: true, note: "clients may change the members; on a standalone server it selects the error",
		field: func(c *Config) any { return &c.ReconfigEnabled }},
	{name: "skipACL", kind: yesNo, def: "no", status: works, note: "disables all ACL checks",
		field: func(c *Config) any { return &c.SkipACL }},
	{name: "enforceQuota", kind: boolean, def: "false", status: works, reload: true, note: "hard quotas refuse writes",
		field: func(c *Config) any { return &c.EnforceQuota }},
	{name: "DigestAuthenticationProvider.superDigest", kind: digestID, status: works, reload: true, note: "the superuser, whom every ACL admits", secret: true,
		field: func(c *Config) any { return &c.SuperDigest }},
	{name: "DigestAuthenticationProvider.enabled", kind: boolean, def: "true", status: works, reload: true, note: "enables the digest scheme",
		field: func(c *Config) any { return &c.DigestAuthEnabled }},
	{name: "DigestAuthenticationProvider.digestAlg", kind: digestAlg, def: "SHA1", status: works, note: "hash of the digest scheme, and so of superDigest and of identities in ACLs; it must be the same on all servers",
		field: func(c *Config) any { return &c.DigestAlgorithm }},
	{name: "znode.container.checkIntervalMs", kind: property32(1, maxInt), def: "60000", status: works, note: "ms; interval between searches for container and TTL znodes to delete",
		field: func(c *Config) any { return &c.ContainerCheckInterval }},
	{name: "znode.container.maxPerMinute", kind: property32(1, maxInt), def: "10000", status: works, reload: true, note: "bound on these deletions per minute",
		field: func(c *Config) any { return &c.ContainerMaxPerMinute }},
	{name: "znode.container.maxNeverUsedIntervalMs", kind: property32(0, maxInt), def: "300000", status: works, reload: true, note: "ms; how long a container that never had a child is kept; 0 means forever",
		field: func(c *Config) any { return &c.ContainerMaxNeverUsed }},
	{name: "snapCount", kind: integer(2, maxInt), def: "100000", status: works, note: "transactions between checkpoints; up to 4 times as many if checkpoints would take more than a fifth of the time",
		field: func(c *Config) any { return &c.SnapCount }},
	{name: "preAllocSize", kind: property32(4, 4<<20), def: "65536", status: works, note: "KiB; size of a segment of the log",
		field: func(c *Config) any { return &c.PreAllocBytes }},
	{name: "forceSync", kind: yesNo, def: "yes", status: works, note: "no: writes are acknowledged before they are on disk, and a power failure can lose them",
		field: func(c *Config) any { return &c.ForceSync }},
	{name: "fsync.warningthresholdms", kind: property32(1, maxInt), def: "1000", status: works, reload: true, note: "ms; a longer sync of the log is logged as a warning",
		field: func(c *Config) any { return &c.FsyncWarningThreshold }},
	{name: "linearizableReads", kind: boolean, def: "false", status: works, note: "a read sees every write that was acknowledged before it began, at the cost of a round trip to the leader; false: as in ZooKeeper, where only sync ensures that",
		field: func(c *Config) any { return &c.LinearizableReads }},
}

// serverLines is the name of the row for server lines.
const serverLines = "server.*"

const (
	javaPeers = "an implementation detail of Java servers' communication"
	noVotes   = "prevents the start of an ensemble, whose members would disagree about quorums: there are no hierarchical quorums, and a majority of the participants decides. No effect on a standalone server"
)

var ensembleKeys = []key{
	{name: "dynamicConfigFile", kind: text, status: works, note: "file with the server lines, which zoo.cfg must not contain then; it is read and never written"},
	{name: serverLines, kind: text, status: works, note: "a server: `host:peerPort:electionPort[:participant\\|observer][;[host:]clientPort]`. A single line is a standalone server, of which only the client address is used; several are an ensemble. The election port is not used"},
	{name: "myid", kind: integer(1, serverlist.MaxID), status: works, note: "number of this server among the server lines; default: the file `myid` in dataDir, as in ZooKeeper",
		field: func(c *Config) any { return &c.MyID }},
	{name: "initLimit", kind: integer(1, maxInt), def: "10", status: works, note: "ticks; how long a server may take to catch up with the leader",
		field: func(c *Config) any { return &c.InitLimit }},
	{name: "syncLimit", kind: integer(1, maxInt), def: "5", status: works, note: "ticks without a quorum after which clients are disconnected",
		field: func(c *Config) any { return &c.SyncLimit }},
	{name: "standaloneEnabled", kind: boolean, def: "true", status: works, note: "false: a single server line is an ensemble of one, which reconfig can extend, and reconfig may leave a single voter",
		field: func(c *Config) any { return &c.StandaloneEnabled }},
	{name: "quorumListenOnAllIPs", kind: boolean, def: "false", status: works, note: "listen for other servers on all addresses instead of that of the server line",
		field: func(c *Config) any { return &c.ListenOnAllIPs }},
	{name: "multiAddress.enabled", kind: boolean, def: "false", status: works, note: "server lines, also those of a reconfig, may have several addresses, `host:peerPort:electionPort` separated by `\\|`. This server listens on all of its own, and tries those of another one after the other. For reconfig, once the ensemble has feature level 3",
		field: func(c *Config) any { return &c.MultiAddress }},
	{name: "multiAddress.reachabilityCheckTimeoutMs", kind: integer(1, maxInt), def: "1000", status: works, note: "ms; how long each of several addresses is tried, except the last",
		field: func(c *Config) any { return &c.ReachabilityTimeout }},
	{name: "multiAddress.reachabilityCheckEnabled", kind: boolean, def: "true", status: harmless, note: "a connection to an address shows whether it is reachable"},
	{name: "peerType", kind: oneOf("participant", "observer"), status: harmless, note: "the server line has the role; a different role here gives a warning"},
	{name: "quorum.auth.enableSasl", kind: boolean, def: "false", status: harmless, note: "true prevents the start of an ensemble: servers prove who they are by `gozkd.peer.secretFile` or by TLS"},
	{name: "connectToLearnerMasterLimit", kind: integer(0, maxInt), status: harmless, note: javaPeers},
	{name: "electionAlg", kind: integer(3, 3), def: "3", status: harmless, note: "raft elects the leader"},
	{name: "leaderServes", kind: yesNo, def: "yes", status: works, note: "no: the leader refuses clients while the ensemble has other members, and a server that becomes leader closes the connections of its clients",
		field: func(c *Config) any { return &c.LeaderServes }},
	{name: "observerMasterPort", kind: integer(0, 65535), def: "0", status: works, note: "not 0: this server, if it is an observer, gets the log from a follower and not from the leader, over the peer ports. Nothing listens on this port",
		field: func(c *Config) any { return &c.ObserverMasterPort }},
	{name: "syncEnabled", aliases: []string{"observer.syncEnabled"}, kind: boolean, def: "true", status: harmless, note: "observers always keep their data on disk"},
	{name: "tcpKeepAlive", kind: boolean, status: harmless, note: javaPeers},
}

var securityKeys = []key{
	{name: "IPAuthenticationProvider.usexforwardedfor", kind: boolean, def: "false", status: works, note: "true: for admin commands, the scheme ip sees the first address in the header X-Forwarded-For, where any caller can write one. No effect without gozkd.admin.open: addresses authorize nobody",
		field: func(c *Config) any { return &c.AdminForwardedFor }},
	{name: "enableEagerACLCheck", kind: boolean, def: "false", status: harmless, note: "ACLs are checked once, in the order of requests"},
}

var tuningKeys = []key{
	{name: "clientPortListenBacklog", kind: integer(-1, maxInt), def: "-1", status: works, note: "connections that may wait to be accepted; the system may have a lower limit (`net.core.somaxconn`); -1 or 0 means the system's limit. No effect on Windows",
		field: func(c *Config) any { return &c.ClientPortListenBacklog }},
	{name: "autopurge.snapRetainCount", kind: integer(0, maxInt), def: "3", status: harmless, note: "there is one checkpoint, which is updated in place"},
	{name: "autopurge.purgeInterval", kind: anything, def: "0", status: harmless, note: "the log is truncated after each checkpoint"},
	{name: "snapSizeLimitInKb", kind: property32(math.MinInt64, math.MaxInt64), status: harmless, note: "checkpoints write only changes; snapCount sets the interval"},
	{name: "txnLogSizeLimitInKb", kind: property32(math.MinInt64, math.MaxInt64), status: harmless, note: "preAllocSize sets the size of a segment"},
	{name: "serializeLastProcessedZxid.enabled", kind: boolean, status: harmless, note: "the checkpoint always records the zxid"},
	{name: "jute.maxbuffer.extrasize", kind: property32(0, maxInt), status: harmless, note: "requests are stored as the client sent them and do not grow"},
	{name: "maxResponseCacheSize", kind: integer(math.MinInt32, maxInt), status: harmless, note: "replies are encoded directly from the tree, without a cache"},
	{name: "maxGetChildrenResponseCacheSize", kind: integer(math.MinInt32, maxInt), status: harmless, note: "replies are encoded directly from the tree, without a cache"},
	{name: "advancedFlowControlEnabled", kind: boolean, status: harmless, note: "the memory of clients is always bounded, see gozkd.clientMemoryKB"},
	{name: "fips-mode", kind: boolean, status: harmless, note: "GODEBUG sets the FIPS mode of Go"},
}

var otherKeys = []key{
	{name: "emulate353TTLNodes", kind: boolean, def: "false", status: harmless, note: "concerns only files of the Java server"},
	{name: "digest.enabled", kind: boolean, def: "true", status: harmless, note: "the digest of the data is always maintained"},
	{name: "closeSessionTxn.enabled", kind: boolean, def: "true", status: harmless, note: "a session and its ephemeral znodes always end in one transaction"},
	{name: "db.autocreate", kind: boolean, def: "true", status: works, note: "false: a server without data takes no part in founding an ensemble, unless there is a file named `initialize` in dataDir or dataLogDir, which `gozkd init` writes. It waits until an ensemble that has data lets it in. The file is removed once the server has data. Recommended for production: a member that lost its disk can't found an empty ensemble then",
		field: func(c *Config) any { return &c.Found }},
}

// ignoredKeys take any value and have no effect here.
var ignoredKeys = slices.Concat(
	ignored(harmless, noVotes, "group.*", "weight.*"),
	ignored(harmless, "gives a warning in an ensemble: a majority of the participants decides", "oraclePath"),
	ignored(harmless, javaPeers,
		"observer.*", "learner.*", "leader.*", "follower.*", "fastleader.*", "maxConcurrentSnapSyncs",
		"maxConcurrentDiffSyncs", "maxTimeToWaitForEpoch", "cnxTimeout", "quorumCnxnTimeoutMs",
		"messageTracker.*", "commitLogCount", "forceSnapshotSync", "snapshotSizeFactor", "leaderConnectDelayDuringRetryMs",
		"observerMaster.*", "forward_learner_requests_to_commit_processor_disabled", "controllerPort"),
	ignored(harmless, "the election port is not used", "electionPortBindRetry"),
	ignored(harmless, "no effect without quorum.auth.enableSasl", "quorum.*"),
	ignored(harmless, "a property of the Java client", "sasl.*"),
	ignored(harmless, "one sync covers all waiting writes", "fsync.*", "flushDelay", "maxWriteQueuePollTime", "maxBatchSize"),
	ignored(harmless, "the checkpoint has its own format, which is not compressed", "snapshot.*", "compressed.*"),
	ignored(harmless, "threads and buffers of the Java server", "nio.*", "netty.*", "intBufferStartingSizeBytes"),
	ignored(harmless, "threads of the Java server", "commitProcessor.*"),
	ignored(harmless, "a class of the Java server; all kinds of watches are supported", "watchManagerName"),
	ignored(harmless, "watches are removed immediately",
		"watcherCleanThreadsNum", "watcherCleanThreshold", "watcherCleanIntervalInSeconds",
		"maxInProcessingDeadWatchers"),
	ignored(harmless, "an implementation detail of the Java server", "bitHashCacheSize", "pathStats.*"),
	ignored(harmless, "there is no JVM", "jvm.pause.*", "jmx.*"),
	ignored(harmless, "gozkd.logLevel sets the level and `--log-json` the format; the log goes to standard error", "log.*", "root.logger", "console.threshold", "tracelog.*"),
	ignored(harmless, "a property of the Java client", "client.*", "clientCnxnSocket", "disableAutoWatchReset", "request.timeout"),
)

// ignored returns a row for each name.
func ignored(s status, note string, names ...string) (rows []key) {
	for _, name := range names {
		rows = append(rows, key{name: name, kind: anything, status: s, note: note})
	}
	return rows
}

// Classes for metricsProvider.className.
const (
	prometheusProvider = "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider"
	defaultProvider    = "org.apache.zookeeper.metrics.impl.DefaultMetricsProvider"
	nullProvider       = "org.apache.zookeeper.metrics.impl.NullMetricsProvider"
)

// adminServer is the key that enables the admin server.
const adminServer = "admin.enableServer"

// endpointKeys concern HTTP endpoints and logging.
var endpointKeys = []key{
	{name: adminServer, kind: boolean, def: "true", status: works, note: "the admin commands over HTTP. Disabled by default, unless another admin key is set, if several servers may share the machine: with `--memory`, `--port-file` or client port 0. Never with `--ensemble`. A port that is taken gives a warning",
		field: func(c *Config) any { return &c.AdminEnabled }},
	{name: "admin.serverAddress", kind: host, def: "127.0.0.1", status: works, note: "address to listen on for admin commands; 0.0.0.0, ZooKeeper's default, means all",
		field: func(c *Config) any { return &c.AdminAddress }},
	{name: "admin.serverPort", kind: integer(0, 65535), def: "8080", status: works, note: "port for admin commands; 0 means any free port, which the port file contains",
		field: func(c *Config) any { return &c.AdminPort }},
	{name: "admin.commandURL", kind: urlPath, def: "/commands", status: works, note: "path of the admin commands",
		field: func(c *Config) any { return &c.AdminCommandURL }},
	{name: "admin.idleTimeout", kind: property32(1, maxInt), def: "30000", status: works, note: "ms; how long an HTTP connection may be idle",
		field: func(c *Config) any { return &c.AdminIdleTimeout }},
	{name: "admin.snapshot.enabled", kind: boolean, def: "true", status: works, note: "the admin command snapshot, for [administrators](monitoring.md#authorization)",
		field: func(c *Config) any { return &c.AdminSnapshot }},
	{name: "admin.restore.enabled", kind: boolean, def: "true", status: harmless, note: "the admin command restore is not supported: use `gozkd restore`"},
	{name: "admin.rateLimiterIntervalInMS", kind: property32(0, maxInt), def: "300000", status: works, note: "ms; minimum interval between two snapshots by admin command; 0 means none",
		field: func(c *Config) any { return &c.AdminInterval }},
	{name: "admin.*", kind: anything, status: harmless, note: "an implementation detail of the Java server"},
	{name: "gozkd.admin.tokenFile", kind: text, status: works, note: "a file with a token of at least 16 characters, which authorizes [admin commands](monitoring.md#authorization) from any machine. It is read at each request, so it can be replaced at any time",
		field: func(c *Config) any { return &c.AdminTokenFile }},
	{name: "gozkd.admin.open", kind: boolean, def: "false", status: works, note: "true: admin commands admit callers as ZooKeeper does: everybody reads paths and addresses and resets counters, and whoever the ACL of `/` names with all permissions may do the rest",
		field: func(c *Config) any { return &c.AdminOpen }},
	{name: "gozkd.pprof", kind: boolean, def: "false", status: works, note: "profiles at `/debug/pprof/` of the admin server, only for clients on this machine",
		field: func(c *Config) any { return &c.Pprof }},

	{name: "metricsProvider.className", kind: oneOf(defaultProvider, nullProvider, prometheusProvider), def: defaultProvider, status: works, note: "the Prometheus class serves `/metrics` on its port; the others serve nothing. A port that is taken gives a warning",
		field: func(c *Config) any { return &c.MetricsProvider }},
	{name: "metricsProvider.httpHost", kind: host, def: "0.0.0.0", status: works, note: "address to listen on for Prometheus; 0.0.0.0 means all",
		field: func(c *Config) any { return &c.MetricsHost }},
	{name: "metricsProvider.httpPort", kind: integer(-1, 65535), def: "7000", status: works, note: "port for Prometheus; 0 means any free port, which the port file contains; -1 means none",
		field: func(c *Config) any { return &c.MetricsPort }},
	{name: "metricsProvider.exportJvmInfo", kind: boolean, def: "true", status: works, note: "also metrics of the runtime and the process: `go_*` and `process_*`, because there is no JVM",
		field: func(c *Config) any { return &c.MetricsRuntime }},
	{name: "metricsProvider.*", kind: anything, status: harmless, note: "threads and queues of the Java server"},

	{name: "gozkd.logLevel", kind: oneOf("trace", "debug", "info", "warn", "error", "off"), def: "info", status: works, reload: true, note: "log level; also the flag `--log-level`",
		field: func(c *Config) any { return &c.LogLevel }},
	{name: "gozkd.slowRequestThresholdMs", kind: property32(0, maxInt), def: "0", status: works, reload: true, note: "ms; a longer request is logged with the duration of each stage; 0 disables that",
		field: func(c *Config) any { return &c.SlowRequest }},
	{name: "gozkd.refuseUnreadable", kind: boolean, def: "false", status: works, note: "true: a write after which a znode, or a list of children, is too long for a reply of `jute.maxbuffer` bytes is refused (-5). Otherwise it is accepted, as by ZooKeeper, and a line in the log names the znode with too many children",
		field: func(c *Config) any { return &c.RefuseUnreadable }},
	{name: "gozkd.clientMemoryKB", kind: property32(0, maxInt), def: "0", status: works, reload: true, note: "KiB; bound on what waits for all clients together: output that they have not read, and requests that they have not sent completely. Beyond it the slowest clients are disconnected. At least 8 times `jute.maxbuffer`; 0 means an eighth of the memory that the process may use (GOMEMLIMIT, the container, the machine), at most 128 MiB",
		field: func(c *Config) any { return &c.ClientMemory }},
	{name: "gozkd.watchMemoryKB", kind: property32(0, maxInt), def: "0", status: works, reload: true, note: "KiB; bound on the watches of all clients together: 56 bytes each, and for each path its text and 104 bytes. Beyond it the clients whose addresses have most of them are disconnected. 0 means an eighth of the memory that the process may use, at most 192 MiB, which is a million watches on paths of 40 bytes",
		field: func(c *Config) any { return &c.WatchMemory }},
	{name: "gozkd.maxFeatureLevel", kind: integer(0, maxInt), def: "0", status: works, reload: true, note: "the highest feature level that this server agrees to activate; 0 means the highest that it supports. Holds an [upgrade](../guide/operate.md#upgrade-one-server-at-a-time) back, so that the previous version can be started again",
		field: func(c *Config) any { return &c.MaxFeatureLevel }},
	{name: "gozkd.peer.secretFile", kind: text, status: works, note: "file with the [secret of the ensemble](../guide/operate.md#the-peer-port), at least 16 bytes, which only the owner and the group may read: the servers prove to each other that they know it. Without it, a server is known by its address",
		field: func(c *Config) any { return &c.PeerSecretFile }},
	{name: "gozkd.peer.secretMode", kind: oneOf(RequireSecret, PreferSecret), def: RequireSecret, status: works, note: "prefer also accepts servers that have no secret, so that the secret can be introduced server by server",
		field: func(c *Config) any { return &c.PeerSecretMode }},
	{name: "datadir.autocreate", kind: boolean, def: "true", status: works, note: "false: a missing data directory is an error",
		field: func(c *Config) any { return &c.AutoCreate }},
}

// Prometheus reports whether to serve metrics for Prometheus.
func (c Config) Prometheus() bool { return c.MetricsProvider == prometheusProvider }
