package config

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/sasl"
)

// confDir is the variable that names the directory of zoo.cfg in a container.
const confDir = "ZOO_CONF_DIR"

// The images that understand a variable.
const (
	official  = "official"
	bitnami   = "Bitnami"
	both      = "both" // official and bitnami
	confluent = "Confluent"
)

// variable is a variable of ZooKeeper's container images. NAME_FILE may name a file with the value.
type variable struct {
	name string
	of   string // official, bitnami, both or confluent
	// key is the key that the variable sets. read converts the value, or returns false; without
	// read the value is used unchanged.
	key  string
	read func(string) (string, bool)
	// image is the default in a container, that is, if ZOO_CONF_DIR is set and there is no zoo.cfg.
	image  string
	status status
	note   string // empty: the effect is that of the key
	// only names a key that variables above must have enabled for this one to apply.
	only string
	// always: the variable applies even if there is a zoo.cfg.
	always bool
}

// variables lists all variables, in the order of docs/guide/container.md. It is read-only.
var variables = []variable{
	{name: confDir, of: official, status: works, always: true, note: "the directory of `zoo.cfg`. `ZOOCFGDIR` and `ZOOCFG` work as well"},
	{name: "ZOO_DATA_DIR", of: official, key: "dataDir", status: works},
	{name: "ZOO_DATA_LOG_DIR", of: both, key: "dataLogDir", status: works},
	{name: "ZOO_LOG_DIR", of: official, status: harmless, always: true, note: "the log goes to standard error"},
	{name: "ZOO_MY_ID", of: official, key: "myid", image: "1", status: works, always: true, note: "the number of this server; a file `myid` in the data directory must agree"},
	{name: "ZOO_SERVER_ID", of: bitnami, key: "myid", status: works, always: true, note: "as ZOO_MY_ID"},
	{name: "ZOO_SERVERS", of: both, image: "server.1=localhost:2888:3888;2181", status: works, note: "the servers: `server.N=host:2888:3888;2181`, separated by white space, or `host:2888:3888::N`, separated by white space, `,` or `;`, where a single one is a standalone server. The host 0.0.0.0 of the server's own entry means all addresses"},
	{name: "ZOO_PORT_NUMBER", of: bitnami, key: "clientPort", status: works},
	{name: "ZOO_PORT", of: official, key: "clientPort", status: works, note: "as in images of ZooKeeper 3.4; `tcp://…`, which Kubernetes sets for a service called zoo, has no effect"},
	{name: "ZOO_TICK_TIME", of: both, key: "tickTime", image: "2000", status: works},
	{name: "ZOO_INIT_LIMIT", of: both, key: "initLimit", image: "5", status: works},
	{name: "ZOO_SYNC_LIMIT", of: both, key: "syncLimit", image: "2", status: works},
	{name: "ZOO_MAX_CLIENT_CNXNS", of: both, key: "maxClientCnxns", image: "60", status: works},
	{name: "ZOO_MAX_CNXNS", of: bitnami, key: "maxCnxns", status: works},
	{name: "ZOO_MAX_SESSION_TIMEOUT", of: bitnami, key: "maxSessionTimeout", status: works},
	{name: "ZOO_STANDALONE_ENABLED", of: official, key: "standaloneEnabled", image: "true", status: works},
	{name: "ZOO_4LW_COMMANDS_WHITELIST", of: both, key: "4lw.commands.whitelist", status: works},
	{name: "ZOO_ADMINSERVER_ENABLED", of: official, key: adminServer, image: "true", status: works},
	{name: "ZOO_ENABLE_ADMIN_SERVER", of: bitnami, key: adminServer, read: yes("true", "false"), status: works},
	{name: "ZOO_ADMIN_SERVER_ADDRESS", of: bitnami, key: "admin.serverAddress", image: "0.0.0.0", status: works, note: "by default all addresses of the container"},
	{name: "ZOO_ADMIN_SERVER_PORT_NUMBER", of: bitnami, key: "admin.serverPort", status: works},
	{name: "ZOO_ENABLE_PROMETHEUS_METRICS", of: bitnami, key: "metricsProvider.className", read: yes(prometheusProvider, defaultProvider), status: works},
	{name: "ZOO_PROMETHEUS_METRICS_PORT_NUMBER", of: bitnami, key: "metricsProvider.httpPort", status: works},
	{name: "ZOO_RECONFIG_ENABLED", of: bitnami, key: "reconfigEnabled", read: yes("true", "false"), status: works},
	{name: "ZOO_LISTEN_ALLIPS_ENABLED", of: bitnami, key: "quorumListenOnAllIPs", read: yes("true", "false"), status: works},
	{name: "ZOO_PRE_ALLOC_SIZE", of: bitnami, key: "preAllocSize", status: works},
	{name: "ZOO_SNAPCOUNT", of: bitnami, key: "snapCount", status: works},
	{name: "ZOO_LOG_LEVEL", of: bitnami, key: "gozkd.logLevel", read: javaLevel, status: works, note: "ALL, TRACE, DEBUG, INFO, WARN, ERROR, FATAL or OFF"},
	{name: "ZOO_LOG4J_PROP", of: official, key: "gozkd.logLevel", read: javaLevel, status: works, note: "its first word is the level; in images of ZooKeeper before 3.8"},
	{name: "ZOO_CFG_EXTRA", of: official, status: works, note: "keys of `zoo.cfg`: `key=value`, separated by white space"},
	{name: "ZOO_CFG_*", of: bitnami, status: works, note: "the key in the variable's name, with `_` for `.`: `ZOO_CFG_admin_idleTimeout`"},
	{name: "SERVER_JVMFLAGS", of: both, status: works, always: true, note: "`-Dkey=value` sets keys that `zoo.cfg` does not set; other JVM flags have no effect"},
	{name: "JVMFLAGS", of: both, status: works, always: true, note: "the same, after SERVER_JVMFLAGS"},
	{name: "ZOO_DATADIR_AUTOCREATE_DISABLE", of: official, key: "datadir.autocreate", read: func(v string) (string, bool) { return "false", true }, status: works, note: "if set to any value, a missing data directory is an error"},
	{name: "ZOO_PEER_TYPE", of: bitnami, key: "peerType", status: harmless, note: "ZOO_SERVERS contains the role"},
	{name: "ZOO_AUTOPURGE_PURGEINTERVAL", of: official, key: "autopurge.purgeInterval", status: harmless, note: "nothing needs purging"},
	{name: "ZOO_AUTOPURGE_INTERVAL", of: bitnami, key: "autopurge.purgeInterval", status: harmless, note: "nothing needs purging"},
	{name: "ZOO_AUTOPURGE_SNAPRETAINCOUNT", of: official, key: "autopurge.snapRetainCount", status: harmless, note: "nothing needs purging"},
	{name: "ZOO_AUTOPURGE_RETAIN_COUNT", of: bitnami, key: "autopurge.snapRetainCount", status: harmless, note: "nothing needs purging"},
	{name: "ZK_SERVER_HEAP", of: official, status: harmless, always: true, note: "there is no JVM; `GOMEMLIMIT` bounds the memory"},
	{name: "ZOO_HEAP_SIZE", of: bitnami, status: harmless, always: true, note: "there is no JVM; `GOMEMLIMIT` bounds the memory"},
	{name: "ZOO_HC_TIMEOUT", of: bitnami, status: harmless, always: true, note: "Docker sets the timeout of the HEALTHCHECK"},
	{name: "ZOO_FIPS_MODE", of: bitnami, status: harmless, always: true, note: "`GODEBUG` sets the FIPS mode of Go"},
	{name: "ALLOW_ANONYMOUS_LOGIN", of: bitnami, status: harmless, always: true, note: "connections are not restricted"},
	{name: "ALLOW_EMPTY_PASSWORD", of: bitnami, status: harmless, always: true, note: "the same"},
	{name: "ZOO_TLS_CLIENT_ENABLE", of: bitnami, key: "secureClientPort", read: yes("3181", "0"), status: works, note: "port 3181; the variables below apply only with it"},
	{name: "ZOO_TLS_PORT_NUMBER", of: bitnami, key: "secureClientPort", only: "secureClientPort", status: works},
	{name: "ZOO_TLS_CLIENT_AUTH", of: bitnami, key: "ssl.clientAuth", only: "secureClientPort", status: works},
	{name: "ZOO_TLS_CLIENT_KEYSTORE_FILE", of: bitnami, key: "ssl.keyStore.location", only: "secureClientPort", status: works},
	{name: "ZOO_TLS_CLIENT_KEYSTORE_PASSWORD", of: bitnami, key: "ssl.keyStore.password", only: "secureClientPort", status: works},
	{name: "ZOO_TLS_CLIENT_TRUSTSTORE_FILE", of: bitnami, key: "ssl.trustStore.location", only: "secureClientPort", status: works},
	{name: "ZOO_TLS_CLIENT_TRUSTSTORE_PASSWORD", of: bitnami, key: "ssl.trustStore.password", only: "secureClientPort", status: works},
	{name: "ZOO_TLS_QUORUM_ENABLE", of: bitnami, key: "sslQuorum", read: yes("true", "false"), status: works, note: "the variables below apply only with it"},
	{name: "ZOO_TLS_QUORUM_CLIENT_AUTH", of: bitnami, key: "ssl.quorum.clientAuth", only: "sslQuorum", status: works},
	{name: "ZOO_TLS_QUORUM_KEYSTORE_FILE", of: bitnami, key: "ssl.quorum.keyStore.location", only: "sslQuorum", status: works},
	{name: "ZOO_TLS_QUORUM_KEYSTORE_PASSWORD", of: bitnami, key: "ssl.quorum.keyStore.password", only: "sslQuorum", status: works},
	{name: "ZOO_TLS_QUORUM_TRUSTSTORE_FILE", of: bitnami, key: "ssl.quorum.trustStore.location", only: "sslQuorum", status: works},
	{name: "ZOO_TLS_QUORUM_TRUSTSTORE_PASSWORD", of: bitnami, key: "ssl.quorum.trustStore.password", only: "sslQuorum", status: works},
	{name: "ZOO_ENABLE_AUTH", of: bitnami, status: works, note: "yes: the users of ZOO_SERVER_USERS may authenticate by SASL. `ZOO_CFG_EXTRA` with `sessionRequireClientSASLAuth=true` demands it"},
	{name: "ZOO_SERVER_USERS", of: bitnami, status: works, note: "their names, separated by commas, semicolons or spaces"},
	{name: "ZOO_SERVER_PASSWORDS", of: bitnami, status: works, note: "their passwords, in the same order"},
	{name: "ZOO_ENABLE_QUORUM_AUTH", of: bitnami, read: yes("true", "false"), status: refused, note: "servers prove who they are by `gozkd.peer.secretFile` or by TLS"},
	{name: "ZOO_TLS_*", of: bitnami, status: harmless, always: true, note: "other variables of TLS have no effect"},
	{name: "ZOO_CLIENT_*", of: bitnami, status: harmless, always: true, note: "list the user in ZOO_SERVER_USERS"},
	{name: "ZOO_QUORUM_*", of: bitnami, status: harmless, always: true, note: "no effect without ZOO_ENABLE_QUORUM_AUTH"},
	{name: "ZOOKEEPER_*", of: confluent, status: works,
		note: "the key in the variable's name, in capital letters with `_` between its words: " +
			"`ZOOKEEPER_MAX_CLIENT_CNXNS`. As in that image, only with one of `ZOOKEEPER_CLIENT_PORT` and " +
			"`ZOOKEEPER_SECURE_CLIENT_PORT`. Defaults are those of the official image"},
	{name: "ZOOKEEPER_SERVER_ID", of: confluent, key: "myid", status: works, always: true, note: "as ZOO_MY_ID"},
	{name: "ZOOKEEPER_SERVERS", of: confluent, status: works,
		note: "the servers from 1 on: `host:2888:3888`, separated by `;`"},
	{name: "ZOOKEEPER_LOG4J_ROOT_LOGLEVEL", of: confluent, key: "gozkd.logLevel", read: javaLevel, status: works},
	{name: "KAFKA_OPTS", of: confluent, status: works, always: true,
		note: "as SERVER_JVMFLAGS, beside `ZOOKEEPER_CLIENT_PORT` or `ZOOKEEPER_SECURE_CLIENT_PORT`"},
	{name: "KAFKA_HEAP_OPTS", of: confluent, status: harmless, always: true,
		note: "there is no JVM; `GOMEMLIMIT` bounds the memory"},
	{name: "ZOOKEEPER_TOOLS_LOG4J_LOGLEVEL", of: confluent, status: harmless, always: true,
		note: "the tools have no log"},
}

// yes parses a boolean as Bitnami's scripts do: anything else is no.
func yes(yes, no string) func(string) (string, bool) {
	return func(v string) (string, bool) {
		if v == "1" || strings.EqualFold(v, "yes") || strings.EqualFold(v, "true") {
			return yes, true
		}
		return no, true
	}
}

// javaLevel converts the level of "INFO", for log4j or logback, and of "INFO, CONSOLE".
func javaLevel(v string) (string, bool) {
	level, _, _ := strings.Cut(strings.ToLower(v), ",")
	switch level = trim(level); level {
	case "all":
		return "trace", true
	case "fatal":
		return "error", true
	case "trace", "debug", "info", "warn", "error", "off":
		return level, true
	default:
		return "", false
	}
}

// container reads the environment by the table.
type container struct {
	r      *resolver
	getenv func(string) string
	names  []string // names of all environment variables
	image  bool     // apply the defaults of the official image
}

// value returns the value of a variable or of the file that NAME_FILE names, and its origin.
func (c container) value(name string) (value string, from Origin) {
	from = Origin{Source: name, layer: fromEnvironment}
	value = trim(c.getenv(name))
	file := trim(c.getenv(name + "_FILE"))
	switch {
	case file == "":
		return value, from
	case value != "":
		c.r.problem(from, "", "is set, and so is %s_FILE: remove one of them", name)
		return "", from
	}
	from.Source = name + "_FILE"
	data, err := os.ReadFile(file)
	if err != nil {
		c.r.problem(from, "", "%v", err)
	}
	return trim(string(data)), from
}

// read adds the settings of all variables. beside is the path of the zoo.cfg, or empty.
func (c container) read(beside string) {
	var idle []string
	for _, v := range variables {
		if strings.HasSuffix(v.name, "*") || v.name == "ZOO_SERVERS" || v.key == "" && v.status != refused {
			if beside != "" && !v.always && v.of != confluent && trim(c.getenv(v.name)+c.getenv(v.name+"_FILE")) != "" {
				idle = append(idle, v.name)
			}
			continue
		}
		value, from := c.value(v.name)
		if v.only != "" && isOff(c.r.won[v.only].value) {
			continue
		}
		switch {
		case value == "" && c.image && v.image != "" && !c.given(v.key):
			value, from = v.image, Origin{Source: "the default of " + v.name, layer: fromImage}
		case value == "":
			continue
		case beside != "" && !v.always:
			if v.name != "ZOO_DATA_DIR" && v.name != "ZOO_DATA_LOG_DIR" { // set by the image itself
				idle = append(idle, v.name)
			}
			continue
		}
		c.one(v, value, from)
	}
	if beside != "" {
		for _, name := range c.names {
			ofBitnami := strings.HasPrefix(name, "ZOO_CFG_") && !strings.HasPrefix(name, "ZOO_CFG_EXTRA")
			if ofBitnami || c.isConfluent() && c.byName(name) {
				idle = append(idle, name)
			}
		}
		if len(idle) > 0 {
			c.r.warnings = append(c.r.warnings, fmt.Sprintf("%s: no effect, as in ZooKeeper's images, because %s exists", strings.Join(idle, ", "), beside))
		}
		return
	}
	c.keys()
	if c.isConfluent() {
		c.confluent()
	}
	c.auth()
	extra, from := c.value("ZOO_CFG_EXTRA")
	c.words(extra, from, "", "key=value, separated by white space")
	c.servers()
	c.unknown()
}

// given reports whether any variable sets the key.
func (c container) given(key string) bool {
	return slices.ContainsFunc(variables, func(v variable) bool {
		return v.key == key && trim(c.getenv(v.name)+c.getenv(v.name+"_FILE")) != ""
	})
}

func (c container) one(v variable, value string, from Origin) {
	if v.name == "ZOO_PORT" && strings.Contains(value, "://") {
		c.r.warnings = append(c.r.warnings, fmt.Sprintf("%s: %s has no effect: Kubernetes and Docker set that for a service called zoo", from, value))
		return
	}
	if v.read != nil {
		key, ok := v.read(value)
		if !ok {
			c.r.problem(from, "", "is %q; allowed: %s", value, v.note)
			return
		}
		if v.status == refused {
			if key == "true" {
				c.r.problem(from, "", "is %s, which this version does not support: %s", value, v.note)
			}
			return
		}
		value = key
	}
	c.r.set(setting{key: v.key, value: value, from: from})
}

// keys adds the settings of Bitnami's ZOO_CFG_* variables.
func (c container) keys() {
	for _, name := range c.names {
		variable, file := strings.CutSuffix(name, "_FILE") // no key ends in _FILE
		key, ok := strings.CutPrefix(variable, "ZOO_CFG_")
		if !ok || key == "EXTRA" || file && slices.Contains(c.names, variable) {
			continue
		}
		value, from := c.value(variable)
		if value == "" && trim(c.getenv(variable+"_FILE")) != "" {
			continue // as without the variable; a file that cannot be read is a problem already
		}
		c.r.set(setting{key: strings.ReplaceAll(key, "_", "."), value: value, from: from})
	}
}

// isConfluent reports whether the variables are those of Confluent's image, which demands one of
// these ports. Outside of containers the prefix belongs to clients of ZooKeeper.
func (c container) isConfluent() bool {
	ports := []string{"ZOOKEEPER_CLIENT_PORT", "ZOOKEEPER_SECURE_CLIENT_PORT"}
	return c.getenv(confDir) != "" && slices.ContainsFunc(ports, func(name string) bool {
		value := trim(c.getenv(name) + c.getenv(name+"_FILE"))
		// Kubernetes sets tcp://… for a service called zookeeper-client.
		return value != "" && !strings.Contains(value, "://")
	})
}

// byName reports whether the name of a variable of Confluent's image says its effect.
func (c container) byName(name string) bool {
	return strings.HasPrefix(name, "ZOOKEEPER_") && !slices.ContainsFunc(variables, func(v variable) bool {
		return (v.key != "" || v.status == harmless) && (name == v.name || name == v.name+"_FILE")
	})
}

// confluent adds the settings of Confluent's ZOOKEEPER_* variables.
func (c container) confluent() {
	for _, name := range c.names {
		variable, file := strings.CutSuffix(name, "_FILE")
		if !c.byName(name) || file && slices.Contains(c.names, variable) {
			continue
		}
		value, from := c.value(variable)
		switch written := strings.TrimPrefix(variable, "ZOOKEEPER_"); written {
		case "SERVERS", "GROUPS", "WEIGHTS":
			for i, one := range strings.FieldsFunc(value, func(r rune) bool { return r == ';' }) {
				c.r.set(setting{key: fmt.Sprint(strings.ToLower(written[:len(written)-1]), ".", i+1), value: trim(one), from: from})
			}
		default:
			key := confluentKey(written)
			if key == "" || strings.Contains(value, "://") {
				c.r.warnings = append(c.r.warnings, name+": is not a variable of gozkd and has no effect")
				continue
			}
			c.r.set(setting{key: key, value: value, from: from})
		}
	}
}

// confluentKey returns the key of which Confluent's image has the words in capital letters, or "".
func confluentKey(written string) string {
	if provider, ok := strings.CutPrefix(written, "AUTH_PROVIDER_"); ok {
		return "authProvider." + strings.ToLower(provider)
	}
	bare := func(name string) string {
		name = strings.ToUpper(strings.NewReplacer("_", "", ".", "").Replace(name))
		return strings.ReplaceAll(name, "OCPS", "OCSP") // a slip of that image
	}
	i := slices.IndexFunc(keys, func(k key) bool { return bare(k.name) == bare(written) })
	if i < 0 {
		return ""
	}
	return keys[i].name
}

// auth adds the users of Bitnami's ZOO_SERVER_USERS.
func (c container) auth() {
	enabled, from := c.value("ZOO_ENABLE_AUTH")
	if on, _ := yes("true", "")(enabled); on == "" {
		return
	}
	split := func(name string) []string {
		value, _ := c.value(name)
		return strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ';' || r == ' ' })
	}
	names, passwords := split("ZOO_SERVER_USERS"), split("ZOO_SERVER_PASSWORDS")
	if len(names) == 0 || len(names) != len(passwords) {
		c.r.problem(from, "", "is %s, but ZOO_SERVER_USERS has %d names and ZOO_SERVER_PASSWORDS has %d passwords: there must be as many, and one at least", enabled, len(names), len(passwords))
		return
	}
	c.r.users = make(sasl.DigestUsers)
	for i, name := range names {
		c.r.users.Set(name, passwords[i])
	}
	c.r.set(setting{key: "authProvider.1", value: saslProvider, from: from})
}

// words adds settings key=value whose keys have a prefix.
func (c container) words(words string, from Origin, prefix, allowed string) {
	for word := range strings.FieldsSeq(words) {
		key, value, ok := strings.Cut(word, "=")
		if !ok || key == "" || !strings.HasPrefix(key, prefix) {
			c.r.problem(from, "", "contains %q; allowed: %s", word, allowed)
			continue
		}
		c.r.set(setting{key: key, value: value, from: from})
	}
}

// servers adds the server lines of ZOO_SERVERS, in the form of either image.
func (c container) servers() {
	text, from := c.value("ZOO_SERVERS")
	port := "2181"
	if w, ok := c.r.won["clientPort"]; ok {
		port = w.value
	}
	if text == "" && c.image && !slices.ContainsFunc(c.r.order, func(key string) bool { return key == "dynamicConfigFile" || isMembership(key) }) {
		text, from = "server.1=localhost:2888:3888;"+port, Origin{Source: "the default of ZOO_SERVERS", layer: fromImage}
	}
	if !strings.Contains(text, "=") {
		c.bitnamiServers(text, port, from)
		return
	}
	if strings.Contains(text, ",server.") {
		c.r.problem(from, "", "has commas between server lines; separate them by white space")
		return
	}
	c.words(text, from, "server.", "server.N="+serverlist.LineFormat+", separated by spaces")
}

// bitnamiServers adds servers in the form host:port:port[:role][::N]. Without N they are numbered
// from 1. A single server is standalone.
func (c container) bitnamiServers(text, port string, from Origin) {
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ';' || r <= ' ' })
	c.r.exposed = c.r.exposed || len(words) > 0
	if len(words) == 1 {
		return
	}
	for i, word := range words {
		line, id, ok := strings.Cut(word, "::")
		if !ok {
			id = fmt.Sprint(i + 1)
		}
		c.r.set(setting{key: "server." + id, value: line + ";" + port, from: from})
	}
}

// unknown warns about variables with the prefix ZOO_ that have no effect.
func (c container) unknown() {
	for _, name := range c.names {
		known := !strings.HasPrefix(name, "ZOO_") || slices.ContainsFunc(variables, func(v variable) bool {
			prefix, pattern := strings.CutSuffix(v.name, "*")
			return name == v.name || name == v.name+"_FILE" || pattern && strings.HasPrefix(name, prefix)
		})
		if !known {
			c.r.warnings = append(c.r.warnings, name+": is not a variable of gozkd and has no effect")
		}
	}
}
