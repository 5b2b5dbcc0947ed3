package config

import "time"

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
	{name: adminServer, kind: boolean, def: "true", status: works, note: "the admin commands over HTTP. Not by default, unless another admin key is set, on servers that are one of many on a machine: with `--memory`, `--port-file` or client port 0; never with `--ensemble`. A taken port is a warning",
		bind: bindBool("true", "false", func(c *Config) *bool { return &c.AdminEnabled })},
	{name: "admin.serverAddress", kind: host, def: "127.0.0.1", status: works, note: "address to listen on for admin commands; 0.0.0.0, ZooKeeper's default, means all. Who reaches it sees paths, addresses and session ids",
		bind: bind(func(c *Config) *string { return &c.AdminAddress })},
	{name: "admin.serverPort", kind: integer(0, 65535), def: "8080", status: works, note: "port for admin commands; 0 means any free one, which the port file names",
		bind: bind(func(c *Config) *int { return &c.AdminPort })},
	{name: "admin.commandURL", kind: urlPath, def: "/commands", status: works, note: "path of the admin commands",
		bind: bind(func(c *Config) *string { return &c.AdminCommandURL })},
	{name: "admin.idleTimeout", kind: property32(1, maxInt), def: "30000", status: works, note: "ms that an HTTP connection may be idle",
		bind: bind(func(c *Config) *time.Duration { return &c.AdminIdleTimeout })},
	{name: "admin.snapshot.enabled", kind: boolean, def: "true", status: works, note: "the admin command snapshot, for who has all permissions on the root znode",
		bind: bindBool("true", "false", func(c *Config) *bool { return &c.AdminSnapshot })},
	{name: "admin.restore.enabled", kind: boolean, def: "true", status: harmless, note: "there is no admin command restore: `gozkd restore` begins with a backup"},
	{name: "admin.rateLimiterIntervalInMS", kind: property32(0, maxInt), def: "300000", status: works, note: "ms between two snapshots by admin command; 0 means none",
		bind: bind(func(c *Config) *time.Duration { return &c.AdminInterval })},
	{name: "admin.forceHttps", kind: boolean, def: "false", status: refused, fine: []string{"false"}, note: "there is no TLS yet: what was to be secret would be readable"},
	{name: "admin.needClientAuth", kind: boolean, def: "false", status: refused, fine: []string{"false"}, note: "there is no TLS yet: whom it should keep out would get in"},
	{name: "admin.portUnification", kind: boolean, def: "false", status: later, fine: []string{"false"}, note: "there is no TLS yet: only plain HTTP is answered"},
	{name: "admin.*", kind: anything, status: harmless, note: "a detail of the Java server"},
	{name: "gozkd.pprof", kind: boolean, def: "false", status: works, note: "profiles of the process at `/debug/pprof/` of the admin server, for clients on this machine only",
		bind: bindBool("true", "false", func(c *Config) *bool { return &c.Pprof })},

	{name: "metricsProvider.className", kind: oneOf(defaultProvider, nullProvider, prometheusProvider), def: defaultProvider, status: works, note: "the class of Prometheus opens its port, which answers `/metrics`; the others open none. A taken port is a warning",
		bind: bind(func(c *Config) *string { return &c.MetricsProvider })},
	{name: "metricsProvider.httpHost", kind: host, def: "0.0.0.0", status: works, note: "address to listen on for Prometheus; 0.0.0.0 means all",
		bind: bind(func(c *Config) *string { return &c.MetricsHost })},
	{name: "metricsProvider.httpPort", kind: integer(0, 65535), def: "7000", status: works, note: "port for Prometheus; 0 means any free one, which the port file names",
		bind: bind(func(c *Config) *int { return &c.MetricsPort })},
	{name: "metricsProvider.exportJvmInfo", kind: boolean, def: "true", status: works, note: "also tell of the runtime and the process: `go_*` and `process_*`, since there is no JVM",
		bind: bindBool("true", "false", func(c *Config) *bool { return &c.MetricsRuntime })},
	{name: "metricsProvider.httpsPort", kind: integer(0, 65535), status: refused, note: "there is no TLS yet: nobody would answer there"},
	{name: "metricsProvider.ssl.*", kind: anything, status: later, note: "there is no TLS yet", secret: true},
	{name: "metricsProvider.*", kind: anything, status: harmless, note: "threads and queues of the Java server"},

	{name: "gozkd.logLevel", kind: oneOf("trace", "debug", "info", "warn", "error", "off"), def: "info", status: works, reload: true, note: "what is logged; `--log-level` is the flag for it",
		bind: bind(func(c *Config) *string { return &c.LogLevel })},
	{name: "gozkd.slowRequestThresholdMs", kind: property32(0, maxInt), def: "0", status: works, reload: true, note: "ms; a request that takes longer is logged, with the time of each of its stages; 0 means none",
		bind: bind(func(c *Config) *time.Duration { return &c.SlowRequest })},
	{name: "datadir.autocreate", kind: boolean, def: "true", status: works, note: "false: a data directory that is missing is an error",
		bind: bindBool("true", "false", func(c *Config) *bool { return &c.AutoCreate })},
}

// Prometheus reports whether to serve metrics for Prometheus.
func (c Config) Prometheus() bool { return c.MetricsProvider == prometheusProvider }
