package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/tlsconf"
	"github.com/gozkd/gozkd/server"
)

// in runs Load in an empty directory. If zooCfg is not empty, it is the content of a zoo.cfg, whose
// name becomes the last argument.
func in(t *testing.T, zooCfg string, env map[string]string, args ...string) (loaded, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	if zooCfg != "" {
		write(t, "zoo.cfg", zooCfg)
		args = append(args, "zoo.cfg")
	}
	return load(args, func(name string) string { return env[name] }, slices.Sorted(maps.Keys(env)))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// loaded is a command line with its configuration.
type loaded struct {
	*Invocation
	Config Config
}

func load(args []string, getenv func(string) string, names []string) (l loaded, err error) {
	l.Invocation, l.Config, err = Load(args, getenv, names)
	return l, err
}

// good is in for a valid configuration.
func good(t *testing.T, zooCfg string, env map[string]string, args ...string) loaded {
	t.Helper()
	inv, err := in(t, zooCfg, env, args...)
	if err != nil {
		t.Fatalf("refused:\n%v", err)
	}
	return inv
}

// problems is in for an invalid configuration. It returns one line per problem.
func problems(t *testing.T, zooCfg string, env map[string]string, args ...string) []string {
	t.Helper()
	_, err := in(t, zooCfg, env, args...)
	var e *Error
	if !errors.As(err, &e) || len(e.Problems) == 0 {
		t.Fatalf("error is %v, want an *Error with problems", err)
	}
	return strings.Split(e.Error(), "\n")
}

func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

func TestLoad_Defaults(t *testing.T) {
	want := Config{
		Server: server.Config{
			Dir: "gozkd-data", LogDir: "gozkd-data",
			InitLimit: 10, SyncLimit: 5, AddressPatience: time.Second, PeerTLS: server.PeerTLS{DetectionTimeout: 5 * time.Second},
			ListenBacklog: -1, HandshakeLimit: 250,
			Tick: 3 * time.Second, MinSessionTimeout: 6 * time.Second, MaxSessionTimeout: time.Minute,
			MaxClientConns: 60, HandshakeTimeout: 10 * time.Second,
			MaxBuffer: 0xFFFFF, OutstandingLimit: 1000, Words: []string{"*"},
			ConnectionThrottle: server.ConnectionThrottle{
				FillCount: 1, FillTime: time.Millisecond, DropIncrease: 0.02, DropDecrease: 0.002,
				GlobalWeight: 3, LocalWeight: 1, RenewWeight: 2,
			},
			RequestThrottle:       server.RequestThrottle{StallTime: 100 * time.Millisecond},
			LargeRequestThreshold: -1, LargeRequestMaxBytes: 100 << 20, BudgetWait: time.Second,
			DigestAlgorithm:   "SHA1",
			ContainerInterval: time.Minute, ContainerMaxPerMinute: 10000, ContainerNeverUsed: 5 * time.Minute,
			SnapCount: 100000, SegmentBytes: 64 << 20, SyncWarning: time.Second,
			ArchiveBytes: 64 << 20,
		},
		PeerTLS: tlsconf.Options{
			Prefix: "ssl.quorum.", Role: tlsconf.Both, ClientAuth: tlsconf.Need, HostnameVerification: true, ClientHostnameVerification: true,
		},
		ClientPort: 2181, ClientPortAddress: "127.0.0.1",
		ClientTLS: tlsconf.Options{Prefix: "ssl.", ClientAuth: tlsconf.Need, HostnameVerification: true}, X509ID: "subject",
		Auth:     Auth{JAASSection: "Server"},
		Audit:    Audit{Format: AuditJSON, MaxSizeMB: 10, MaxFiles: 10},
		Archive:  Archive{Interval: 3 * time.Second, BaseInterval: 24 * time.Hour},
		Kerberos: Kerberos{Conf: "/etc/krb5.conf", AuthToLocal: "DEFAULT"},
		Found:    true, AutoCreate: true,
		AdminEnabled: true, AdminAddress: "127.0.0.1", AdminPort: 8080, AdminCommandURL: "/commands", AdminIdleTimeout: 30 * time.Second,
		AdminSnapshot: true, AdminInterval: 5 * time.Minute, Web: "read", WebRate: 1000,
		MetricsProvider: defaultProvider, MetricsHost: "0.0.0.0", MetricsPort: 7000, MetricsRuntime: true,
		MetricsHTTPSPort: -1, MetricsNeedCert: true, MetricsWantCert: true,
		LogLevel: "info",
	}
	inv := good(t, "", nil)
	if fmt.Sprint(inv.Config) != fmt.Sprint(want) || inv.Config.LogLevel != "info" || inv.Command != Serve || len(inv.Warnings) > 0 {
		t.Errorf("got  %+v\nwant %+v", inv, want)
	}
	if got := inv.Config.ListenAddress(); got != "127.0.0.1:2181" {
		t.Errorf("listens on %s", got)
	}
	for _, o := range []string{"server.1=h:1:2;2181", "4lw.commands.whitelist=srvr"} {
		if words := good(t, "", nil, "-o", o).Config.Server.Words; fmt.Sprint(words) != "[srvr]" {
			t.Errorf("with %s the words are %q", o, words)
		}
	}

	want.Server.Dir, want.Server.LogDir, want.ClientPortAddress, want.Server.Words = "/d", "/d", "", []string{"srvr"}
	inv = good(t, "dataDir=/d", nil)
	if fmt.Sprint(inv.Config) != fmt.Sprint(want) || inv.Config.ListenAddress() != ":2181" {
		t.Errorf("with a zoo.cfg: got  %+v\nwant %+v", inv.Config, want)
	}
}

func TestLoad_Precedence(t *testing.T) {
	env := map[string]string{
		"SERVER_JVMFLAGS": "-Xmx512m -Dzookeeper.tickTime=100 -Djute.maxbuffer=0x1000",
		"JVMFLAGS":        "-Dzookeeper.tickTime=200 -Djava.net.preferIPv4Stack=true -Dlog4j.x=y -Dzookeeper.server.principal=p",
	}
	ticks := func(inv loaded) int64 { return inv.Config.Server.Tick.Milliseconds() }
	inv := good(t, "", env)
	if ticks(inv) != 200 || inv.Config.Server.MaxBuffer != 4096 || len(inv.Warnings) != 0 {
		t.Errorf("environment: %+v", inv)
	}
	if inv := good(t, "dataDir=d\ntickTime=300", env); ticks(inv) != 300 || inv.Config.Server.MaxBuffer != 4096 {
		t.Errorf("zoo.cfg must win over the environment: %+v", inv)
	}
	if inv := good(t, "dataDir=d\ntickTime=300", env, "-o", "tickTime=400"); ticks(inv) != 400 {
		t.Errorf("flags must win over zoo.cfg: %+v", inv)
	}
	if inv := good(t, "dataDir=d\nclientPort=1", nil, "--client-port", "5", "--data-dir=e", "--client-address", "::1"); inv.Config.ListenAddress() != "[::1]:5" || inv.Config.Server.Dir != "e" {
		t.Errorf("flags must win over zoo.cfg: %+v", inv)
	}
	if inv := good(t, "dataDir=d", nil, "--client-port", "5", "-o", "clientPort=6"); inv.Config.ClientPort != 6 {
		t.Errorf("the last flag must win: %+v", inv)
	}
}

func TestLoad_NamesOfSystemProperties(t *testing.T) {
	inv := good(t, "dataDir=d\nzookeeper.skipACL=yes\nforceSync=no\nthrottled_op_wait_time=0\nzookeeper.connection_throttle_tokens=0", nil)
	if !inv.Config.Server.SkipACL || !inv.Config.Server.NoSync || len(inv.Warnings) > 0 {
		t.Errorf("%+v", inv)
	}
}

func TestLoad_UnknownKeys(t *testing.T) {
	inv := good(t, "dataDir=d\n\ntickTme=2000\nclientport=1\nnothing.like.any.key=1\nadmin.servePort=-1\n"+
		"leader.maxTimeToWaitForEpoch=1\nssl.clientAuht=need", map[string]string{"JVMFLAGS": "-Dzookeeper.skipAcl=yes -Dqwertz=1"}, "-o", "snapcount=5")
	wantLines(t, inv.Warnings,
		"JVMFLAGS: zookeeper.skipAcl: is not a key of gozkd and has no effect; did you mean skipACL?",
		"zoo.cfg:3: tickTme: is not a key of gozkd and has no effect; did you mean tickTime?",
		"zoo.cfg:4: clientport: is not a key of gozkd and has no effect; did you mean clientPort?",
		"zoo.cfg:5: nothing.like.any.key: is not a key of gozkd and has no effect",
		"-o: snapcount: is not a key of gozkd and has no effect; did you mean snapCount?",
		"zoo.cfg:6: admin.servePort: is not a key of gozkd and has no effect; did you mean admin.serverPort?",
		"zoo.cfg:8: ssl.clientAuht: is not a key of gozkd; did you mean ssl.clientAuth?; it has no effect, because "+noTLS)
}

func TestLoad_AllProblemsAtOnce(t *testing.T) {
	got := problems(t, "tickTime=fast\n=1\nclientPort=2181 # for clients\nsecureClientPort=2281\nDigestAuthenticationProvider.superDigest=super:s3cret!\nsyncEnabled=on\n", nil)
	wantLines(t, got,
		"zoo.cfg:2: has a value without a key",
		`zoo.cfg:1: tickTime: is "fast"; allowed: a whole number from 1 to 107374182`,
		`zoo.cfg:3: clientPort: is "2181 # for clients"; allowed: a whole number from 0 to 65535 (a comment needs a line of its own)`,
		`zoo.cfg:6: syncEnabled: is "on"; allowed: true, false`,
		"dataDir: is not set: set it in zoo.cfg, or use --data-dir or --memory",
		"zoo.cfg:4: secureClientPort: is 2281, and ssl.keyStore.location is not set: name a file with this server's key and certificate (JKS, PKCS12 or PEM)")
}

// What is in the place of a directory is named, and of a URL only what may be a secret is hidden.
func TestLoad_NamesTheValue(t *testing.T) {
	file := filepath.ToSlash(filepath.Join(t.TempDir(), "file"))
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	const allowed = "; allowed: a URL, file:///DIRECTORY or s3://BUCKET/PREFIX"
	for text, want := range map[string]string{
		"dataDir=" + file:                                  "zoo.cfg:1: dataDir: is " + file + ", which is a file or below one: name a directory",
		"dataDir=d\ndataLogDir=" + file + "/log":           "zoo.cfg:2: dataLogDir: is " + file + "/log, which is a file or below one: name a directory",
		"dataDir=d\ngozkd.archive.url=ftp://h/d":           `zoo.cfg:2: gozkd.archive.url: is "ftp://h/d"` + allowed,
		"dataDir=d\ngozkd.archive.url=s3://me:key@h/d":     `zoo.cfg:2: gozkd.archive.url: is "(hidden)"` + allowed,
		"dataDir=d\ngozkd.archive.url=s3://b/p?key=x":      `zoo.cfg:2: gozkd.archive.url: is "s3://b/p?(hidden)"` + allowed,
		"dataDir=d\nelectionAlg=0":                         `zoo.cfg:2: electionAlg: is "0"; allowed: 3`,
		"dataDir=" + file + "/d\ndatadir.autocreate=false": "zoo.cfg:1: dataDir: is " + file + "/d, which is a file or below one: name a directory",
	} {
		wantLines(t, problems(t, text, nil), want)
	}
}

// TestLoad_HidesSecretsInURLs spells the URL of an archive as one may who gives its password there.
func TestLoad_HidesSecretsInURLs(t *testing.T) {
	for _, url := range []string{
		"s3://key:secretpw@b/p", "s3://key:secretpw%40b/p", "s3://key:secretpw", "s3:key:secretpw@b", "s3:key:secretpw%40b/p",
		"//key:secretpw@b/p", "/key:secretpw@b", "s3:///key:secretpw@b/p", "s3://key:secretpw/+@b", "minio://key:secretpw@b",
		"s3://b/p?endpoint=http%3A%2F%2Fuser%3Asecretpw%40minio%3A9000", "s3://b/p?endpoint=http://user:secretpw@minio:9000",
		"file:relative?password=secretpw", "file:///d?password=secretpw", "ftp://b/p#secretpw?x", "ftp:b?secretpw",
		"s3://b/p?secret_key=secretpw", "s3://b/p?region=r&token=secretpw", "ftp://b/p&token=secretpw", "ftp://b/p%3Ftoken=secretpw",
		"ftp://b/p%253Ftoken%253Dsecretpw", "%zz://secretpw",
	} {
		for _, key := range []string{"gozkd.archive.url", "tickTime", "admin.serverAddress"} {
			if key != "gozkd.archive.url" && !strings.Contains(url, "://") {
				continue // nothing tells that it is a URL
			}
			got := problems(t, "dataDir=d\n"+key+"="+url+"\n", nil)
			if text := strings.Join(got, "\n"); len(got) != 1 || strings.Contains(text, "secretpw") {
				t.Errorf("%s=%s: %s", key, url, text)
			}
		}
	}
}

func TestLoad_Doubtful(t *testing.T) {
	const shell = "no shell replaces ~, variables and quotes, and a comment needs a line of its own"
	const twice = "the server will not start; choose another port for one of them"
	const prometheus = "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider"
	const digest = "DigestAuthenticationProvider.superDigest=super:"
	const noDigest = `zoo.cfg:2: DigestAuthenticationProvider.superDigest: is "(hidden)", which has no effect, as in ZooKeeper; ` +
		"allowed: user:base64 of the digest of user:password"
	for text, want := range map[string]string{
		"clientPort=8080\n": "zoo.cfg:2: clientPort: is 8080, and so is admin.serverPort: " +
			"the server will not start; choose another port for one of them",
		"clientPort=8080\nadmin.enableServer=false\n":                                   "",
		"clientPort=8080\nclientPortAddress=127.0.0.2\nadmin.serverAddress=127.0.0.1\n": "",
		"clientPort=8080\nclientPortAddress=127.0.0.2\nadmin.serverAddress=::\n": "zoo.cfg:2: clientPort: " +
			"is 8080, and so is admin.serverPort: " + twice,
		"clientPort=7000\nmetricsProvider.className=" + prometheus: "zoo.cfg:2: clientPort: " +
			"is 7000, and so is metricsProvider.httpPort: " + twice,
		"metricsProvider.httpPort=8080\nmetricsProvider.className=" + prometheus: "zoo.cfg:2: metricsProvider.httpPort: is 8080, and so is admin.serverPort: " +
			"one of them will not be served; choose another port for one of them",
		"server.1=127.0.0.1:8080:1\nserver.2=b:1\nserver.3=c:1\nmyid=1": "zoo.cfg:2: server.1: is 8080, and so is admin.serverPort: " + twice,
		"server.1=127.0.0.1:2181:1\nserver.2=b:1\nserver.3=c:1\nmyid=1": "zoo.cfg:2: server.1: is 2181, and so is clientPort: " + twice,
		"server.1=127.0.0.1:2181:1\nstandaloneEnabled=false\nmyid=1\n": "zoo.cfg:2: server.1: " +
			"is 2181, and so is clientPort: " + twice,
		"server.1=127.0.0.1:2181:1\n": "zoo.cfg:2: server.1: is the only server line, so this server is standalone: " +
			"of the line only a client port has an effect; add the other servers, " +
			"or set standaloneEnabled=false for an ensemble of one",
		"dataLogDir=%HOME%/d\n":                    "zoo.cfg:2: dataLogDir: is %HOME%/d, to the letter: " + shell,
		"dataLogDir=100%\n":                        "",
		`dataLogDir=..\zk\log`:                     `zoo.cfg:2: dataLogDir: is ..zklog: a \ in this file is an escape; write \\ or /`,
		"dataLogDir=../d\n":                        "",
		"dataLogDir=..\n":                          "",
		"; a comment\n":                            "zoo.cfg:2: ;: is not a key of gozkd and has no effect; a comment begins with #",
		"dataLogDir=d # logs\n":                    "zoo.cfg:2: dataLogDir: is d # logs, to the letter: " + shell,
		"dataLogDir='d'\n":                         "zoo.cfg:2: dataLogDir: is 'd', to the letter: " + shell,
		"clientPort=8080\nadmin.serverPort=8081\n": "",
		"clientPort=2181\nadmin.serverPort=2181\n": "zoo.cfg:2: clientPort: is 2181, and so is admin.serverPort: " +
			"the server will not start; choose another port for one of them",
		digest + "s3cret!\n": noDigest, "DigestAuthenticationProvider.superDigest=secret\n": noDigest,
		digest + "secret12\n": "zoo.cfg:2: DigestAuthenticationProvider.superDigest: " +
			"has a digest of super that is not as long as one by SHA1, so no password fits: write user:base64 of the digest of user:password",
		"gozkd.dataLimitKB=8192\n": "zoo.cfg:2: gozkd.dataLimitKB: is 8192: a server takes about 8 MiB of that without any data, " +
			"and may be full at once; set 16384 or more",
		"gozkd.archive.url=file:///gozkd-none/zk\n": "zoo.cfg:2: gozkd.archive.url: the directory /gozkd-none/zk does not exist: make it, or mount its file system",
		"gozkd.dataLimitKB=16384\n":                 "",
		"dataLogDir=~/zk\n":                         "zoo.cfg:2: dataLogDir: is ~/zk, to the letter: " + shell,
		"dataLogDir=${Z}/data\n":                    "zoo.cfg:2: dataLogDir: is ${Z}/data, to the letter: " + shell,
		"dataLogDir=\"/z\"\n":                       "zoo.cfg:2: dataLogDir: is \"/z\", to the letter: " + shell,
		`dataLogDir=C:\zk\log`:                      `zoo.cfg:2: dataLogDir: is C:zklog: a \ in this file is an escape; write \\ or /`,
		`dataLogDir=C:\\zk\\log`:                    "",
		"dataLogDir=C:/zk/log\n":                    "",
		digest + "D/InIHSb7yEEbrWz8b9l71RjZJU=\n":   "",
	} {
		if got := strings.Join(good(t, "dataDir=d\n"+text, nil).Warnings, "\n"); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestLoad_Warnings(t *testing.T) {
	inv := good(t, "dataDir=d\nextendedTypesEnabled=false\nadmin.enableServer=true\nadmin.serverPort=8080\ninitLimit=10\nsyncLimit=5\n4lw.commands.whitelist=stat, rouk, hotp, kind\ntickTime=1\ntickTime=2\n", nil)
	wantLines(t, inv.Warnings,
		"zoo.cfg:8: tickTime: is set again at zoo.cfg:9, which overrides it",
		`zoo.cfg:7: 4lw.commands.whitelist: "rouk" is not a four-letter word`)
	if inv.Config.Server.Tick != 2*time.Millisecond {
		t.Errorf("tickTime is %v, the last one must count", inv.Config.Server.Tick)
	}
}

func TestLoad_SessionTimeouts(t *testing.T) {
	inv := good(t, "dataDir=d\ntickTime=500\nminSessionTimeout=-1\nmaxSessionTimeout=60000", nil)
	if inv.Config.Server.MinSessionTimeout != time.Second || inv.Config.Server.MaxSessionTimeout != time.Minute {
		t.Errorf("%+v", inv.Config)
	}
	wantLines(t, problems(t, "dataDir=d\ngozkd.clientMemoryKB=8191", nil),
		"zoo.cfg:2: gozkd.clientMemoryKB: is 8191; allowed: 0, or at least 8 times jute.maxbuffer, which is 8192")
	if inv := good(t, "dataDir=d\ngozkd.clientMemoryKB=8192", nil); inv.Config.Server.ClientMemory != 8<<20 {
		t.Errorf("8 MiB of client memory became %d bytes", inv.Config.Server.ClientMemory)
	}
	wantLines(t, problems(t, "dataDir=d\nminSessionTimeout=70000", nil),
		"zoo.cfg:2: minSessionTimeout: the shortest timeout, 70000 ms, is more than maxSessionTimeout, which is 60000 ms")
}

// ZooKeeper starts with any jute.maxbuffer.
func TestLoad_MaxBuffer(t *testing.T) {
	for text, want := range map[string]int32{"100": 1024, "0": 1024, "-5": 1024, "0x7fffffff": 256 << 20} {
		inv := good(t, "dataDir=d\njute.maxbuffer="+text, nil)
		if inv.Config.Server.MaxBuffer != want || len(inv.Warnings) != 1 || !strings.Contains(inv.Warnings[0], "jute.maxbuffer: is ") {
			t.Errorf("jute.maxbuffer=%s became %d, with the warnings %q", text, inv.Config.Server.MaxBuffer, inv.Warnings)
		}
	}
	for _, n := range []int32{1024, 256 << 20} {
		if inv := good(t, fmt.Sprintf("dataDir=d\njute.maxbuffer=%d", n), nil); inv.Config.Server.MaxBuffer != n || len(inv.Warnings) != 0 {
			t.Errorf("jute.maxbuffer=%d became %d, with the warnings %q", n, inv.Config.Server.MaxBuffer, inv.Warnings)
		}
	}
}

func TestLoad_Memory(t *testing.T) {
	inv := good(t, "clientPort=0", nil, "--memory")
	if !inv.Config.Memory || inv.Config.Server.Dir != "" || inv.Config.Server.LogDir != "" || len(inv.Warnings) > 0 {
		t.Errorf("%+v", inv)
	}
	inv = good(t, "dataDir=d", nil, "--memory")
	wantLines(t, inv.Warnings, "zoo.cfg:1: dataDir: d is not used: --memory keeps all data in memory")
	wantLines(t, problems(t, "", nil, "--memory", "--data-dir", "d"), "--data-dir: cannot be combined with --memory")
}

func TestLoad_CommandLine(t *testing.T) {
	inv := good(t, "dataDir=d", nil, "check-config", "--port-file", "p", "--log-level", "debug", "--log-json")
	if inv.Command != CheckConfig || inv.File != "zoo.cfg" || inv.PortFile != "p" || inv.Config.LogLevel != "debug" || !inv.LogJSON {
		t.Errorf("%+v", inv)
	}
	t.Chdir(t.TempDir())
	write(t, "zoo.cfg", "dataDir=d")
	if inv, err := load([]string{"serve", "zoo.cfg", "--memory"}, func(string) string { return "" }, nil); err != nil || !inv.Config.Memory || inv.File != "zoo.cfg" {
		t.Errorf("flags after the file: %+v %v", inv, err)
	}
	for arg, want := range map[string]Command{"--help": ShowHelp, "-h": ShowHelp, "--version": ShowVersion} {
		if inv := good(t, "", nil, "--log-level", "loud", arg); inv.Command != want {
			t.Errorf("%s: %+v", arg, inv)
		}
	}
	for _, c := range []struct {
		args  []string
		want  string
		usage bool
	}{
		{[]string{"--no-such-flag"}, "command line: flag provided but not defined: -no-such-flag", true},
		{[]string{"-o", "tickTime"}, `command line: invalid value "tickTime" for flag -o: must be KEY=VALUE`, true},
		{[]string{"--log-level", "loud"}, `--log-level: gozkd.logLevel: is "loud"; allowed: trace, debug, info, warn, error, off`, true},
		{[]string{"a.cfg", "b.cfg"}, "command line: one zoo.cfg at most, not a.cfg b.cfg", true},
		{[]string{"--client-port", "none"}, `--client-port: clientPort: is "none"; allowed: a whole number from 0 to 65535`, true},
		{[]string{"missing.cfg", "--memory"}, "missing.cfg: cannot be read: no such file or directory", false},
		{[]string{"."}, ".: cannot be read: is a directory: name a file; --data-dir names the directory of the data", false},
	} {
		t.Chdir(t.TempDir())
		_, err := load(c.args, func(string) string { return "" }, nil)
		var e *Error
		if !errors.As(err, &e) || e.Error() != c.want || e.Usage() != c.usage {
			t.Errorf("%q: %v, want %s, usage error: %t", c.args, err, c.want, c.usage)
		}
	}
}

func TestConfig_Words(t *testing.T) {
	for _, c := range []struct {
		config server.Config
		want   string
	}{
		{server.Config{Words: []string{"stat", "ruok"}}, "ruok srvr stat"},
		{server.Config{Words: []string{"srvr"}, ReadOnlyMode: true}, "isro srvr"},
		{server.Config{Words: []string{"stat", "*"}}, "*"},
	} {
		if got := strings.Join(Config{Server: c.config}.Words(), " "); got != c.want {
			t.Errorf("%v: %s, want %s", c.config.Words, got, c.want)
		}
	}
}

// What java.env gives to Java, ZooKeeper's server has; gozkd, which runs no script, says what it
// lacks.
func TestLoad_ScriptsOfZooKeeper(t *testing.T) {
	const script = `# -Dtickless -Dzookeeper.skipACL=yes
export SERVER_JVMFLAGS="-Dzookeeper.maxCnxns=9 -Djute.maxbuffer=50000000 $SERVER_JVMFLAGS"
export JVMFLAGS='-Xmx1g -Djava.net.preferIPv4Stack=true -Dzookeeper.extendedTypesEnabled=true'
CLIENT_JVMFLAGS="-Dzookeeper.ssl.keyStore.location=/k"
JVMFLAGS="$JVMFLAGS \
-Dzookeeper.authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider -Dzookeeper.log.file=x -Dzookeeper.electionAlg=3"
`
	t.Chdir(t.TempDir())
	write(t, "conf/zoo.cfg", "dataDir=d\nmaxCnxns=5\n")
	write(t, "conf/java.env", script)
	write(t, "conf/zookeeper-env.sh", "export KAFKA_HEAP_OPTS=-Xmx1g\n-Dzookeeper.skipACL=yes\n")
	set := func(name string) string {
		return map[string]string{"JVMFLAGS": "-Dextra -Dzookeeper.extendedTypesEnabled=true"}[name]
	}
	inv, err := load([]string{"conf/zoo.cfg"}, set, nil)
	if err != nil {
		t.Fatal(err)
	}
	const effect = " has no effect, because gozkd runs no script: set it in conf/zoo.cfg, or in SERVER_JVMFLAGS in the environment"
	wantLines(t, inv.Warnings, "conf/java.env:2: jute.maxbuffer:"+effect, "conf/java.env:6: zookeeper.authProvider.1:"+effect,
		"conf/zookeeper-env.sh:2: zookeeper.skipACL:"+effect)
	if inv, err := load([]string{"--memory"}, set, nil); err != nil || len(inv.Warnings) > 0 {
		t.Error(inv.Warnings, err)
	}
}

// A value that a key cannot have is one problem, whatever depends on that key, of a server alone
// and of a member of an ensemble.
func TestLoad_OneProblemPerMistake(t *testing.T) {
	const bad = "no such value"
	const members = "server.1=127.0.0.1:2888:3888;127.0.0.1:2182\nserver.2=127.0.0.2:2888:3888;127.0.0.2:2182\nserver.3=127.0.0.3:2888:3888;127.0.0.3:2182\n"
	tried := 0
	for _, k := range table(new(Config)) {
		if _, ok := k.kind.parse(bad); ok || k.field == nil || strings.Contains(k.name, "*") {
			continue
		}
		for _, others := range []string{"", "secureClientPort=2281\nssl.keyStore.location=a\nssl.trustStore.location=b\n", members} {
			if tried++; k.name != "myid" {
				others += "myid=1\n"
			}
			_, err := in(t, "dataDir=d\n"+others+k.name+"="+bad+"\n", nil)
			var e *Error
			if errors.As(err, &e) && len(e.Problems) > 1 {
				t.Errorf("%s with\n%s\nis reported as\n%v", k.name, others, err)
			}
		}
	}
	if tried < 300 {
		t.Errorf("only %d configurations", tried)
	}
}
