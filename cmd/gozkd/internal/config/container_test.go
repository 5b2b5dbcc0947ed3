package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// inImage returns the environment of the Dockerfile.
func inImage(t *testing.T, more map[string]string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	env := map[string]string{"ZOO_CONF_DIR": dir, "ZOO_DATA_DIR": filepath.Join(dir, "data"), "ZOO_DATA_LOG_DIR": filepath.Join(dir, "datalog")}
	for k, v := range more {
		env[k] = v
	}
	return env
}

// The unmodified image is a standalone server with the defaults of the official image.
func TestContainer_Defaults(t *testing.T) {
	env := inImage(t, nil)
	inv := good(t, "", env, "start-foreground")
	c := inv.Config
	if len(c.Members) > 0 || c.MyID != 1 || c.ListenAddress() != ":2181" || c.Server.Dir != env["ZOO_DATA_DIR"] || c.Server.LogDir != env["ZOO_DATA_LOG_DIR"] ||
		c.Server.Tick.Milliseconds() != 2000 || c.Server.InitLimit != 5 || c.Server.SyncLimit != 2 || !c.AdminEnabled || HostPort(c.AdminAddress, c.AdminPort) != ":8080" || c.Prometheus() {
		t.Errorf("%+v", c)
	}
	wantLines(t, inv.Warnings)
	write(t, filepath.Join(env["ZOO_DATA_DIR"], "myid"), "7\n")
	if c := good(t, "", env).Config; c.MyID != 7 {
		t.Errorf("the file must win over a default: %d", c.MyID)
	}
	if c := good(t, "", env, "--memory", "--ensemble", "3").Config; c.ListenAddress() != "127.0.0.1:2181" || c.MyID != 0 {
		t.Errorf("servers for tests in the image: %+v", c)
	}
}

// Every variable sets its key, from the environment and from a file.
func TestContainer_Variables(t *testing.T) {
	example := map[string]struct{ value, want string }{
		"ZOO_MY_ID": {"3", "3"}, "ZOO_SERVER_ID": {"4", "4"}, "ZOO_DATA_DIR": {"/d", "/d"}, "ZOO_DATA_LOG_DIR": {"/l", "/l"},
		"ZOO_PORT": {"11", "11"}, "ZOO_PORT_NUMBER": {"12", "12"}, "ZOO_TICK_TIME": {"13", "13"}, "ZOO_INIT_LIMIT": {"14", "14"},
		"ZOO_SYNC_LIMIT": {"15", "15"}, "ZOO_MAX_CLIENT_CNXNS": {"16", "16"}, "ZOO_MAX_CNXNS": {"17", "17"}, "ZOO_MAX_SESSION_TIMEOUT": {"180000", "180000"},
		"ZOO_STANDALONE_ENABLED": {"true", "true"}, "ZOO_4LW_COMMANDS_WHITELIST": {"srvr, mntr", "srvr,mntr"},
		"ZOO_ADMINSERVER_ENABLED": {"false", "false"}, "ZOO_ENABLE_ADMIN_SERVER": {"no", "false"}, "ZOO_ADMIN_SERVER_ADDRESS": {"127.0.0.1", "127.0.0.1"},
		"ZOO_ADMIN_SERVER_PORT_NUMBER": {"19", "19"}, "ZOO_ENABLE_PROMETHEUS_METRICS": {"yes", prometheusProvider}, "ZOO_PROMETHEUS_METRICS_PORT_NUMBER": {"20", "20"},
		"ZOO_RECONFIG_ENABLED": {"yes", "true"}, "ZOO_LISTEN_ALLIPS_ENABLED": {"1", "true"}, "ZOO_PRE_ALLOC_SIZE": {"64", "64"}, "ZOO_SNAPCOUNT": {"21", "21"},
		"ZOO_LOG_LEVEL": {"FATAL", "error"}, "ZOO_LOG4J_PROP": {"DEBUG, CONSOLE", "debug"}, "ZOO_DATADIR_AUTOCREATE_DISABLE": {"x", "false"},
		"ZOO_TLS_CLIENT_ENABLE": {"yes", "3181"}, "ZOO_TLS_PORT_NUMBER": {"22", "22"}, "ZOO_TLS_CLIENT_AUTH": {"want", "want"},
		"ZOO_TLS_CLIENT_KEYSTORE_FILE": {"/k.jks", "/k.jks"}, "ZOO_TLS_CLIENT_KEYSTORE_PASSWORD": {"s1", "s1"},
		"ZOO_TLS_CLIENT_TRUSTSTORE_FILE": {"/t.jks", "/t.jks"}, "ZOO_TLS_CLIENT_TRUSTSTORE_PASSWORD": {"s2", "s2"},
		"ZOO_TLS_QUORUM_ENABLE": {"yes", "true"}, "ZOO_TLS_QUORUM_CLIENT_AUTH": {"none", "none"},
		"ZOO_TLS_QUORUM_KEYSTORE_FILE": {"/q.jks", "/q.jks"}, "ZOO_TLS_QUORUM_KEYSTORE_PASSWORD": {"s3", "s3"},
		"ZOO_TLS_QUORUM_TRUSTSTORE_FILE": {"/r.jks", "/r.jks"}, "ZOO_TLS_QUORUM_TRUSTSTORE_PASSWORD": {"s4", "s4"},
		"ZOOKEEPER_SERVER_ID": {"5", "5"}, "ZOOKEEPER_LOG4J_ROOT_LOGLEVEL": {"FATAL", "error"},
	}
	seen := make(map[string]bool)
	for _, v := range variables {
		if seen[v.name] || v.note == "" && v.key == "" || !slices.Contains([]string{official, bitnami, both, confluent}, v.of) {
			t.Errorf("%s: there twice, or without a key and a note", v.name)
		}
		seen[v.name] = true
		if v.key == "" {
			continue
		}
		row, canonical, ok := lookup(v.key)
		if !ok || canonical != v.key {
			t.Errorf("%s sets %s, which is no key", v.name, v.key)
			continue
		}
		if v.image != "" {
			if _, ok := row.kind.parse(v.image); !ok {
				t.Errorf("%s: the default %q is not allowed", v.name, v.image)
			}
		}
		if v.status == harmless {
			if row.status != harmless {
				t.Errorf("%s is harmless, and %s %s", v.name, v.key, row.status)
			}
			continue
		}
		e, ok := example[v.name]
		if !ok {
			t.Errorf("%s has no example", v.name)
			continue
		}
		file := filepath.Join(t.TempDir(), "value")
		write(t, file, e.value+"\n")
		for name, value := range map[string]string{v.name: e.value, v.name + "_FILE": file} {
			r := newResolver()
			env := map[string]string{name: value}
			switch v.only {
			case "secureClientPort":
				env["ZOO_TLS_CLIENT_ENABLE"] = "yes"
			case "sslQuorum":
				env["ZOO_TLS_QUORUM_ENABLE"] = "yes"
			}
			container{r: r, getenv: func(n string) string { return env[n] }, names: []string{name}}.read("")
			c := r.resolve(false)
			r.problems = slices.DeleteFunc(r.problems, func(p Problem) bool {
				return strings.Contains(p.What, "datadir.autocreate is false") || strings.Contains(p.What, "Store.location is not set")
			})
			if got := rowOf(&c, row.name).text().get(); got != e.want || len(r.problems)+len(r.warnings) > 0 {
				t.Errorf("%s=%s: %s is %q, want %q; %v %v", name, value, v.key, got, e.want, r.problems, r.warnings)
			}
		}
	}
}

// A value that Kubernetes sets for a service called zoo, values of only white space, and secrets
// that are not mounted.
func TestContainer_Odd(t *testing.T) {
	inv := good(t, "", inImage(t, map[string]string{"ZOO_PORT": "tcp://10.0.0.1:2181", "ZOO_TICK_TIME": " ", "ZOO_INIT_LIMIT_FILE": "\n"}))
	if c := inv.Config; c.ClientPort != 2181 || c.Server.Tick.Milliseconds() != 2000 || c.Server.InitLimit != 5 {
		t.Errorf("%+v", c)
	}
	wantLines(t, inv.Warnings, "ZOO_PORT: tcp://10.0.0.1:2181 has no effect: Kubernetes and Docker set that for a service called zoo")
	missing := filepath.Join(t.TempDir(), "missing")
	env := inImage(t, map[string]string{"ZOO_MY_ID_FILE": missing})
	_, err := load(nil, func(name string) string { return env[name] }, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "ZOO_MY_ID_FILE: open "+missing) {
		t.Errorf("%v", err)
	}
	for _, words := range [][]string{{"-D", "tickTime=5"}, {"-D=5"}} {
		if _, err := load(words, func(string) string { return "" }, nil); err == nil || !strings.Contains(err.Error(), "without spaces") {
			t.Errorf("%v: %v", words, err)
		}
	}
}

func TestContainer_Servers(t *testing.T) {
	three := "[server.1=zoo1:2888:3888:participant;0.0.0.0:2181 server.2=zoo2:2888:3888:participant;0.0.0.0:2181 server.3=zoo3:2888:3888:observer;0.0.0.0:2181]"
	for _, c := range []struct{ servers, want string }{
		{"server.1=zoo1:2888:3888;2181 server.2=zoo2:2888:3888;2181 server.3=zoo3:2888:3888:observer;2181", three},
		{"zoo1:2888:3888::1,zoo2:2888:3888::2,zoo3:2888:3888:observer::3", three},
		{"zoo1:2888:3888; zoo2:2888:3888 zoo3:2888:3888:observer", three},
		{"zoo1:2888:3888", "[]"},
	} {
		inv := good(t, "", inImage(t, map[string]string{"ZOO_SERVERS": c.servers, "ZOO_MY_ID": "2"}))
		if got := fmt.Sprint(inv.Config.Members); got != c.want || inv.Config.ListenAddress() != ":2181" {
			t.Errorf("%s: %s at %s, want %s", c.servers, got, inv.Config.ListenAddress(), c.want)
		}
	}
	if c := good(t, "", inImage(t, map[string]string{"ZOO_SERVERS": "a:1:2,b:1:2,c:1:2", "ZOO_SERVER_ID": "3", "ZOO_PORT_NUMBER": "3000"})).Config; c.ClientPort != 3000 || c.MyID != 3 {
		t.Errorf("%+v", c)
	}
	if c := good(t, "", inImage(t, map[string]string{"ZOO_PORT_NUMBER": "3000"})).Config; c.ListenAddress() != ":3000" {
		t.Errorf("the default server has another port: %s", c.ListenAddress())
	}
	// Bitnami's own examples have it in each server's own entry.
	if c := good(t, "", inImage(t, map[string]string{"ZOO_SERVERS": "a:2888:3888::1,0.0.0.0:2888:3888::2,c:2888:3888::3", "ZOO_SERVER_ID": "2"})).Config; c.PeerListenAddress() != ":2888" {
		t.Errorf("listens for the others on %s", c.PeerListenAddress())
	}
	wantLines(t, problems(t, "", inImage(t, map[string]string{"ZOO_SERVERS": "a:2888:3888::1,0.0.0.0:2888:3888::2,c:2888:3888::3"})),
		"ZOO_SERVERS: server.2: has the address 0.0.0.0, where this server cannot reach it: only a server's own line may have it")
}

func TestContainer_Extra(t *testing.T) {
	c := good(t, "", inImage(t, map[string]string{
		"ZOO_CFG_EXTRA":             "metricsProvider.className=" + prometheusProvider + " metricsProvider.httpPort=7070\nsnapCount=50",
		"ZOO_CFG_admin_idleTimeout": "77", "JVMFLAGS": "-Dzookeeper.admin.enableServer=false -Xmx1g", "ZOO_TICK_TIME": "500",
	})).Config
	if !c.Prometheus() || c.MetricsPort != 7070 || c.Server.SnapCount != 50 || c.AdminIdleTimeout.Milliseconds() != 77 || c.AdminEnabled || c.Server.Tick.Milliseconds() != 500 {
		t.Errorf("%+v", c)
	}
}

// Unsupported values are refused, and variables without effect give a warning.
func TestContainer_Refused(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "none")
	wantLines(t, problems(t, "", inImage(t, map[string]string{
		"ZOO_ENABLE_AUTH": "yes", "ZOO_ENABLE_QUORUM_AUTH": "no",
		"ZOO_TICK_TIME": "1", "ZOO_TICK_TIME_FILE": secret, "ZOO_INIT_LIMIT_FILE": secret, "ZOO_CFG_EXTRA": "snapCount", "ZOO_LOG_LEVEL": "loud",
	})),
		"ZOO_TICK_TIME: is set, and so is ZOO_TICK_TIME_FILE: remove one of them",
		"ZOO_INIT_LIMIT_FILE: open "+secret+": no such file or directory",
		`ZOO_LOG_LEVEL: is "loud"; allowed: ALL, TRACE, DEBUG, INFO, WARN, ERROR, FATAL or OFF`,
		"ZOO_ENABLE_AUTH: is yes, but ZOO_SERVER_USERS has 0 names and ZOO_SERVER_PASSWORDS has 0 passwords: there must be as many, and one at least",
		`ZOO_CFG_EXTRA: contains "snapCount"; allowed: key=value, separated by white space`)
	inv := good(t, "", inImage(t, map[string]string{"ZOO_TICKTIME": "1", "ZOO_TLS_CLIENT_AUTH": "need", "ZOO_QUORUM_LEARNER_USER": "u", "PATH": "p"}))
	wantLines(t, inv.Warnings, "ZOO_TICKTIME: is not a variable of gozkd and has no effect")
}

// The variables of Confluent's image, with examples of its documentation.
func TestContainer_Confluent(t *testing.T) {
	env := inImage(t, map[string]string{
		"ZOOKEEPER_CLIENT_PORT": "22181", "ZOOKEEPER_SERVER_ID": "2", "ZOOKEEPER_SERVERS": "a:22888:23888; b:22888:23888;c:22888:23888",
		"ZOOKEEPER_TICK_TIME": "2500", "ZOOKEEPER_INIT_LIMIT": "7", "ZOOKEEPER_MAX_CLIENT_CNXNS": "61", "ZOOKEEPER_4LW_COMMANDS_WHITELIST": "ruok,srvr",
		"KAFKA_OPTS": "-Dzookeeper.snapCount=50 -Djava.net.preferIPv4Stack=true", "KAFKA_HEAP_OPTS": "-Xmx1g", "ZOOKEEPER_TOOLS_LOG4J_LOGLEVEL": "ERROR",
	})
	inv := good(t, "", env)
	c := inv.Config
	if got := fmt.Sprint(c.Members); got != "[server.1=a:22888:23888:participant server.2=b:22888:23888:participant server.3=c:22888:23888:participant]" ||
		c.MyID != 2 || c.ListenAddress() != ":22181" || c.Server.Tick.Milliseconds() != 2500 || c.Server.InitLimit != 7 || c.Server.SyncLimit != 2 ||
		c.Server.MaxClientConns != 61 || fmt.Sprint(c.Server.Words) != "[ruok srvr]" || c.Server.SnapCount != 50 {
		t.Errorf("%s %d %s %v %v", got, c.MyID, c.ListenAddress(), c.Server.Words, c.Server.SnapCount)
	}
	wantLines(t, inv.Warnings)
	if c := good(t, "", inImage(t, map[string]string{"ZOOKEEPER_CLIENT_PORT": "2182"})).Config; c.ListenAddress() != ":2182" || len(c.Members) > 0 {
		t.Errorf("alone: %s %v", c.ListenAddress(), c.Members)
	}

	// All of that image's names, in keys that have a value of their own here.
	for name, key := range map[string]string{
		"PRE_ALLOC_SIZE": "preAllocSize", "GLOBAL_OUTSTANDING_LIMIT": "globalOutstandingLimit", "CLIENT_PORT_ADDRESS": "clientPortAddress",
		"JUTE_MAX_BUFFER": "jute.maxbuffer", "SKIP_ACL": "skipACL", "QUORUM_LISTEN_ON_ALL_IPS": "quorumListenOnAllIPs", "FORCE_SYNC": "forceSync",
		"X509_AUTHENTICATION_PROVIDER_SUPER_USER": "X509AuthenticationProvider.superUser", "SSL_KEYSTORE_LOCATION": "ssl.keyStore.location",
		"SSL_CIPHER_SUITES": "ssl.ciphersuites", "SSL_OCPS": "ssl.ocsp", "SSL_QUORUM": "sslQuorum", "SSL_QUORUM_TRUSTSTORE_TYPE": "ssl.quorum.trustStore.type",
		"SSL_CONTEXT_SUPPLIER_CLASS": "ssl.context.supplier.class", "AUTH_PROVIDER_SASL": "authProvider.sasl", "CLIENT_PORT_UNIFICATION": "client.portUnification",
		"ADMIN_COMMAND_URL": "admin.commandURL", "AUTOPURGE_SNAP_RETAIN_COUNT": "autopurge.snapRetainCount", "FSYNC_WARNING_THRESHOLDMS": "fsync.warningthresholdms",
		"CNX_TIMEOUT": "cnxTimeout", "ELECTION_ALG": "electionAlg", "TCP_KEEP_ALIVE": "tcpKeepAlive", "SECURE_CLIENT_PORT": "secureClientPort",
		"GROUPS": "group.1", "WEIGHTS": "weight.1",
	} {
		env := map[string]string{confDir: "/conf", "ZOOKEEPER_CLIENT_PORT": "1", "ZOOKEEPER_" + name: "9"}
		r := newResolver()
		container{r: r, getenv: func(n string) string { return env[n] }, names: []string{"ZOOKEEPER_" + name}}.read("")
		if r.won[key].value != "9" || len(r.warnings) > 0 {
			t.Errorf("ZOOKEEPER_%s: %s is %q; %v", name, key, r.won[key].value, r.warnings)
		}
	}

	env = inImage(t, map[string]string{"ZOOKEEPER_CLIENT_PORT": "2181", "ZOOKEEPER_TICKTIMES": "1", "ZOOKEEPER_PORT": "tcp://10.0.0.1:2181"})
	wantLines(t, good(t, "", env).Warnings, "ZOOKEEPER_PORT: is not a variable of gozkd and has no effect", "ZOOKEEPER_TICKTIMES: is not a variable of gozkd and has no effect")
	// What Kubernetes sets for services, and what clients of ZooKeeper have in their environment.
	inv = good(t, "", inImage(t, map[string]string{"ZOOKEEPER_CLIENT_PORT": "tcp://10.0.0.1:2181", "ZOOKEEPER_TICK_TIME": "1", "KAFKA_OPTS": "-Dzookeeper.snapCount=50"}))
	if c := inv.Config; c.ClientPort != 2181 || c.Server.Tick.Milliseconds() != 2000 || c.Server.SnapCount != 100000 || len(inv.Warnings) > 0 {
		t.Errorf("%+v %q", c, inv.Warnings)
	}
	env = inImage(t, map[string]string{"ZOOKEEPER_CLIENT_PORT": "2182", "ZOOKEEPER_SERVERS": "a:1:2", "ZOOKEEPER_SERVER_ID": "9"})
	file := filepath.Join(env["ZOO_CONF_DIR"], "zoo.cfg")
	write(t, file, "dataDir=there\n")
	inv = good(t, "", env)
	if inv.Config.MyID != 9 || inv.Config.ClientPort != 2181 {
		t.Errorf("%+v", inv.Config)
	}
	wantLines(t, inv.Warnings, "ZOOKEEPER_CLIENT_PORT, ZOOKEEPER_SERVERS: no effect, as in ZooKeeper's images, because "+file+" exists")
}

// A key in the name of a variable can come from a file too, as passwords do.
func TestContainer_KeyFromFile(t *testing.T) {
	const super = "super:D/InIHSb7yEEbrWz8b9l71RjZJU="
	file, none := filepath.Join(t.TempDir(), "value"), filepath.Join(t.TempDir(), "none")
	write(t, file, super+"\n")
	const name = "ZOO_CFG_DigestAuthenticationProvider_superDigest"
	inv := good(t, "", inImage(t, map[string]string{name + "_FILE": file}))
	if inv.Config.Server.SuperDigest != super || len(inv.Warnings) > 0 {
		t.Errorf("%q %q", inv.Config.Server.SuperDigest, inv.Warnings)
	}
	wantLines(t, problems(t, "", inImage(t, map[string]string{name: super, name + "_FILE": file, "ZOO_CFG_snapCount_FILE": none})),
		name+": is set, and so is "+name+"_FILE: remove one of them",
		"ZOO_CFG_snapCount_FILE: open "+none+": no such file or directory")
}

// If there is a zoo.cfg, only the server number is read from the variables.
func TestContainer_File(t *testing.T) {
	env := inImage(t, map[string]string{"ZOO_TICK_TIME": "1", "ZOO_CFG_snapCount": "5", "ZOO_MY_ID": "9"})
	file := filepath.Join(env["ZOO_CONF_DIR"], "zoo.cfg")
	write(t, file, "dataDir=there\n")
	for _, args := range [][]string{nil, {"start-foreground"}, {"serve", "start-foreground"}, {"start-foreground", "zoo.cfg"}, {"check-config"}} {
		t.Chdir(t.TempDir())
		inv := good(t, "", env, args...)
		c := inv.Config
		if inv.File != file || c.Server.Dir != "there" || c.Server.Tick.Milliseconds() != 3000 || c.MyID != 9 || c.Server.SnapCount != 100000 {
			t.Errorf("%q: %+v", args, inv)
		}
		wantLines(t, inv.Warnings, "ZOO_TICK_TIME, ZOO_CFG_snapCount: no effect, as in ZooKeeper's images, because "+file+" exists")
	}
	if inv := good(t, "", map[string]string{"ZOOCFGDIR": env["ZOO_CONF_DIR"]}); inv.File != file {
		t.Errorf("ZOOCFGDIR: %+v", inv)
	}
}

// TestDocumentation_Container: docs/guide/container.md contains the table.
func TestDocumentation_Container(t *testing.T) {
	const path = "../../../../docs/guide/container.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	keepPage(t, path, string(page), replaceBetween(t, string(page), "variables", variableTable()))
}

// variableTable returns a list in Markdown of the variables of each image.
func variableTable() string {
	var b strings.Builder
	for _, of := range []string{both, official, bitnami, confluent} {
		fmt.Fprintf(&b, "Variables of %s:\n\n", map[string]string{both: "the first two images", official: "the official image", bitnami: "Bitnami's image", confluent: "Confluent's image"}[of])
		var idle []string
		for _, v := range variables {
			switch {
			case v.of != of:
			case v.status == harmless:
				idle = append(idle, v.name)
			default:
				b.WriteString(item("`" + v.name + "`: " + v.describe()))
			}
		}
		if len(idle) > 0 {
			b.WriteString(item("without effect: `" + strings.Join(idle, "`, `") + "`"))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// describe returns what a row of the table says about a variable.
func (v variable) describe() string {
	var words []string
	if v.key != "" && v.status == works {
		words = append(words, "`"+v.key+"`")
	}
	if v.image != "" {
		words = append(words, "(`"+v.image+"`)")
	}
	cell, note := strings.Join(words, " "), v.note
	if v.status != works {
		note = string(v.status) + ": " + note
	}
	if cell != "" && note != "" {
		cell += ": "
	}
	cell += note
	if v.always && v.status == works {
		cell += " †"
	}
	return cell
}
