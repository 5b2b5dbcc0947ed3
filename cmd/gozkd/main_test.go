package main

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/server"
)

// outside returns an environment without input and variables.
func outside(out, err io.Writer) cli.Env {
	return cli.Env{In: strings.NewReader(""), Out: out, Err: err, Getenv: func(string) string { return "" }}
}

func TestRun(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"good.cfg": "dataDir=d\ntickTme=1\n", "bad.cfg": "dataDir=d\ntickTime=x\nclientPort=y\n"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args           string
		status         int
		stdout, stderr string // contained; empty: no output
	}{
		{"--help", 0, config.Help, ""},
		{"--version", 0, "gozkd " + server.Version, ""},
		{"check-config", 0, "dataDir=gozkd-data\n", ""},
		{"check-config good.cfg", 0, "tickTime=3000\n", "gozkd: warning: good.cfg:2: tickTme: "},
		{"check-config bad.cfg", 1, "", "gozkd: bad.cfg:2: tickTime: is \"x\"; allowed: a whole number from 1 to 107374182\ngozkd: bad.cfg:3: clientPort: "},
		{"check-config -o gozkd.web.roles=boss=sasl:x", 2, "", `gozkd.web.roles: is "(hidden)": role "boss" is unknown`},
		{"-o gozkd.web.roles=boss=sasl:x", 2, "", `gozkd.web.roles: is "(hidden)": role "boss" is unknown`},
		{"check-config nowhere.cfg", 1, "", "gozkd: nowhere.cfg: cannot be read: "},
		{"--nonsense", 2, "", "gozkd: command line: flag provided but not defined: -nonsense\n\nusage: gozkd "},
		{"check-config --id 1 -o server.1=a:1 -o server.2=b:1 -o server.3=c:1", 0, "server.2=b:1:0:participant\n", ""},
		{"--client-port x", 2, "", "usage: gozkd "},
		{"inspect nowhere", 1, "", "stat nowhere: no such file or directory; name the dataDir of a server, "},
		{"history /a nowhere", 1, "", "stat nowhere: no such file or directory; name the dataDir of a server, "},
		{"inspect minio://me:secret@b", 1, "", "stat (hidden): no such file"},
		{"history /a minio://me:secret@b", 1, "", "history: (hidden): stat (hidden): no such file"},
		{"inspect s3:me:secret@b", 1, "", `inspect: (hidden): "(hidden)" is neither`},
		{"export --zookeeper d --from nowhere", 1, "", "stat nowhere: no such file or directory; name the dataDir of a server, "},
		{"restore --from nowhere --into d", 1, "", "stat nowhere: no such file or directory; name the dataDir of a server, "},
		{"cli -server 127.0.0.1:1 ls /", 1, "", "connection refused; name another server with -server"},
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

// A zoo.cfg may be a pipe, as in `gozkd <(generate)`, so it is not read before the program starts
// again.
func TestRun_BeforeServe(t *testing.T) {
	const file = "zoo.cfg"
	t.Chdir(t.TempDir())
	var stderr strings.Builder
	env := outside(io.Discard, &stderr)
	env.BeforeServe = func() {
		if err := os.WriteFile(file, []byte("clientPort=y\n"), 0o644); err != nil {
			t.Error(err)
		}
	}
	if run("gozkd", []string{"serve", file}, env); !strings.Contains(stderr.String(), "zoo.cfg:1: clientPort: ") {
		t.Error(stderr.String())
	}
}
