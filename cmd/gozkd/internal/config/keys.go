package config

import (
	"math"
	"slices"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/tlsconf"
	"github.com/gozkd/gozkd/internal/memberid"
)

// keys lists all keys of a server, in the order of docs/reference/configuration.md. It is
// read-only.
var keys = slices.Concat(workingKeys, ensembleKeys, peerTLSKeys, endpointKeys, adminTLSKeys, webKeys, metricsTLSKeys, portKeys, clientTLSKeys, authKeys, securityKeys, auditKeys, archiveKeys, kerberosKeys, throttleKeys, tuningKeys, otherKeys, ignoredKeys)

var clientTLSKeys = tlsKeys(clientTLS, false, func(c *Config) *tlsconf.Options { return &c.ClientTLS })

const (
	maxInt = math.MaxInt32
	// maxTick keeps the default of maxSessionTimeout, 20 ticks, within the protocol's 32-bit
	// milliseconds.
	maxTick = maxInt / 20
)

var workingKeys = []key{
	{name: "dataDir", kind: text, status: works, note: "directory of checkpoint and log",
		field: func(c *Config) any { return &c.Server.Dir }},
	{name: "dataLogDir", kind: text, def: "dataDir", status: works, note: "directory of the log",
		field: func(c *Config) any { return &c.Server.LogDir }},
	{name: "clientPort", kind: integer(0, 65535), def: "2181", status: works, note: "port for clients; 0: any free port",
		field: func(c *Config) any { return &c.ClientPort }},
	{name: "clientPortAddress", kind: hostOrLoopback, def: "all addresses", status: works, note: "address for clients",
		field: func(c *Config) any { return &c.ClientPortAddress }},
	{name: "tickTime", kind: integer(1, maxTick), def: "3000", status: works, note: "ms; the unit of session expiry",
		field: func(c *Config) any { return &c.Server.Tick }},
	{name: "minSessionTimeout", kind: integer(-1, maxInt), def: "2 ticks", status: works, reload: true, note: "ms; -1: the default",
		field: func(c *Config) any { return &c.Server.MinSessionTimeout }},
	{name: "maxSessionTimeout", kind: integer(-1, maxInt), def: "20 ticks", status: works, reload: true, note: "ms; -1: the default",
		field: func(c *Config) any { return &c.Server.MaxSessionTimeout }},
	{name: "maxClientCnxns", kind: bound, def: "60", status: works, reload: true, note: "connections per client address; 0 or less: no bound",
		field: func(c *Config) any { return orNone(&c.Server.MaxClientConns, 1) }},
	{name: "maxCnxns", kind: bound, def: "0", status: works, reload: true, note: "connections in all; 0 or less: `ulimit -n` less a quarter of it (32 to 2,048)",
		field: func(c *Config) any { return &c.Server.MaxConns }},
	{name: "jute.maxbuffer", kind: property32(-maxInt-1, maxInt), def: "1048575", status: works, note: "bytes; the largest request, between 1024 and 256 MiB",
		field: func(c *Config) any { return &c.Server.MaxBuffer }},
	{name: "globalOutstandingLimit", kind: property32(-maxInt-1, maxInt), def: "1000", status: works, reload: true, note: "requests in flight, above which connections are not read; 0 or less: the default",
		field: func(c *Config) any { return &c.Server.OutstandingLimit }},
	{name: "nio.sessionlessCnxnTimeout", kind: property32(1, maxInt), def: "10000", status: works, reload: true, note: "ms until a connection must have a session",
		field: func(c *Config) any { return &c.Server.HandshakeTimeout }},
	{name: "clientTcpKeepAlive", kind: boolean, def: "false", status: works, note: "TCP keep-alive on client connections",
		field: func(c *Config) any { return &c.Server.ClientKeepAlive }},
	{name: "4lw.commands.whitelist", kind: whitelist, def: "srvr", status: works, reload: true, note: "[four-letter words](monitoring.md#four-letter-words) to answer, besides srvr",
		field: func(c *Config) any { return &c.Server.Words }},
	{name: "readonlymode.enabled", kind: boolean, def: "false", status: works, reload: true, note: "[read-only mode](../guide/operate.md#read-only-mode), and the word isro",
		field: func(c *Config) any { return &c.Server.ReadOnlyMode }},
	{name: "localSessionsEnabled", kind: boolean, def: "false", status: works, note: "[local sessions](../guide/operate.md#local-sessions)",
		field: func(c *Config) any { return &c.Server.LocalSessions }},
	{name: "localSessionsUpgradingEnabled", kind: boolean, def: "false", status: works, note: "an ephemeral znode makes a local session global; false: it is refused (-120)",
		field: func(c *Config) any { return &c.Server.LocalSessionUpgrades }},
	{name: "reconfigEnabled", kind: boolean, def: "false", status: works, reload: true, note: "clients may change the members",
		field: func(c *Config) any { return &c.Server.ReconfigEnabled }},
	{name: "skipACL", kind: onlyYes, def: "no", status: works, note: "disables all ACL checks",
		field: func(c *Config) any { return &c.Server.SkipACL }},
	{name: "enforceQuota", kind: boolean, def: "false", status: works, reload: true, note: "hard quotas refuse writes",
		field: func(c *Config) any { return &c.Server.EnforceQuota }},
	{name: "DigestAuthenticationProvider.superDigest", kind: orEmpty(digestID), status: works, reload: true, note: "the superuser", secret: true,
		field: func(c *Config) any { return &c.Server.SuperDigest }},
	{name: "DigestAuthenticationProvider.enabled", kind: boolean, def: "true", status: works, reload: true, note: "enables the digest scheme",
		field: func(c *Config) any { return not{&c.Server.DisableDigest} }},
	{name: "DigestAuthenticationProvider.digestAlg", kind: digestAlg, def: "SHA1", status: works, note: "hash of digest identities; equal on all servers",
		field: func(c *Config) any { return &c.Server.DigestAlgorithm }},
	{name: "znode.container.checkIntervalMs", kind: property32(1, maxInt), def: "60000", status: works, note: "ms between searches for empty containers and expired TTL znodes",
		field: func(c *Config) any { return &c.Server.ContainerInterval }},
	{name: "znode.container.maxPerMinute", kind: property32(1, maxInt), def: "10000", status: works, reload: true, note: "deletions of these per minute",
		field: func(c *Config) any { return &c.Server.ContainerMaxPerMinute }},
	{name: "znode.container.maxNeverUsedIntervalMs", kind: orNearest32(0, maxInt), def: "300000", status: works, reload: true, note: "ms until a never used container is deleted; 0: never",
		field: func(c *Config) any { return orNone(&c.Server.ContainerNeverUsed, time.Millisecond) }},
	{name: "snapCount", kind: property32(-maxInt-1, maxInt), def: "100000", status: works, note: "transactions between checkpoints; 2 or more, up to 4 times as many if checkpoints are slow",
		field: func(c *Config) any { return &c.Server.SnapCount }},
	{name: "preAllocSize", kind: orNearest32(4, 4<<20), def: "65536", status: works, note: "KiB; size of a segment of the log",
		field: func(c *Config) any { return &c.Server.SegmentBytes }},
	{name: "forceSync", kind: onlyNo, def: "yes", status: works, note: "no: a power failure can lose acknowledged writes",
		field: func(c *Config) any { return not{&c.Server.NoSync} }},
	{name: "fsync.warningthresholdms", kind: orNearest32(1, maxInt), def: "1000", status: works, reload: true, note: "ms; a longer sync of the log is a warning",
		field: func(c *Config) any { return &c.Server.SyncWarning }},
	{name: "linearizableReads", kind: boolean, def: "false", status: works, note: "reads see every write acknowledged before, with a round trip to the leader",
		field: func(c *Config) any { return &c.Server.LinearizableReads }},
}

// serverLines is the name of the row for server lines.
const serverLines = "server.*"

const (
	javaPeers = "an implementation detail of the Java server"
	noVotes   = "prevents the start of an ensemble: there are no hierarchical quorums"
)

var ensembleKeys = []key{
	{name: "dynamicConfigFile", kind: text, status: works, note: "file with the server lines, instead of zoo.cfg"},
	{name: serverLines, kind: text, status: works, note: "a [server line](#an-ensemble); a single line is a standalone server"},
	{name: "myid", kind: integer(0,
		memberid.MaxNumber), status: works, note: "number of this server, as in the file `myid`",
		field: func(c *Config) any { return &c.MyID }},
	{name: "initLimit", kind: integer(0, maxInt), def: "10", status: works, note: "ticks, 1 or more, until a majority founds an ensemble without the others",
		field: func(c *Config) any { return &c.Server.InitLimit }},
	{name: "syncLimit", kind: integer(0, maxInt), def: "5", status: works, note: "ticks, 1 or more in an ensemble, without a quorum after which clients are disconnected",
		field: func(c *Config) any { return &c.Server.SyncLimit }},
	{name: "standaloneEnabled", kind: boolean, def: "true", status: works, note: "false: a single server line is an ensemble, and reconfig may leave a single voter",
		field: func(c *Config) any { return not{&c.Server.OneVoter} }},
	{name: "quorumListenOnAllIPs", kind: boolean, def: "false", status: works, note: "listen for servers on all addresses",
		field: func(c *Config) any { return &c.ListenOnAllIPs }},
	{name: "multiAddress.enabled", kind: boolean, def: "false", status: works, note: "several addresses in a [server line](#an-ensemble); for reconfig from feature level 3",
		field: func(c *Config) any { return &c.Server.MultiAddress }},
	{name: "multiAddress.reachabilityCheckTimeoutMs", kind: orNearest(1, maxInt), def: "1000", status: works, note: "ms to try each of several addresses, except the last",
		field: func(c *Config) any { return &c.Server.AddressPatience }},
	{name: "multiAddress.reachabilityCheckEnabled", kind: boolean, def: "true", status: harmless, note: "servers try each address"},
	{name: "peerType", kind: oneOf("participant", "observer"), status: harmless, note: "the server line has the role"},
	{name: "quorum.auth.enableSasl", kind: boolean, def: "false", status: harmless, note: "true prevents the start of an ensemble: use `gozkd.peer.secretFile` or TLS"},
	{name: "connectToLearnerMasterLimit", kind: orNearest(0, maxInt), status: harmless, note: javaPeers},
	{name: "electionAlg", kind: integer(3, 3), def: "3", status: harmless, note: "an implementation detail of the Java server"},
	{name: "leaderServes", kind: onlyNo, def: "yes", status: works, note: "no: a leader with other members serves no clients",
		field: func(c *Config) any { return not{&c.Server.LeaderWithoutClients} }},
	{name: "observerMasterPort", kind: integer(0, 65535), def: "0", status: works, note: "not 0: observers get the log from followers",
		field: func(c *Config) any { return &c.ObserverMasterPort }},
	{name: "syncEnabled", aliases: []string{"observer.syncEnabled"}, kind: boolean, def: "true", status: harmless, note: "always on"},
	{name: "tcpKeepAlive", kind: boolean, status: harmless, note: javaPeers},
}

var securityKeys = []key{
	{name: "IPAuthenticationProvider.usexforwardedfor", kind: boolean, def: "false", status: works, note: "with gozkd.admin.open, ip is from X-Forwarded-For, which callers can forge",
		field: func(c *Config) any { return &c.AdminForwardedFor }},
	{name: "enableEagerACLCheck", kind: boolean, def: "false", status: harmless, note: "ACLs are checked once, in the order of requests"},
}

var tuningKeys = []key{
	{name: "clientPortListenBacklog", kind: orNearest(-1, maxInt), def: "-1", status: works, note: "connections that wait to be accepted; -1, 0: the system's limit; not on Windows",
		field: func(c *Config) any { return &c.Server.ListenBacklog }},
	{name: "autopurge.snapRetainCount", kind: orNearest(0, maxInt), def: "3", status: harmless, note: "log and checkpoint are trimmed anyway"},
	{name: "autopurge.purgeInterval", kind: anything, def: "0", status: harmless, note: "log and checkpoint are trimmed anyway"},
	{name: "snapSizeLimitInKb", kind: property32(math.MinInt64, math.MaxInt64), status: harmless, note: "checkpoints write only changes; snapCount sets the interval"},
	{name: "txnLogSizeLimitInKb", kind: property32(math.MinInt64, math.MaxInt64), status: harmless, note: "preAllocSize sets the size of a segment"},
	{name: "serializeLastProcessedZxid.enabled", kind: boolean, status: harmless, note: "always on"},
	{name: "jute.maxbuffer.extrasize", kind: property32(0, maxInt), status: harmless, note: "an implementation detail of the Java server"},
	{name: "maxResponseCacheSize", kind: property32(math.MinInt32, maxInt), status: harmless, note: "an implementation detail of the Java server"},
	{name: "maxGetChildrenResponseCacheSize", kind: property32(math.MinInt32, maxInt), status: harmless, note: "an implementation detail of the Java server"},
	{name: "advancedFlowControlEnabled", kind: boolean, status: harmless, note: "see gozkd.clientMemoryKB"},
	{name: "fips-mode", kind: boolean, status: harmless, note: "GODEBUG sets the FIPS mode of Go"},
}

var otherKeys = []key{
	{name: "emulate353TTLNodes", kind: boolean, def: "false", status: harmless, note: "an implementation detail of the Java server"},
	{name: "digest.enabled", kind: boolean, def: "true", status: harmless, note: "always on"},
	{name: "closeSessionTxn.enabled", kind: boolean, def: "true", status: harmless, note: "always on"},
	{name: "db.autocreate", kind: boolean, def: "true", status: works, note: "false, recommended: servers without data wait for [an ensemble that has data](../guide/operate.md#a-majority-without-data)",
		field: func(c *Config) any { return &c.Found }},
}

// ignoredKeys take any value and have no effect here.
var ignoredKeys = slices.Concat(
	ignored(harmless, noVotes, "group.*", "weight.*"),
	ignored(harmless, "a warning in an ensemble: a majority of the participants decides", "oraclePath"),
	ignored(harmless, javaPeers,
		"observer.*", "learner.*", "leader.*", "follower.*", "fastleader.*", "maxConcurrentSnapSyncs",
		"maxConcurrentDiffSyncs", "maxTimeToWaitForEpoch", "cnxTimeout", "quorumCnxnTimeoutMs",
		"messageTracker.*", "commitLogCount", "forceSnapshotSync", "snapshotSizeFactor", "leaderConnectDelayDuringRetryMs",
		"observerMaster.*", "forward_learner_requests_to_commit_processor_disabled", "controllerPort",
		"electionPortBindRetry", "fsync.*", "flushDelay", "maxWriteQueuePollTime", "maxBatchSize", "snapshot.*", "compressed.*",
		"nio.*", "netty.*", "intBufferStartingSizeBytes", "commitProcessor.*", "watchManagerName",
		"watcherCleanThreadsNum", "watcherCleanThreshold", "watcherCleanIntervalInSeconds", "maxInProcessingDeadWatchers",
		"bitHashCacheSize", "pathStats.*", "jvm.pause.*", "jmx.*"),
	ignored(harmless, "no effect without quorum.auth.enableSasl", "quorum.*"),
	ignored(harmless, "use gozkd.logLevel and `--log-json`; the log goes to standard error", "log.*", "root.logger", "console.threshold", "tracelog.*"),
	ignored(harmless, "a property of the Java client", "sasl.*", "client.*", "clientCnxnSocket", "disableAutoWatchReset", "request.timeout"),
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

// metricsKeys is the group of the keys of Prometheus.
const metricsKeys = "metricsProvider."

// adminServer is the key that enables the admin server.
const adminServer = "admin.enableServer"

// endpointKeys concern HTTP endpoints and logging.
var endpointKeys = []key{
	{name: adminServer, kind: boolean, def: "true", status: works, note: "[admin commands over HTTP](#http-ports)",
		field: func(c *Config) any { return &c.AdminEnabled }},
	{name: "admin.serverAddress", kind: orEmpty(host), def: "127.0.0.1", status: works, note: "address for admin commands; ZooKeeper's default is 0.0.0.0",
		field: func(c *Config) any { return &c.AdminAddress }},
	{name: "admin.serverPort", kind: property32(-1, 65535), def: "8080", status: works, note: "port for admin commands; 0: any free port; -1: none",
		field: func(c *Config) any { return &c.AdminPort }},
	{name: "admin.commandURL", kind: orEmpty(urlPath), def: "/commands", status: works, note: "path of the admin commands",
		field: func(c *Config) any { return &c.AdminCommandURL }},
	{name: "admin.idleTimeout", kind: property32(-maxInt-1, maxInt), def: "30000", status: works, note: "ms until an idle HTTP connection is closed; 0 or less: the default",
		field: func(c *Config) any { return &c.AdminIdleTimeout }},
	{name: "admin.snapshot.enabled", kind: boolean, def: "true", status: works, note: "the admin command snapshot",
		field: func(c *Config) any { return &c.AdminSnapshot }},
	{name: "admin.restore.enabled", kind: boolean, def: "true", status: harmless, note: "use `gozkd restore`"},
	{name: "admin.rateLimiterIntervalInMS", kind: orNearest32(0, maxInt), def: "300000", status: works, note: "ms between snapshots by admin command",
		field: func(c *Config) any { return orNone(&c.AdminInterval, time.Millisecond) }},
	{name: "admin.*", kind: anything, status: harmless, note: "an implementation detail of the Java server"},
	{name: "gozkd.admin.tokenFile", kind: text, status: works, note: "file with a token of 16 characters or more for [admin commands](monitoring.md#authorization)",
		field: func(c *Config) any { return &c.AdminTokenFile }},
	{name: "gozkd.admin.open", kind: boolean, def: "false", status: works, note: "[authorization](monitoring.md#authorization) of admin commands as in ZooKeeper",
		field: func(c *Config) any { return &c.AdminOpen }},
	{name: "gozkd.pprof", kind: boolean, def: "false", status: works, note: "profiles at `/debug/pprof/`, for this machine only",
		field: func(c *Config) any { return &c.Pprof }},

	{name: "metricsProvider.className", kind: oneOf(defaultProvider, nullProvider, prometheusProvider), def: defaultProvider, status: works, note: "[Prometheus](monitoring.md#metrics) serves `/metrics`, the others nothing",
		field: func(c *Config) any { return &c.MetricsProvider }},
	{name: "metricsProvider.httpHost", group: metricsKeys, kind: host, def: "0.0.0.0", status: works, note: "address for Prometheus",
		field: func(c *Config) any { return &c.MetricsHost }},
	{name: "metricsProvider.httpPort", group: metricsKeys, kind: integer(-1, 65535), def: "7000", status: works, note: "port for Prometheus; 0: any free port; -1: none",
		field: func(c *Config) any { return &c.MetricsPort }},
	{name: "metricsProvider.exportJvmInfo", group: metricsKeys, kind: boolean, def: "true", status: works, note: "also metrics `go_*` and `process_*`",
		field: func(c *Config) any { return &c.MetricsRuntime }},
	{name: "metricsProvider.*", kind: anything, status: harmless, note: "an implementation detail of the Java server"},

	{name: "gozkd.logLevel", kind: oneOf("trace", "debug", "info", "warn", "error", "off"), def: "info", status: works, reload: true, note: "log level",
		field: func(c *Config) any { return &c.LogLevel }},
	{name: "gozkd.slowRequestThresholdMs", kind: property32(0, maxInt), def: "0", status: works, reload: true, note: "ms above which a request is [logged](monitoring.md#slow-requests); 0: none",
		field: func(c *Config) any { return &c.Server.SlowRequest }},
	{name: "gozkd.refuseUnreadable", kind: boolean, def: "false", status: works, note: "refuse (-5) writes that make a znode or list of children longer than `jute.maxbuffer`",
		field: func(c *Config) any { return &c.Server.RefuseUnreadable }},
	{name: "gozkd.clientMemoryKB", kind: property32(0, maxInt), def: "0", status: works, reload: true, note: "KiB of unread replies and incomplete requests, above which the slowest clients are disconnected; at least 8 times `jute.maxbuffer`. 0: an eighth of the memory (GOMEMLIMIT, container or machine), at most 128 MiB",
		field: func(c *Config) any { return &c.Server.ClientMemory }},
	{name: "gozkd.watchMemoryKB", kind: property32(0, maxInt), def: "0", status: works, reload: true, note: "KiB of [watches](../internals/server.md#bounds), above which the addresses with most are disconnected. 0: an eighth of the memory, at most 192 MiB: a million watches",
		field: func(c *Config) any { return &c.Server.WatchMemory }},
	{name: "gozkd.maxFeatureLevel", kind: integer(0, maxInt), def: "0", status: works, reload: true, note: "the highest [feature level](../guide/operate.md#upgrade-one-server-at-a-time) to activate; 0: the newest",
		field: func(c *Config) any { return &c.Server.MaxFeatureLevel }},
	{name: "gozkd.peer.secretFile", kind: text, status: works, note: "file with the [secret](../guide/operate.md#the-peer-port), 16 bytes or more, unreadable for others",
		field: func(c *Config) any { return &c.PeerSecretFile }},
	{name: "gozkd.peer.secretMode", kind: oneOf("require", "prefer"), def: "require", status: works, note: "prefer: accept servers without the secret, too",
		field: func(c *Config) any { return not{&c.Server.PeerSecretOptional} }},
	{name: "datadir.autocreate", kind: boolean, def: "true", status: works, note: "false: a missing data directory is an error",
		field: func(c *Config) any { return &c.AutoCreate }},
}

// Prometheus reports whether to serve metrics for Prometheus.
func (c Config) Prometheus() bool { return c.MetricsProvider == prometheusProvider }
