package shell_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/shell"
	"github.com/gozkd/gozkd/internal/testkit/zkclitwin"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/zktest"
)

// TestMain_AsZkCli compares the output with that of zkCli.sh 3.9.5, line by line. make compat
// compares with a running zkCli.sh.
func TestMain_AsZkCli(t *testing.T) {
	zk := zktest.Start(t, zktest.WithConfig(func(_ int, c *server.Config) {
		c.SuperDigest = "super:xQJmxLMiHGwaqBvst5y6rkB6HQs=" // super:admin
	}))
	addr := zk.ConnectString()
	var out bytes.Buffer // both streams, because the shell writes them in turn
	env := cli.Env{In: strings.NewReader(zkclitwin.Script(addr)), Out: &out, Err: &out, Getenv: func(string) string { return "" }}
	status := shell.Main(t.Context(), []string{"-server", addr}, env)
	if status != cli.Failed {
		t.Errorf("exit status %d, want that of the last command before quit, %d", status, cli.Failed)
	}
	results := zkclitwin.Compare(zkclitwin.Recorded, out.String()+"exit status 1\n")
	if len(results) < 10 {
		t.Errorf("only %d cases", len(results))
	}
	for _, r := range results {
		if r.Err != nil {
			t.Errorf("%s:\n%v", r.Name, r.Err)
		}
	}
}
