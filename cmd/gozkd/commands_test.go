package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/server"
)

// TestAsGozkd calls ZooKeeper's scripts by the program's name and as the first argument.
func TestAsGozkd(t *testing.T) {
	for _, c := range []struct{ name, args, want string }{
		{"/usr/bin/gozkd", "serve zoo.cfg", "serve zoo.cfg"},
		{"gozkd", "start-foreground", "start-foreground"},
		{"/opt/zookeeper/bin/zkServer.sh", "start-foreground zoo.cfg", "start-foreground zoo.cfg"},
		{"gozkd", "zkServer.sh start-foreground", "start-foreground"},
		{"gozkd", "/opt/bin/zkServer.sh status", "status"},
		{"zkServer", "stop", "stop"},
		{"zkCli.sh", "-server a:1 ls /", "cli -server a:1 ls /"},
		{"gozkd", "zkCli.sh ls /", "cli ls /"},
		{"zkCleanup.sh", "-n 3", "zkCleanup -n 3"},
		{"zkServer-initialize.sh", "--myid 3", "init --myid 3"},
		{"zkServer.sh", "", "false"},
		{"zkServer.sh", "serve", "false"},
		{"gozkd", "zkServer.sh begin", "false"},
		{"gozkd", "", ""},
	} {
		args, ok := asGozkd(c.name, strings.Fields(c.args))
		if got := strings.Join(args, " "); ok && got != c.want || !ok && c.want != "false" {
			t.Errorf("%s %s: %q %t, want %s", c.name, c.args, args, ok, c.want)
		}
	}
}

// TestHelp: the help lists all commands, and only commands.
func TestHelp(t *testing.T) {
	_, list, _ := strings.Cut(config.Help, "\ncommands:\n")
	list, _, _ = strings.Cut(list, "\nflags of serve:")
	for name := range commands {
		if !strings.Contains(list, "\n  "+name+" ") {
			t.Errorf("%s is a command, and not in the help", name)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z][a-z-]*)`).FindAllStringSubmatch(list, -1) {
		if commands[m[1]] == nil && zkServerCommands[m[1]] == nil && !slices.Contains([]string{"serve", "check-config", "start-foreground"}, m[1]) {
			t.Errorf("%s is in the help, and no command", m[1])
		}
	}
}

func TestWords(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("configuration", []byte("dataDir=d\ntickTime=77\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll("conf", 0o755); err != nil {
		t.Fatal(err)
	}
	const lines = "initLimit=10\nsyncLimit=5\nserver.1=127.0.0.1:2:3\nserver.2=127.0.0.1:4:5\n"
	for name, text := range map[string]string{"wrong.cfg": "dataDir=d\ntickTime=x\n", "conf/zoo.cfg": "dataDir=d\n",
		"members.cfg": "dataDir=later\n" + lines, "secret.cfg": "dataDir=d\nmyid=1\ngozkd.peer.secretFile=later/secret\n" + lines,
		"both.cfg": "dataDir=later\ntickTime=x\n" + lines, "conf/other.cfg": "dataDir=d\ntickTime=79\n"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args           string
		status         int
		stdout, stderr string // contained; empty: no output
	}{
		{"version", 0, "gozkd " + server.Version, ""},
		{"zkServer.sh version", 0, "gozkd " + server.Version, ""},
		{"zkCleanup.sh -n 3", 0, "Nothing to clean up", ""},
		{"start", 1, "", "systemctl start gozkd"},
		{"zkServer.sh stop", 1, "", "SIGTERM"},
		{"zkServer.sh jump", 2, "", zkServerUsage},
		{"print-cmd configuration", 0, "' 'serve' 'configuration'\n", ""},
		{"check-config configuration", 0, "tickTime=77\n", ""},
		{"serve wrong.cfg", 2, "", "gozkd: wrong.cfg:2: tickTime: is \"x\""},
		{"check-config wrong.cfg", 1, "", "gozkd: wrong.cfg:2: tickTime: is \"x\""},
		{"zkServer.sh --config conf print-cmd", 0, "' 'serve' '" + filepath.Join("conf", "zoo.cfg") + "'\n", ""},
		{"zkServer.sh --config conf print-cmd other.cfg", 0, "' 'serve' '" + filepath.Join("conf", "other.cfg") + "'\n", ""},
		// A missing configuration file is as wrong as a bad one, so that a service manager does not
		// try for ever. Other missing files, such as myid, may be on the late mount of dataDir.
		{"zkServer.sh --config none start-foreground", 2, "", "cannot be read"},
		{"serve later/zoo.cfg", 2, "", "cannot be read"},
		{"serve members.cfg", 1, "", "the number of this server is not configured"},
		{"serve secret.cfg", 1, "", "gozkd.peer.secretFile: is later/secret"},
		{"serve both.cfg", 2, "", "tickTime: is \"x\""},
		{"zkServer.sh --config", 2, "", zkServerUsage},
		{"zkCleanup.sh --config conf", 0, "Nothing to clean up", ""},
		{"check-confg", 2, "", "gozkd: check-confg is neither a command nor a file; did you mean check-config?\n\nusage: gozkd "},
		{"qwertzuiop", 2, "", "gozkd: qwertzuiop is neither a command nor a file\n\nusage: gozkd "},
		{"check-config -Dzookeeper.tickTime=78 -Djava.net.preferIPv4Stack=true -Dgozkd.pprof=true", 0, "tickTime=78\n", ""},
		{"init --myid", 2, "", "usage: gozkd init"},
		{"init now", 2, "", "usage: gozkd init"},
		{"init --help", 0, "usage: gozkd init", ""},
		{"help", 0, "usage: gozkd [serve]", ""},
		{"help serve", 0, "usage: gozkd [serve]", ""},
		{"help init", 0, "usage: gozkd init", ""},
		{"help migrate", 0, "usage: gozkd migrate", ""},
		{"help cli", 0, "usage: gozkd cli", ""},
		{"help verfy", 2, "", "did you mean verify?"},
		{"help nope", 2, "", "gozkd: nope is neither a command nor a file\n\nusage: gozkd "},
		{"init --myid x", 1, "", "gozkd: init: --id: myid: is \"x\"; allowed: a whole number from 0 to 254"},
	} {
		var stdout, stderr strings.Builder
		status := run("gozkd", strings.Fields(c.args), outside(&stdout, &stderr))
		if status != c.status {
			t.Errorf("%s: exit status %d, want %d", c.args, status, c.status)
		}
		for _, o := range []struct{ name, got, want string }{{"stdout", stdout.String(), c.stdout}, {"stderr", stderr.String(), c.stderr}} {
			if !strings.Contains(o.got, o.want) || (o.want == "") != (o.got == "") {
				t.Errorf("%s: %s is\n%s\nwant\n%s", c.args, o.name, o.got, o.want)
			}
		}
	}
}

// init prepares a directory once, and never changes existing data.
func TestInit(t *testing.T) {
	dir := t.TempDir()
	zooCfg, data := filepath.Join(dir, "zoo.cfg"), filepath.Join(dir, "data")
	if err := os.WriteFile(zooCfg, []byte("dataDir="+filepath.ToSlash(data)+"\nserver.1=a:1\nserver.2=b:1\nserver.3=c:1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	try := func(args ...string) (int, string) {
		var stdout, stderr strings.Builder
		return run("zkServer-initialize.sh", args, outside(&stdout, &stderr)), stderr.String()
	}
	if status, said := try("--configfile", zooCfg); status != 1 || !strings.Contains(said, "the number of this server is not configured") {
		t.Errorf("without a number: %d %s", status, said)
	}
	for range 2 {
		if status, said := try("--configfile", zooCfg, "--myid", "2"); status != 0 {
			t.Fatalf("%d %s", status, said)
		}
	}
	if got, err := os.ReadFile(filepath.Join(data, "myid")); err != nil || string(got) != "2\n" {
		t.Errorf("myid %q %v", got, err)
	}
	if status, said := try("--configfile", zooCfg, "--myid=3"); status != 1 || !strings.Contains(said, "myid contains 2") {
		t.Errorf("another number: %d %s", status, said)
	}
	if err := os.WriteFile(filepath.Join(data, "checkpoint.db"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if status, said := try("--force", "--configfile", zooCfg, "--myid=2"); status != 1 || !strings.Contains(said, "init does not change the data of a server") {
		t.Errorf("with data: %d %s", status, said)
	}
}

// With --until, init prepares a new server until then, and is harmless afterwards and with data.
func TestInit_Until(t *testing.T) {
	dir := t.TempDir()
	for i, c := range []struct {
		until    string
		data     bool
		status   int
		prepared bool
	}{
		{time.Now().Add(time.Hour).Format(time.RFC3339), false, 0, true},
		{time.Now().Add(time.Hour).Format(time.RFC3339), true, 0, false},
		{time.Now().Add(-time.Hour).Format(time.RFC3339), false, 0, false},
		{"", false, 0, false},
		{"2026-11-23 12:00", false, 0, false},
		{"tomorrow", false, 2, false},
		{"tomorrow", true, 0, false},
		{"0x100000002", false, 2, false},
	} {
		data := filepath.Join(dir, strconv.Itoa(i))
		if c.data {
			if err := os.MkdirAll(filepath.Join(data, "wal"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		var stdout, stderr strings.Builder
		status := run("gozkd", []string{"init", "--until", c.until, "--data-dir", data}, outside(&stdout, &stderr))
		_, err := os.Stat(filepath.Join(data, "initialize"))
		explained := strings.Contains(stderr.String(), "is no time: name one such as 2026-11-23T08:00:00Z")
		if status != c.status || (err == nil) != c.prepared || explained != (status != 0) {
			t.Errorf("%+v: status %d, %s%s, file: %v", c, status, &stdout, &stderr, err)
		}
	}
}
