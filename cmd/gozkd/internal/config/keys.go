package config

import (
	"math"
	"slices"
	"time"

	"github.com/gozkd/gozkd/internal/memberid"
)

// keys lists all keys of a server, in the order of docs/reference/configuration.md. It is
// read-only, for names and kinds: its fields point into a Config that no server uses.
var keys = table(new(Config))

// table returns all keys, with fields that point into c.
func table(c *Config) []key {
	return slices.Concat(
		workingKeys(c), ensembleKeys(c), peerTLSKeys(c), endpointKeys(c), adminTLSKeys(c), webKeys(c),
		metricsTLSKeys(c), portKeys(c), tlsKeys(clientTLS, false, &c.ClientTLS), authKeys(c),
		auditKeys(c), archiveKeys(c), kerberosKeys(c), throttleKeys(c), tuningKeys(c), ignoredKeys,
	)
}

const (
	maxInt = math.MaxInt32
	// maxTick keeps 20 ticks, the default of maxSessionTimeout, within 32 bits of ms.
	maxTick = maxInt / 20
)

func workingKeys(c *Config) []key {
	return []key{
		row("dataDir", text, "", &c.Server.Dir, "directory of checkpoint and log"),
		row("dataLogDir", text, "dataDir", &c.Server.LogDir, "directory of the log"),
		row("clientPort", integer(0, 65535), "2181", &c.ClientPort,
			"port for clients; 0: any free port; none if zoo.cfg has 0 and a secureClientPort"),
		row("clientPortAddress", hostOrLoopback, "all addresses", &c.ClientPortAddress, "address for clients"),
		row("tickTime", integer(1, maxTick), "3000", &c.Server.Tick, "ms; the unit of session expiry"),
		live("minSessionTimeout", integer(-1, maxInt), "2 ticks", &c.Server.MinSessionTimeout, "ms; -1: the default"),
		live("maxSessionTimeout", integer(-1, maxInt), "20 ticks", &c.Server.MaxSessionTimeout, "ms; -1: the default"),
		live("maxClientCnxns", bound, "60", orNone(&c.Server.MaxClientConns, 1),
			"connections per client address; 0 or less: no bound"),
		live("maxCnxns", bound, "0", &c.Server.MaxConns,
			"connections in all; 0 or less: `ulimit -n` less a quarter of it (32 to 2,048)"),
		row("jute.maxbuffer", orNearest32(1024, 256<<20), "1048575", &c.Server.MaxBuffer,
			"bytes; the largest request, between 1024 and 256 MiB"),
		live("globalOutstandingLimit", orNearest32(1, maxInt).instead("1000"), "1000", &c.Server.OutstandingLimit,
			"requests in flight, above which connections are not read; 0 or less: the default"),
		live("nio.sessionlessCnxnTimeout", property32(1, maxInt), "10000", &c.Server.HandshakeTimeout,
			"ms until a connection must have a session"),
		row("clientTcpKeepAlive", boolean, "false", &c.Server.ClientKeepAlive, "TCP keep-alive on client connections"),
		live("4lw.commands.whitelist", whitelist, "srvr", &c.Server.Words,
			"[four-letter words](monitoring.md#four-letter-words) to answer, besides srvr; * without a zoo.cfg on 127.0.0.1"),
		live("readonlymode.enabled", boolean, "false", &c.Server.ReadOnlyMode,
			"[read-only mode](../guide/operate.md#read-only-mode), and the word isro"),
		row("localSessionsEnabled", strict, "false", &c.Server.LocalSessions,
			"[local sessions](../guide/operate.md#local-sessions)"),
		row("localSessionsUpgradingEnabled", strict, "false", &c.Server.LocalSessionUpgrades,
			"an ephemeral znode makes a local session global; false: it is refused (-120)"),
		live("reconfigEnabled", strict, "false", &c.Server.ReconfigEnabled, "clients may change the members"),
		row("skipACL", onlyYes, "no", &c.Server.SkipACL, "disables all ACL checks"),
		live("enforceQuota", boolean, "false", &c.Server.EnforceQuota, "hard quotas refuse writes"),
		live("DigestAuthenticationProvider.superDigest", digestID, "", &c.Server.SuperDigest,
			"the superuser").hidden(),
		live("DigestAuthenticationProvider.enabled", boolean, "true", not{&c.Server.DisableDigest},
			"enables the digest scheme"),
		row("DigestAuthenticationProvider.digestAlg", digestAlg, "SHA1", &c.Server.DigestAlgorithm,
			"hash of digest identities; equal on all servers"),
		row("znode.container.checkIntervalMs", property32(1, maxInt), "60000", &c.Server.ContainerInterval,
			"ms between searches for empty containers and expired TTL znodes"),
		live("znode.container.maxPerMinute", property32(1, maxInt), "10000", &c.Server.ContainerMaxPerMinute,
			"deletions of these per minute"),
		live("znode.container.maxNeverUsedIntervalMs", orNearest32(0, maxInt), "300000", orNone(&c.Server.ContainerNeverUsed, time.Millisecond),
			"ms until a never used container is deleted; 0: never"),
		row("snapCount", orNearest32(2, maxInt), "100000", &c.Server.SnapCount,
			"transactions between checkpoints; 2 or more, up to 4 times as many if checkpoints are slow"),
		row("preAllocSize", orNearest32(4, 4<<20), "65536", &c.Server.SegmentBytes,
			"KiB; size of a segment of the log, or `ulimit -f` if that is less"),
		row("forceSync", onlyNo, "yes", not{&c.Server.NoSync}, "no: a power failure can lose acknowledged writes"),
		live("fsync.warningthresholdms", orNearest32(1, maxInt), "1000", &c.Server.SyncWarning,
			"ms; a longer sync of the log is a warning"),
		row("linearizableReads", boolean, "false", &c.Server.LinearizableReads,
			"reads see every write acknowledged before, with a round trip to the leader"),
	}
}

// serverLines is the name of the row for server lines.
const serverLines = "server.*"

const (
	javaPeers = "an implementation detail of the Java server"
	noVotes   = "prevents the start of an ensemble: there are no hierarchical quorums"
)

func ensembleKeys(c *Config) []key {
	return []key{
		row("dynamicConfigFile", text, "", nil, "file with the server lines, instead of zoo.cfg"),
		row(serverLines, anything, "", nil, "a [server line](#an-ensemble); a single line is a standalone server"),
		row("myid", integer(0, memberid.MaxNumber), "", &c.MyID, "number of this server, as in the file `myid`"),
		row("initLimit", integer(0, maxInt), "10", &c.Server.InitLimit,
			"ticks, 1 or more, until a majority founds an ensemble without the others"),
		row("syncLimit", integer(0, maxInt), "5", &c.Server.SyncLimit,
			"ticks, 1 or more in an ensemble, without a quorum after which clients are disconnected"),
		row("standaloneEnabled", strict, "true", not{&c.Server.OneVoter},
			"false: a single server line is an ensemble, and reconfig may leave a single voter"),
		row("quorumListenOnAllIPs", strict, "false", &c.ListenOnAllIPs, "listen for servers on all addresses"),
		row("multiAddress.enabled", strict, "false", &c.Server.MultiAddress,
			"several addresses in a [server line](#an-ensemble)"),
		row("multiAddress.reachabilityCheckTimeoutMs", orNearest(1, maxInt), "1000", &c.Server.AddressPatience,
			"ms to try each of several addresses, except the last"),
		none("multiAddress.reachabilityCheckEnabled", strict, "true", "servers try each address"),
		none("peerType", oneOf("participant", "observer"), "", "the server line has the role"),
		none("quorum.auth.enableSasl", strict, "false",
			"true prevents the start of an ensemble: use `gozkd.peer.secretFile` or TLS"),
		none("connectToLearnerMasterLimit", orNearest(0, maxInt), "", javaPeers),
		none("electionAlg", oneOf("3"), "3", "an implementation detail of the Java server"),
		row("leaderServes", onlyNo, "yes", not{&c.Server.LeaderWithoutClients},
			"no: a leader with other members serves no clients"),
		row("observerMasterPort", integer(0, 65535), "0", &c.ObserverMasterPort,
			"not 0: observers get the log from followers"),
		none("syncEnabled", strict, "true", "always on").alias("observer.syncEnabled"),
		none("tcpKeepAlive", boolean, "", javaPeers),
	}
}

func tuningKeys(c *Config) []key {
	return []key{
		row("clientPortListenBacklog", orNearest(-1, maxInt), "-1", &c.Server.ListenBacklog,
			"connections that wait to be accepted; -1, 0: the system's limit; not on Windows"),
		none("autopurge.snapRetainCount", orNearest(0, maxInt), "3", "log and checkpoint are trimmed anyway"),
		none("autopurge.purgeInterval", anything, "0", "log and checkpoint are trimmed anyway"),
		none("snapSizeLimitInKb", property32(math.MinInt64, math.MaxInt64), "",
			"checkpoints write only changes; snapCount sets the interval"),
		none("txnLogSizeLimitInKb", property32(math.MinInt64, math.MaxInt64), "",
			"preAllocSize sets the size of a segment"),
		none("serializeLastProcessedZxid.enabled", boolean, "", "always on"),
		none("jute.maxbuffer.extrasize", property32(0, maxInt), "", "an implementation detail of the Java server"),
		none("maxResponseCacheSize", property32(math.MinInt32, maxInt), "",
			"an implementation detail of the Java server"),
		none("maxGetChildrenResponseCacheSize", property32(math.MinInt32, maxInt), "",
			"an implementation detail of the Java server"),
		none("advancedFlowControlEnabled", boolean, "", "see gozkd.clientMemoryKB"),
		none("fips-mode", boolean, "", "GODEBUG sets the FIPS mode of Go"),
		none("emulate353TTLNodes", boolean, "false", "an implementation detail of the Java server"),
		none("digest.enabled", boolean, "true", "always on"),
		none("closeSessionTxn.enabled", boolean, "true", "always on"),
		row("db.autocreate", boolean, "true", &c.Found,
			"false, recommended: servers without data wait for [an ensemble that has data](../guide/operate.md#a-majority-without-data)"),
	}
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
func endpointKeys(c *Config) []key {
	return []key{
		row(adminServer, unlessFalse, "true", &c.AdminEnabled, "[admin commands over HTTP](#http-ports)"),
		row("admin.serverAddress", orEmpty(host), "127.0.0.1", &c.AdminAddress,
			"address for admin commands; ZooKeeper's default is 0.0.0.0"),
		row("admin.serverPort", property32(-1, 65535), "8080", &c.AdminPort,
			"port for admin commands; 0: any free port; -1: none"),
		row("admin.commandURL", orEmpty(urlPath), "/commands", &c.AdminCommandURL, "path of the admin commands"),
		row("admin.idleTimeout", orNearest32(1, maxInt).instead("30000"), "30000", &c.AdminIdleTimeout,
			"ms until an idle HTTP connection is closed; 0 or less: the default"),
		row("admin.snapshot.enabled", boolean, "true", &c.AdminSnapshot, "the admin command snapshot"),
		none("admin.restore.enabled", boolean, "true", "use `gozkd restore`"),
		row("admin.rateLimiterIntervalInMS", orNearest32(0, maxInt), "300000", orNone(&c.AdminInterval, time.Millisecond),
			"ms between snapshots by admin command"),
		none("admin.*", anything, "", "an implementation detail of the Java server"),
		row("gozkd.admin.tokenFile", text, "", &c.AdminTokenFile,
			"file with a token of 16 characters or more for [admin commands](monitoring.md#authorization)"),
		row("gozkd.admin.open", strict, "false", &c.AdminOpen,
			"[authorization](monitoring.md#authorization) of admin commands as in ZooKeeper"),
		row("gozkd.pprof", strict, "false", &c.Pprof, "profiles at `/debug/pprof/`, for this machine only"),

		row("metricsProvider.className", oneOf(defaultProvider, nullProvider, prometheusProvider), defaultProvider, &c.MetricsProvider,
			"[Prometheus](monitoring.md#metrics) serves `/metrics`, the others nothing"),
		row("metricsProvider.httpHost", host, "0.0.0.0", &c.MetricsHost, "address for Prometheus").of(metricsKeys),
		row("metricsProvider.httpPort", integer(-1, 65535), "7000", &c.MetricsPort,
			"port for Prometheus; 0: any free port; -1: none").of(metricsKeys),
		row("metricsProvider.exportJvmInfo", boolean, "true", &c.MetricsRuntime,
			"also metrics `go_*` and `process_*`").of(metricsKeys),
		none("metricsProvider.*", anything, "", "an implementation detail of the Java server"),

		live("gozkd.logLevel", oneOf("trace", "debug", "info", "warn", "error", "off"), "info", &c.LogLevel,
			"log level"),
		live("gozkd.slowRequestThresholdMs", property32(0, maxInt), "0", &c.Server.SlowRequest,
			"ms above which a request is [logged](monitoring.md#slow-requests); 0: none"),
		row("gozkd.zookeeperPasswords", strict, "false", &c.Server.ZooKeeperPasswords,
			"sessions that begin here [can go on on a ZooKeeper](../guide/moving.md#a-trial-with-a-way-back); "+
				"whoever knows the id of one can take it over"),
		row("gozkd.refuseUnreadable", strict, "false", &c.Server.RefuseUnreadable,
			"refuse (-5) writes that make a znode or list of children longer than `jute.maxbuffer`"),
		live("gozkd.clientMemoryKB", property32(0, maxInt), "0", &c.Server.ClientMemory,
			"KiB of unread replies and incomplete requests, above which the slowest clients are disconnected; at least 8 times `jute.maxbuffer`. 0: an eighth of the memory (GOMEMLIMIT, container or machine), at most 128 MiB"),
		live("gozkd.watchMemoryKB", property32(0, maxInt), "0", &c.Server.WatchMemory,
			"KiB of [watches](../internals/server.md#bounds), above which the addresses with most are disconnected. 0: a quarter of the memory, at most 192 MiB: a million watches"),
		row("gozkd.watchReplayKB", property32(-1, maxInt), "0", &c.Server.WatchReplay,
			"KiB of changes that the server remembers, to send clients that reconnect the events that their "+
				"[persistent watches](../adr/0017-replay.md) missed. 0: a 64th of the memory, at most 8 MiB; -1: none"),
		row("gozkd.dataLimitKB", sizeOrPercent, "0", share{&c.Server.DataLimit, &c.Server.DataLimitPercent},
			"KiB of memory in use, or a percentage of GOMEMLIMIT, which `serve` sets, above which requests that "+
				"[add data](../guide/capacity.md) are refused (-125); below 16384 hardly any data fit. 0: 75%"),
		row("gozkd.diskReserveKB", property32(-1, maxInt), "0", &c.Server.DiskReserve,
			"KiB that must be free on the disks of `dataDir` and `dataLogDir`, besides what checkpoints need, "+
				"for data to be added, on any server. 0: twice `preAllocSize`, at most a quarter of the disk, on [a "+
				"majority](../guide/capacity.md#full-disks) of the servers; -1: the disks of this server do not count"),
		live("gozkd.enforceBudgets", strict, "true", not{&c.Server.IgnoreBudgets},
			"false: [budgets](../guide/capacity.md#budgets-of-tenants) slow nobody down"),
		live("gozkd.budgetWaitMs", property32(1, maxInt), "1000", &c.Server.BudgetWait,
			"ms for which a request over a [budget](../adr/0015-budgets-per-tenant.md) waits before it fails (-127); "+
				"at most a third of its session's timeout"),
		live("gozkd.maxFeatureLevel", integer(0, maxInt), "0", &c.Server.MaxFeatureLevel,
			"the highest [feature level](../guide/operate.md#upgrade-one-server-at-a-time) to activate; 0: the newest"),
		row("gozkd.peer.secretFile", text, "", &c.PeerSecretFile,
			"file with the [secret](../guide/operate.md#the-peer-port), 16 bytes or more, unreadable for others"),
		row("gozkd.peer.secretMode", oneOf("require", "prefer"), "require", not{&c.Server.PeerSecretOptional},
			"prefer: accept servers without the secret, too"),
		row("gozkd.scale.url", httpURL, "", &c.ScaleURL,
			"says how many servers the ensemble should have, as Kubernetes does: "+
				"server N [joins or leaves](../adr/0016-scaling.md)"),
		row("datadir.autocreate", boolean, "true", &c.AutoCreate, "false: a missing data directory is an error"),
	}
}

// Prometheus reports whether to serve metrics for Prometheus.
func (c Config) Prometheus() bool { return c.MetricsProvider == prometheusProvider }
