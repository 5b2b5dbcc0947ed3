package config

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
	{name: "admin.serverAddress", kind: host, def: "127.0.0.1", status: works, note: "address to listen on for admin commands; 0.0.0.0, ZooKeeper's default, means all. The commands reveal paths, addresses and session ids",
		field: func(c *Config) any { return &c.AdminAddress }},
	{name: "admin.serverPort", kind: integer(0, 65535), def: "8080", status: works, note: "port for admin commands; 0 means any free port, which the port file contains",
		field: func(c *Config) any { return &c.AdminPort }},
	{name: "admin.commandURL", kind: urlPath, def: "/commands", status: works, note: "path of the admin commands",
		field: func(c *Config) any { return &c.AdminCommandURL }},
	{name: "admin.idleTimeout", kind: property32(1, maxInt), def: "30000", status: works, note: "ms; how long an HTTP connection may be idle",
		field: func(c *Config) any { return &c.AdminIdleTimeout }},
	{name: "admin.snapshot.enabled", kind: boolean, def: "true", status: works, note: "the admin command snapshot, for clients with all permissions on the root znode",
		field: func(c *Config) any { return &c.AdminSnapshot }},
	{name: "admin.restore.enabled", kind: boolean, def: "true", status: harmless, note: "the admin command restore is not supported: use `gozkd restore`"},
	{name: "admin.rateLimiterIntervalInMS", kind: property32(0, maxInt), def: "300000", status: works, note: "ms; minimum interval between two snapshots by admin command; 0 means none",
		field: func(c *Config) any { return &c.AdminInterval }},
	{name: "admin.forceHttps", kind: boolean, def: "false", status: refused, fine: []string{"false"}, note: "TLS is not supported yet: secrets would be sent unencrypted"},
	{name: "admin.needClientAuth", kind: boolean, def: "false", status: refused, fine: []string{"false"}, note: "TLS is not supported yet: clients that it must refuse would be admitted"},
	{name: "admin.portUnification", kind: boolean, def: "false", status: later, fine: []string{"false"}, note: "TLS is not supported yet: only plain HTTP is served"},
	{name: "admin.*", kind: anything, status: harmless, note: "an implementation detail of the Java server"},
	{name: "gozkd.pprof", kind: boolean, def: "false", status: works, note: "profiles at `/debug/pprof/` of the admin server, only for clients on this machine",
		field: func(c *Config) any { return &c.Pprof }},

	{name: "metricsProvider.className", kind: oneOf(defaultProvider, nullProvider, prometheusProvider), def: defaultProvider, status: works, note: "the Prometheus class serves `/metrics` on its port; the others serve nothing. A port that is taken gives a warning",
		field: func(c *Config) any { return &c.MetricsProvider }},
	{name: "metricsProvider.httpHost", kind: host, def: "0.0.0.0", status: works, note: "address to listen on for Prometheus; 0.0.0.0 means all",
		field: func(c *Config) any { return &c.MetricsHost }},
	{name: "metricsProvider.httpPort", kind: integer(0, 65535), def: "7000", status: works, note: "port for Prometheus; 0 means any free port, which the port file contains",
		field: func(c *Config) any { return &c.MetricsPort }},
	{name: "metricsProvider.exportJvmInfo", kind: boolean, def: "true", status: works, note: "also metrics of the runtime and the process: `go_*` and `process_*`, because there is no JVM",
		field: func(c *Config) any { return &c.MetricsRuntime }},
	{name: "metricsProvider.httpsPort", kind: integer(0, 65535), status: refused, note: "TLS is not supported yet: nothing would be served"},
	{name: "metricsProvider.ssl.*", kind: anything, status: later, note: "TLS is not supported yet", secret: true},
	{name: "metricsProvider.*", kind: anything, status: harmless, note: "threads and queues of the Java server"},

	{name: "gozkd.logLevel", kind: oneOf("trace", "debug", "info", "warn", "error", "off"), def: "info", status: works, reload: true, note: "log level; also the flag `--log-level`",
		field: func(c *Config) any { return &c.LogLevel }},
	{name: "gozkd.slowRequestThresholdMs", kind: property32(0, maxInt), def: "0", status: works, reload: true, note: "ms; a longer request is logged with the duration of each stage; 0 disables that",
		field: func(c *Config) any { return &c.SlowRequest }},
	{name: "gozkd.maxFeatureLevel", kind: integer(0, maxInt), def: "0", status: works, reload: true, note: "the highest feature level that this server agrees to activate; 0 means the highest that it supports. Holds an [upgrade](../guide/operate.md#upgrade-one-server-at-a-time) back, so that the previous version can be started again",
		field: func(c *Config) any { return &c.MaxFeatureLevel }},
	{name: "datadir.autocreate", kind: boolean, def: "true", status: works, note: "false: a missing data directory is an error",
		field: func(c *Config) any { return &c.AutoCreate }},
}

// Prometheus reports whether to serve metrics for Prometheus.
func (c Config) Prometheus() bool { return c.MetricsProvider == prometheusProvider }
