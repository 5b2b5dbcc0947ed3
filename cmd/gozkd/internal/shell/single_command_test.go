package shell

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/zktest"
)

// runOne runs one command and compares its output and exit status.
func runOne(t *testing.T, connect, line string, want ranCLI) {
	t.Helper()
	got := runCLI(t, "", nil, append([]string{"-server", connect}, split(line)...)...)
	if got != want {
		t.Errorf("%s:\n got %+v\nwant %+v", line, got, want)
	}
}

func TestSingleCommand(t *testing.T) {
	at := zktest.Start(t).ConnectString()
	runOne(t, at, "create /a one", ranCLI{err: "Created /a\n"})
	runOne(t, at, "get /a", ranCLI{out: "one"})
	runOne(t, at+"/a", "get /", ranCLI{out: "one"})
	runOne(t, at, "get -b /a", ranCLI{out: "b25l\n"})
	runOne(t, at, "set /a -b gP8AZA==", ranCLI{})
	runOne(t, at, "get /a", ranCLI{out: "\x80\xFF\x00d"})
	runOne(t, at, "create /null", ranCLI{err: "Created /null\n"})
	runOne(t, at, "get /null", ranCLI{})
	runOne(t, at, "ls /", ranCLI{out: "[a, null, zookeeper]\n"})
	runOne(t, at, "create -e /gone", ranCLI{err: "Created /gone\n"})
	runOne(t, at, "stat /gone", ranCLI{status: cli.Failed, err: "Node does not exist: /gone\n"})
	runOne(t, at, "get -w /a", ranCLI{out: "\x80\xFF\x00d"})
	runOne(t, at, "set -v 7 /a x", ranCLI{status: cli.Failed, err: "version No is not valid : /a\n"})
	runOne(t, at, "deleteall /none", ranCLI{status: cli.Failed, err: "Node does not exist: /none\n"})
	runOne(t, at, "setAcl /a digest:ann:x:cdrwa", ranCLI{})
	runOne(t, at, "setAcl -R /a world:anyone:r", ranCLI{status: cli.Failed, err: "Insufficient permission : /a\n"})
	runOne(t, at, "delquota /a", ranCLI{status: cli.Failed, out: "Quota does not exist for /a\n"})
	runOne(t, at, "quit", ranCLI{})
	if got := runCLI(t, "", nil, "-server", at, "get", "-s", "/a"); got.status != cli.Failed {
		t.Errorf("without permission: %+v", got)
	}
	if got := runCLI(t, "", nil, "-server", at, "get", "-s", "/null"); !strings.HasPrefix(got.out, "cZxid = 0x") {
		t.Errorf("the Stat of a znode without data: %+v", got)
	}
}

// The paths of a subtree may be longer together than a server takes in a request.
func TestSingleCommand_DeleteAllOfLongPaths(t *testing.T) {
	ensemble := zktest.Start(t)
	at, c := ensemble.ConnectString(), ensemble.Client(t)
	path := ""
	for range 30 {
		path += "/" + strings.Repeat("n", 3000)
		if _, _, err := c.Create(t.Context(), path, nil, client.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	runOne(t, at, "deleteall "+path[:3001], ranCLI{})
	runOne(t, at, "ls /", ranCLI{out: "[zookeeper]\n"})
}

// A wrong command line is reported without connecting: no server runs.
func TestSingleCommand_Usage(t *testing.T) {
	const nowhere = "127.0.0.1:1"
	runOne(t, nowhere, "delete", ranCLI{status: cli.Usage, err: "delete [-v version] path\n"})
	runOne(t, nowhere, "delete -q /a", ranCLI{status: cli.Usage,
		err: "org.apache.commons.cli.UnrecognizedOptionException: Unrecognized option: -q\ndelete [-v version] path\n"})
	runOne(t, "a:b:c", "ls /", ranCLI{status: cli.Usage,
		err: "gozkd cli: connect string \"a:b:c\": address a:b:c: too many colons in address\n" + Usage + "\n"})
	runOne(t, nowhere, "crete /a", ranCLI{status: cli.Usage, err: "Command not found: crete; did you mean create? help lists all commands\n"})
	for _, name := range []string{"nosuch", "rmr", "rm", "cat", "x", "sl", "日本"} { // a suggestion would be a guess
		runOne(t, nowhere, name+" /", ranCLI{status: cli.Usage, err: "Command not found: " + name + "; help lists all commands\n"})
	}
	runOne(t, nowhere, "LS /", ranCLI{status: cli.Usage, err: "Command not found: LS; did you mean ls? help lists all commands\n"})
	for _, args := range [][]string{{"-server"}, {"-timeout", "soon"}, {"-timeout", "0"}, {"--output", "xml"}, {"-nosuch"}, {"--key", "f"}} {
		if got := runCLI(t, "", nil, args...); got.status != cli.Usage || got.out != "" || !strings.HasSuffix(got.err, Usage+"\n") {
			t.Errorf("%q: %+v", args, got)
		}
	}
	if got := runCLI(t, "", nil, "-client-configuration", "nosuch"); got.status != cli.Failed || !strings.Contains(got.err, "-client-configuration: open nosuch") {
		t.Errorf("a missing file: %+v", got)
	}
	if got := runCLI(t, "", nil, "--help"); got.status != cli.OK || !strings.HasPrefix(got.out, Usage) ||
		!strings.Contains(got.out, "\n\tls [-s] [-w] [-R] path\n") {
		t.Errorf("--help: %+v", got)
	}
	if got := runCLI(t, "", nil, "-server", nowhere, "help", "delete"); got.status != cli.OK ||
		got.out != "delete [-v version] path\ndelete a znode without children\n -v <arg>   version\n" {
		t.Errorf("help delete: %+v", got)
	}
}

func TestSingleCommand_Unreachable(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections but never answers
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := silent.Close(); err != nil {
			t.Error(err)
		}
	}()
	// A refused connection needs no timeout that a busy machine could miss.
	got := runCLI(t, "", nil, "-server", "127.0.0.1:1", "ls", "/")
	if want := "gozkd cli: no session: 127.0.0.1:1: connect: connection refused; name another server with -server, or start one there, such as gozkd serve\n"; got.status != cli.Failed || got.out != "" || got.err != want {
		t.Errorf("%+v, want %q", got, want)
	}
	began := time.Now()
	got = runCLI(t, "", nil, "-waitforconnection", "-timeout", "300", "-server", "127.0.0.1:1", "ls", "/")
	if took := time.Since(began); got.status != cli.Failed || took < 300*time.Millisecond {
		t.Errorf("-waitforconnection gives up after %v: %+v", took, got)
	}
	soon := watchdog.Context(t, 20*time.Second)
	got = runCLI(t, "", nil, "-timeout", "200", "-server", silent.Addr().String(), "ls", "/")
	if soon.Err() != nil {
		t.Error("it took more than 20 s to see that nobody answers within 200 ms")
	}
	if got.status != cli.Failed || got.out != "" || !strings.Contains(got.err, silent.Addr().String()+": ") {
		t.Errorf("%+v", got)
	}
	got = runCLI(t, "", nil, "-server", "127.0.0.1:1,127.0.0.1:2", "ls", "/")
	for _, want := range []string{"127.0.0.1:1: ", "127.0.0.1:2: "} {
		if got.status != cli.Failed || !strings.Contains(got.err, want) {
			t.Errorf("%q is not said: %+v", want, got)
		}
	}
}

func TestScript(t *testing.T) {
	at := zktest.Start(t).ConnectString()
	const begin = "Connecting to AT\nWelcome to ZooKeeper!\n"
	for _, c := range []struct {
		name, in string
		want     ranCLI
	}{
		{"no newline at the end", "create /a 1\r\n\nget /a", ranCLI{out: begin + "1\n", err: "Created /a\n"}},
		{"the status is that of the last command", "get /none\nget /a\n", ranCLI{out: begin + "1\n", err: "Node does not exist: /none\n"}},
		{"the last fails", "get /a\nget /none\n", ranCLI{cli.Failed, begin + "1\n", "Node does not exist: /none\n"}},
		{"blank lines at the end", "get /none\n\n  \n", ranCLI{cli.Failed, begin, "Node does not exist: /none\n"}},
		{"the last is wrong", "ls\n", ranCLI{cli.Usage, begin, "ls [-s] [-w] [-R] path\n"}},
		{"quit ends it", "get /none\nquit\nget /a\n", ranCLI{cli.Failed, begin, "Node does not exist: /none\n"}},
		{"redo", "get /a\nredo 0\nredo 1\nredo 2\nhistory\n", ranCLI{
			out: begin + "1\n1\n1\n1\n0 - get /a\n1 - get /a\n2 - get /a\n3 - get /a\n4 - history\n"}},
		{"without a session", "close\nget /a\n", ranCLI{cli.Failed, begin + "Not connected\n", ""}},
		{"words that are wrong", "printwatches maybe\nredo\nredo x\n", ranCLI{cli.Usage, begin,
			"printwatches on|off\nredo cmdno\nx is not a number\nredo cmdno\n"}},
	} {
		c.want.out = strings.ReplaceAll(c.want.out, "AT", at)
		got := runCLI(t, c.in, nil, "-server", at)
		got.out = withoutWatcher(got.out)
		if got != c.want {
			t.Errorf("%s:\n got %+v\nwant %+v", c.name, got, c.want)
		}
	}
}

// withoutWatcher removes events, which arrive at any time.
func withoutWatcher(out string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(out, "\nWATCHER::\n\nWatchedEvent ") {
		if b.Len() > 0 {
			_, part, _ = strings.Cut(part, "\n")
		}
		b.WriteString(part)
	}
	return b.String()
}

// TestReconfig removes a member and adds it again.
func TestReconfig(t *testing.T) {
	zk := zktest.StartEnsemble(t, 3, zktest.WithConfig(func(_ int, c *server.Config) {
		c.ReconfigEnabled = true
		c.SkipACL = true
	}))
	at := zk.ConnectString()
	var config ranCLI
	var lines []string
	for late := watchdog.Context(t, 10*time.Second); len(lines) != 4 && late.Err() == nil; { // a new ensemble stores its members soon
		config = runCLI(t, "", nil, "-server", at, "config")
		lines = strings.Split(strings.TrimSpace(config.out), "\n")
	}
	if config.status != cli.OK || len(lines) != 4 || !strings.HasPrefix(lines[2], "server.3=") {
		t.Fatalf("config: %+v", config)
	}
	got := runCLI(t, "", nil, "-server", at, "reconfig", "-remove", "3", "-s")
	if got.status != cli.OK || !strings.HasPrefix(got.out, "Committed new configuration:\n"+lines[0]+"\n"+lines[1]+"\nversion=") ||
		!strings.Contains(got.out, "\ncZxid = 0x0\n") || got.err != "" {
		t.Errorf("reconfig -remove: %+v", got)
	}
	if got := runCLI(t, "", nil, "-server", at, "config", "-c"); strings.Count(got.out, ",") != 1 {
		t.Errorf("config -c of two: %+v", got)
	}
	got = runCLI(t, "", nil, "-server", at, "reconfig", "-v", "1", "-add", lines[2])
	if want := "version No is not valid : \n"; got.status != cli.Failed || got.err != want {
		t.Errorf("reconfig of another version: %+v, want %q", got, want)
	}
	// The server's code does not say why; ZooKeeper's shell prints the last line alone.
	for what, arguments := range map[string][]string{
		"server.5=127.0.0.1:1": {"-add", "server.5=127.0.0.1:1"}, "participants would be left": {"-members", lines[0]}, "server.6": {"-remove", "server.6"},
	} {
		got = runCLI(t, "", nil, append([]string{"-server", at, "reconfig"}, arguments...)...)
		if reason, answer, _ := strings.Cut(got.err, "\n"); got.status != cli.Failed || !strings.Contains(reason, what) || answer == "" {
			t.Errorf("reconfig %v: %+v", arguments, got)
		}
	}
	got = runCLI(t, "", nil, "-server", at, "reconfig", "-add", lines[2])
	if got.status != cli.OK || !strings.Contains(got.out, lines[2]) || got.err != "" {
		t.Errorf("reconfig -add: %+v", got)
	}
	// Like ZooKeeper, a reconfig takes a server that is no member, and one that does not run.
	got = runCLI(t, "", nil, "-server", at, "reconfig", "-remove", "9,3")
	if want := "server.9 was not a member of the ensemble: there was nothing to remove\n"; got.status != cli.OK || got.err != want {
		t.Errorf("reconfig -remove of an unknown server: %+v, want %q", got, want)
	}
	for _, line := range []string{"server.5=127.0.0.1:1:2:observer;127.0.0.1:3", "server.6=127.0.0.1:4:5:observer;3"} { // nobody listens there
		got = runCLI(t, "", nil, "-server", at, "reconfig", "-add", line)
		if got.status != cli.OK || !strings.HasPrefix(got.err, line[:len("server.5")]+" is a member now, but does not answer clients: dial tcp 127.0.0.1:3: ") ||
			strings.Count(got.err, "\n") != 1 {
			t.Errorf("reconfig -add of a server that does not run: %+v", got)
		}
	}
}
