package shell

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/gozkd/gozkd/test/compat/cases"
	"github.com/gozkd/gozkd/test/compat/install"
)

// DebianZkCli runs Debian's zkCli.sh through its script on the server at addr.
func DebianZkCli(ctx context.Context, addr string) (cases.Report, error) {
	return runZkCli(ctx, []string{install.DebianShell(ctx), "-server", addr}, nil)
}

// MavenZkCli runs the newer ZooKeeper's shell, with more flags for java, through its script on the
// server at addr.
func MavenZkCli(ctx context.Context, root, addr string, flags ...string) (cases.Report, error) {
	command := mavenShell(ctx, root, addr)
	return runZkCli(ctx, slices.Insert(command, 1, flags...), zkCliNewer())
}

// mavenShell returns the command that the newer zkCli.sh runs; the artifact in Maven has no shell
// script.
func mavenShell(ctx context.Context, root, addr string) []string {
	return []string{"java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dlogback.configurationFile=" + filepath.Join(root, "test", "compat", "java", "logback.xml"),
		"-cp", install.MavenZooKeeper(ctx, root), "org.apache.zookeeper.ZooKeeperMain", "-server", addr}
}

func runZkCli(ctx context.Context, command []string, more []work) (cases.Report, error) {
	s := script{
		name:    "zkcli",
		ready:   `^WatchedEvent state:SyncConnected type:None path:null( zxid: -?\d+)?$`,
		create:  "create %s data",
		created: "^Created %s$",
		work:    append(zkCliWork(), more...),
		leave:   step{"create -e ROOT/e", "^Created ROOT/e$"},
		leftover: []step{
			{"stat ROOT/e", "^Node does not exist: ROOT/e$"},
			{"stat ROOT", statOf("numChildren = 0")},
		},
	}
	results, log, err := s.run(ctx, command)
	report := cases.Report{Results: results, Log: log, Version: "unknown"}
	if m := regexp.MustCompile(`ZooKeeper CLI version: (\d+\.\d+\.\d+)`).FindStringSubmatch(log); m != nil {
		report.Version = m[1]
	}
	return report, err
}

// statOf matches a whole printed Stat with the given last lines.
func statOf(end string) string {
	return `^cZxid = 0x[0-9a-f]+\nctime = [^\n]+\nmZxid = 0x[0-9a-f]+\nmtime = [^\n]+\npZxid = 0x[0-9a-f]+\n(\w+ = \w+\n)*` + end + `$`
}

// event matches a printed watch event. The line "WATCHER::" before it is left out: the shell prints
// from two threads, so the command's own output may come between.
func event(typ, path string) string {
	return fmt.Sprintf(`^WatchedEvent state:SyncConnected type:%s path:%s( zxid: -?\d+)?$`, typ, path)
}

func zkCliWork() []work {
	return []work{
		{"version", []step{{"version", `^ZooKeeper CLI version: \d+\.\d+\.\d+`}}},
		{"create_kinds", []step{
			{"create ROOT/persistent x", "^Created ROOT/persistent$"},
			{"create -e ROOT/ephemeral x", "^Created ROOT/ephemeral$"},
			{"create -s ROOT/seq- x", `^Created ROOT/seq-0000000002$`},
			{"create -s -e ROOT/both- x", `^Created ROOT/both-0000000003$`},
			{"create -c ROOT/container", "^Created ROOT/container$"},
			{"create -t 100000 ROOT/ttl", "^Created ROOT/ttl$"},
			{"create -s -t 100000 ROOT/sttl-", `^Created ROOT/sttl-0000000006$`},
			{"stat ROOT/ephemeral", statOf("ephemeralOwner = 0x[1-9a-f][0-9a-f]*\ndataLength = 1\nnumChildren = 0")},
			{"stat ROOT/ttl", statOf("ephemeralOwner = 0x0\ndataLength = 0\nnumChildren = 0")},
		}},
		{"create_errors", []step{
			{"create ROOT", "^Node already exists: ROOT$"},
			{"create ROOT/no/parent", "^Node does not exist: ROOT/no/parent$"},
			{"create -e ROOT/e", "^Created ROOT/e$"},
			{"create ROOT/e/child", "^Ephemerals cannot have children: ROOT/e/child$"},
			{"create relative", "Path must start with / character"},
		}},
		{"create_with_acl", []step{
			{"create ROOT/a data world:anyone:r", "^Created ROOT/a$"},
			{"getAcl ROOT/a", "^'world,'anyone\n: r$"},
			{"set ROOT/a x", "(Authentication is not valid|Insufficient permission|NoAuth).*ROOT/a"},
		}},
		{"ls", []step{
			{"ls ROOT", `^\[\]$`},
			{"create ROOT/b", "^Created"},
			{"create ROOT/a", "^Created"},
			{"create ROOT/a/c", "^Created"},
			{"ls ROOT", `^\[a, b\]$`},
			{"ls -s ROOT", `^\[a, b\]$.*` + statOf("cversion = 2\ndataVersion = 0\naclVersion = 0\nephemeralOwner = 0x0\ndataLength = 4\nnumChildren = 2")},
			{"ls -R ROOT", "^ROOT\nROOT/a\nROOT/b\nROOT/a/c$"},
			{"ls ROOT/none", "^Node does not exist: ROOT/none$"},
		}},
		{"ls_watch", []step{
			{"ls -w ROOT", `^\[\]$`},
			{"create ROOT/a", event("NodeChildrenChanged", "ROOT")},
		}},
		{"get", []step{
			{"get ROOT", "^data$"},
			{"get -s ROOT", "^data\n" + statOf("cversion = 0\ndataVersion = 0\naclVersion = 0\nephemeralOwner = 0x0\ndataLength = 4\nnumChildren = 0")[1:]},
			{"get ROOT/none", "^Node does not exist: ROOT/none$"},
			{"create ROOT/null", "^Created"},
			{"get ROOT/null", "^null$"},
		}},
		{"get_watch", []step{
			{"get -w ROOT", "^data$"},
			{"set ROOT x", event("NodeDataChanged", "ROOT")},
		}},
		{"set", []step{
			{`set -s ROOT "two words"`, statOf("dataVersion = 1\naclVersion = 0\nephemeralOwner = 0x0\ndataLength = 9\nnumChildren = 0")},
			{"get ROOT", "^two words$"},
			{"set -v 1 -s ROOT again", statOf("dataVersion = 2\naclVersion = 0\nephemeralOwner = 0x0\ndataLength = 5\nnumChildren = 0")},
			{"set -v 1 ROOT x", "^version No is not valid : ROOT$"},
			{"set ROOT/none x", "^Node does not exist: ROOT/none$"},
		}},
		{"stat", []step{
			{"stat ROOT", statOf("cversion = 0\ndataVersion = 0\naclVersion = 0\nephemeralOwner = 0x0\ndataLength = 4\nnumChildren = 0")},
			{"stat ROOT/none", "^Node does not exist: ROOT/none$"},
			{"stat -w ROOT", statOf("numChildren = 0")},
			{"delete ROOT", event("NodeDeleted", "ROOT")},
		}},
		{"delete", []step{
			{"create ROOT/a", "^Created"},
			{"delete ROOT", "^Node not empty: ROOT$"},
			{"delete -v 7 ROOT/a", "^version No is not valid : ROOT/a$"},
			{"delete -v 0 ROOT/a", ""},
			{"stat ROOT/a", "^Node does not exist: ROOT/a$"},
			{"delete ROOT/a", "^Node does not exist: ROOT/a$"},
		}},
		{"deleteall", []step{
			{"create ROOT/a", "^Created"},
			{"create ROOT/a/b", "^Created"},
			{"create ROOT/a/c", "^Created"},
			{"deleteall ROOT", ""},
			{"stat ROOT", "^Node does not exist: ROOT$"},
		}},
		{"acl", []step{
			{"getAcl ROOT", "^'world,'anyone\n: cdrwa$"},
			{"setAcl -s ROOT world:anyone:cdra,ip:127.0.0.1:w", statOf("aclVersion = 1\nephemeralOwner = 0x0\ndataLength = 4\nnumChildren = 0")},
			{"getAcl ROOT", "^'world,'anyone\n: cdra\n'ip,'127.0.0.1\n: w$"},
			{"getAcl -s ROOT", ": w\n" + statOf("numChildren = 0")[1:]},
			{"setAcl -v 7 ROOT world:anyone:r", "version No is not valid : ROOT"},
			{"setAcl ROOT nosuch:x:r", "(not valid|Invalid|invalid).*ROOT"},
		}},
		{"add_watch_persistent", []step{
			{"addWatch -m PERSISTENT ROOT", ""},
			{"set ROOT 1", event("NodeDataChanged", "ROOT")},
			{"set ROOT 2", event("NodeDataChanged", "ROOT")},
			{"create ROOT/a", event("NodeChildrenChanged", "ROOT")},
			{"removewatches ROOT", event("PersistentWatchRemoved", "ROOT")},
			{"removewatches ROOT", "No such watcher"},
		}},
		{"add_watch_recursive", []step{
			{"addWatch -m PERSISTENT_RECURSIVE ROOT", ""},
			{"create ROOT/a", event("NodeCreated", "ROOT/a")},
			{"create ROOT/a/b", event("NodeCreated", "ROOT/a/b")},
			{"set ROOT/a/b 1", event("NodeDataChanged", "ROOT/a/b")},
			{"delete ROOT/a/b", event("NodeDeleted", "ROOT/a/b")},
			{"removewatches ROOT", event("PersistentWatchRemoved", "ROOT")},
		}},
		{"quota", []step{
			{"setquota -n 3 ROOT", ""},
			{"listquota ROOT", `absolute path is /zookeeper/quotaROOT/zookeeper_limits.*Output quota for ROOT count=3,bytes=-1.*Output stat for ROOT count=1,bytes=4`},
			{"setquota -b 100 ROOT", ""},
			{"create ROOT/a 12345", "^Created"},
			{"listquota ROOT", `Output quota for ROOT count=3,bytes=100.*Output stat for ROOT count=2,bytes=9`},
			{"get /zookeeper/quotaROOT/zookeeper_stats", `^count=2,bytes=9`},
			{"delquota -n ROOT", ""},
			{"listquota ROOT", `Output quota for ROOT count=-1,bytes=100`},
			{"delquota ROOT", ""},
			{"listquota ROOT", "quota for ROOT does not exist"},
			{"setquota -n 3 ROOT/none", "ROOT/none does not exist|Node does not exist: ROOT/none"},
		}},
		{"get_ephemerals", []step{
			{"create -e ROOT/e1", "^Created"},
			{"create -e ROOT/e2", "^Created"},
			{"getEphemerals ROOT", `^\[ROOT/e[12], ROOT/e[12]\]$`},
			{"getEphemerals ROOT/e2", `^\[ROOT/e2\]$`},
			{"getEphemerals", `^\[.*ROOT/e2.*\]$`},
		}},
		{"get_all_children_number", []step{
			{"create ROOT/a", "^Created"},
			{"create ROOT/a/b", "^Created"},
			{"getAllChildrenNumber ROOT", "^2$"},
		}},
		{"sync", []step{{"sync ROOT", "^Sync is OK$"}}},
		{"config", []step{
			{"get -s /zookeeper/config", statOf("dataVersion = 0\naclVersion = -1\nephemeralOwner = 0x0\ndataLength = 0\nnumChildren = 0")},
			{"reconfig -add server.9=127.0.0.1:1:2;3", "^KeeperErrorCode = |^No quorum|^Insufficient permission|^Authentication"},
		}},
		{"unknown_command", []step{{"nosuchcommand", "^Command not found: Command not found nosuchcommand$"}}},
		{"whoami", []step{{"whoami", `^Auth scheme: User\nip: 127\.0\.0\.1$`}}},
		// These give the session an identity, which it keeps.
		{"auth", []step{
			{"addauth digest joe:secret", ""},
			{"whoami", `^digest: joe$`},
			{"setAcl -R ROOT auth::cdrwa", ""},
			{"getAcl ROOT", "^'digest,'joe:oesAybBun9icKJjQSTRN8OBueSc=\n: cdrwa$"},
			{"get ROOT", "^data$"},
			{"create ROOT/a data digest:ann:x:cdrwa", "^Created"},
			{"get ROOT/a", "(Authentication is not valid|Insufficient permission|NoAuth).*ROOT/a"},
		}},
		{"reconnect", []step{
			{"close", `state:Closed type:None path:null`},
			{"connect", `state:SyncConnected type:None path:null`},
			{"get ROOT", "^data$"},
		}},
	}
}

// zkCliNewer is the work that the newer shell can do and Debian's cannot.
func zkCliNewer() []work {
	return []work{
		{"quota_hard", []step{
			{"setquota -N 2 ROOT", ""},
			{"listquota ROOT", `count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=2|countHardLimit=2`},
			{"delquota -N ROOT", ""},
			{"listquota ROOT", `countHardLimit=-1`},
		}},
	}
}
