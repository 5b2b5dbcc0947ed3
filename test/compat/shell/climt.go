package shell

import (
	"context"

	"github.com/gozkd/gozkd/test/compat/cases"
	"github.com/gozkd/gozkd/test/compat/install"
)

// CliMT runs the C client's example shell through its script on the server at addr.
func CliMT(ctx context.Context, addr string) (cases.Report, error) {
	path, version := install.CShell(ctx)
	s := script{
		name:     "climt",
		ready:    `^Watcher SESSION_EVENT state = CONNECTED_STATE$`,
		create:   "create %s",
		created:  `^\[%[1]s\]: rc = 0\n\tname = %[1]s$`,
		work:     cliMTWork(),
		leave:    step{"create +e ROOT/e", `name = ROOT/e$`},
		leftover: []step{{"get ROOT/e", `^ROOT/e: rc = -101$`}},
	}
	results, log, err := s.run(ctx, []string{path, "-h", addr})
	return cases.Report{Version: version, Results: results, Log: log}, err
}

// statMT matches the end of a Stat as cli_mt prints it.
func statMT(version, owner string) string {
	return `\tctime = [^\n]+\n\tczxid=[0-9a-f]+\n\tmtime=[^\n]+\n\tmzxid=[0-9a-f]+\n\tversion=` + version +
		`\taversion=0\n\tephemeralOwner = ` + owner + `$`
}

func cliMTWork() []work {
	return []work{
		{"create_kinds", []step{
			{"create +e ROOT/e", `^\[ROOT/e\]: rc = 0\n\tname = ROOT/e$`},
			{"create +s ROOT/s-", `name = ROOT/s-0000000001$`},
			{"create +es ROOT/es-", `name = ROOT/es-0000000002$`},
			{"create +c ROOT/c", `name = ROOT/c$`},
			{"create +t=100000 ROOT/t", `name = ROOT/t$`},
			{"get ROOT/e", `^ROOT/e: rc = 0\n value_len = 3\nnew\nStat:\n` + statMT("0", "[1-9a-f][0-9a-f]*")},
			{"aget ROOT/t", `^ROOT/t: rc = 0\n value_len = 3\nnew\nStat:\n` + statMT("0", "0")},
		}},
		{"create2", []step{{"create2 ROOT/a", `name = ROOT/a\n` + statMT("0", "0")}}},
		{"create_errors", []step{
			{"create ROOT", `^\[ROOT\]: rc = -110`},
			{"create ROOT/no/parent", `^\[ROOT/no/parent\]: rc = -101`},
		}},
		{"set_get", []step{
			{"set ROOT hello", `^ROOT: rc = 0\b`},
			{"get ROOT", `^ROOT: rc = 0\n value_len = 5\nhello\nStat:\n` + statMT("1", "0")},
			{"get ROOT/none", `^ROOT/none: rc = -101`},
			{"set ROOT/none x", `^ROOT/none: rc = -101`},
		}},
		{"ls", []step{
			{"create ROOT/a", `name = ROOT/a$`},
			{"ls ROOT", `^ROOT: rc = 0\n\ta$`},
			{"ls2 ROOT", `^ROOT: rc = 0\n\ta\n`},
			{"ls ROOT/none", `^ROOT/none: rc = -101`},
		}},
		{"delete", []step{
			{"create ROOT/a", `name = ROOT/a$`},
			{"delete ROOT", `^ROOT: rc = -111$`},
			{"delete ROOT/a", `^ROOT/a: rc = 0$`},
			{"exists ROOT/a", `^Error -101 for ROOT/a$`},
		}},
		{"watch", []step{
			{"wexists ROOT/later", `^Error -101 for ROOT/later$`},
			{"create ROOT/later", `^Watcher CREATED_EVENT state = CONNECTED_STATE for path ROOT/later$`},
			{"wexists ROOT/later", ""},
			{"set ROOT/later x", `^Watcher CHANGED_EVENT state = CONNECTED_STATE for path ROOT/later$`},
		}},
		{"sync", []step{{"sync ROOT", `^\[ROOT\]: rc = 0\n\tname = ROOT$`}}},
		{"config", []step{{"config", `^/zookeeper/config: rc = 0\n value_len = 0\n`}}},
		{"reconfig", []step{{"reconfig -add server.9=127.0.0.1:1:2;3", `rc = -\d+`}}},
		{"auth", []step{{"addauth digest joe:secret", ""}, {"get ROOT", `^ROOT: rc = 0\n`}}},
	}
}
