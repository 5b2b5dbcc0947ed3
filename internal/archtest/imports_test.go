package archtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// arrow allows an import. A package of ours is named from the module's root, another by a prefix of
// its path. A name that ends in "/..." allows everything below it.
type arrow struct{ to, because string }

// box is a package of the table or, with a name that ends in "/...", all packages below a directory.
type box struct {
	pkg string
	// there: the test fails if the package does not exist.
	there bool
	may   []arrow
}

// table is the floor plan: the imports that a package may have besides the standard library. Tests
// are not restricted.
var table = []box{
	{pkg: "proto/jute", there: true},
	{pkg: "internal/invariants", there: true},
	{pkg: "internal/vfs", there: true, may: []arrow{
		{"golang.org/x/sys", "preallocation, fdatasync and directory locks are system calls"},
	}},
	{pkg: "internal/memnet", there: true},
	{pkg: "internal/memlimit", there: true},
	{pkg: "internal/tcpport", there: true},
	{pkg: "internal/memberdir", there: true},
	{pkg: "internal/lastzxid", there: true},
	{pkg: "internal/archtest", there: true},
	{pkg: "internal/testca", there: true},
	{pkg: "internal/tlsreason", there: true},
	{pkg: "internal/x509name", there: true},
	{pkg: "internal/certhost", there: true},
	{pkg: "internal/secretfile", there: true},
	{pkg: "internal/tlsconf", there: true, may: []arrow{
		{"internal/tlsreason", "its refusals say why"},
		{"internal/certhost", "the hosts of certificates"},
		{"internal/secretfile", "keys and passwords"},
		{"software.sslmate.com/src/go-pkcs12", "reads PKCS12"},
		{"github.com/hashicorp/go-hclog", "logging"},
	}},
	{pkg: "internal/version", there: true},
	{pkg: "sasl", there: true, may: []arrow{{"internal/secretfile", "JAAS files hold passwords"}}},
	{pkg: "sasl/kerberos/principal", there: true},
	{pkg: "sasl/kerberos", there: true, may: []arrow{
		{"sasl", "implements both sides"},
		{"internal/secretfile", "keytabs"},
		{"sasl/kerberos/principal", "ids of clients"},
		{"github.com/jcmturner/gokrb5/v8", "tickets, keys, ciphers, KDCs"},
		{"github.com/hashicorp/go-hclog", "logging"},
	}},
	{pkg: "internal/histogram", there: true},
	{pkg: "internal/printable", there: true},
	{pkg: "internal/lograte", there: true, may: []arrow{{"github.com/hashicorp/go-hclog", "wraps its loggers"}}},

	{pkg: "proto", there: true, may: []arrow{
		{"proto/jute", "records are made of the encoding's primitives"},
	}},
	{pkg: "internal/faultproxy", there: true, may: []arrow{
		{"proto", "op codes, headers and error codes of the frames that pass"},
		{"proto/jute", "decodes and builds them"},
	}},
	{pkg: "internal/zkfiles", there: true, may: []arrow{
		{"proto", "zxids, ACLs and op codes"},
		{"proto/jute", "ZooKeeper's files are in the encoding of its protocol"},
	}},
	{pkg: "internal/serverlist", there: true, may: []arrow{{"proto", "zxids and error codes"}}},
	{pkg: "wal", there: true, may: []arrow{
		{"internal/vfs", "the disk is handed in, so that tests can crash it"},
		{"github.com/hashicorp/go-hclog", "logging"},
	}},
	{pkg: "datatree", there: true, may: []arrow{
		{"proto", "the vocabulary of requests and replies"},
		{"proto/jute", "a request is applied from the client's own bytes"},
		{"internal/serverlist", "the rules of reconfig"},
		{"internal/zkfiles", "ZooKeeper's transactions, which a replay applies"},
		{"github.com/cespare/xxhash/v2", "the digest"},
	}},
	{pkg: "audit", there: true, may: []arrow{{"proto", "identities, ACLs, session ids and error codes"}}},
	{pkg: "session", there: true, may: []arrow{{"proto", "session ids"}}},
	{pkg: "watch", there: true, may: []arrow{{"proto", "events and session ids"}}},
	{pkg: "consensus/peer", there: true, may: []arrow{
		{"internal/tlsreason", "why a handshake failed"},
		{"internal/certhost", "the hosts of certificates"},
		{"github.com/hashicorp/go-hclog", "logging"},
	}},
	{pkg: "consensus/internal/checkpoint", there: true, may: []arrow{
		{"internal/vfs", "the disk is handed in"},
	}},
	{pkg: "consensus/internal/core", there: true, may: []arrow{
		{"go.etcd.io/raft/v3", "the consensus algorithm"},
		{"google.golang.org/protobuf", "raft's messages are protobuf"},
	}},
	{pkg: "consensus/internal/turn", there: true, may: []arrow{
		{"consensus/internal/core", "the work of which it carries out"},
		{"go.etcd.io/raft/v3", "appends are raft's messages"},
	}},
	{pkg: "consensus", there: true, may: []arrow{
		{"consensus/internal/core", "requests, messages and the state on disk"},
		{"consensus/internal/turn", "the order of the loop's work"},
		{"consensus/internal/checkpoint", "the state on disk, and on its way between members"},
		{"consensus/peer", "the network between members"},
		{"wal", "raft's log on disk"},
		{"internal/vfs", "the disk is handed in"},
		{"go.etcd.io/raft/v3", "the log in memory is raft's"},
		{"github.com/hashicorp/go-hclog", "logging"},
	}},
	{pkg: "recipes", there: true, may: []arrow{
		{"recipes/internal/znodepath", "joins and splits paths"},
		{"recipes/internal/backoff", "pauses between attempts"},
		{"recipes/internal/checkedctx", "contexts that look at the clock themselves"},
		{"recipes/internal/guid", "names of protected znodes"},
		{"internal/lastzxid", "a race and a fault in go-zookeeper"},
		{"internal/clientauth", "TLS and SASL on a new connection"},
		{"sasl", "the mechanism is handed in"},
		{"github.com/go-zookeeper/zk", "the client that recipes run on; never our server"},
		{"golang.org/x/sys", "a clock that counts while the machine is suspended"},
	}},
	{pkg: "recipes/internal/recipetest", there: true, may: []arrow{
		{"internal/lastzxid", "a race in go-zookeeper that tests must not report"},
		{"recipes", "opens clients"},
		{"zktest", "servers, and faults in them"},
		{"server", "a server for examples, which have no testing.TB"},
		{"github.com/go-zookeeper/zk", "connections that report their requests"},
		{"internal/testkit/...", "shared helpers of tests"},
		{"pgregory.net/rapid", "draws faults"},
		{"go.uber.org/goleak", "for TestMain"},
	}},
	{pkg: "recipes/...", may: []arrow{
		{"recipes", "the client that recipes stand on"},
		{"recipes/...", "a recipe may stand on another"},
		{"github.com/go-zookeeper/zk", "types of events, znodes and operations"},
	}},
	{pkg: "server/facts", there: true, may: []arrow{
		{"internal/histogram", "summaries hold what was measured, for any quantile"},
		{"internal/printable", "hot paths are text of clients, and shown on terminals"},
	}},
	{pkg: "server/internal/meter", there: true, may: []arrow{
		{"server/facts", "the facts that it reports"},
		{"internal/histogram", "counts by size"},
		{"internal/printable", "paths in the lines of slow requests"},
		{"consensus", "the times of batches, and its counters"},
		{"proto", "op codes"},
		{"proto/jute", "the path of a request"},
		{"github.com/hashicorp/go-hclog", "the lines of slow requests"},
	}},
	{pkg: "internal/fourletter", there: true, may: []arrow{
		{"server/facts", "the facts that it renders"},
		{"internal/printable", "paths are text of clients"},
		{"proto", "the format of zxids and session ids"},
	}},
	{pkg: "server", there: true, may: []arrow{
		{"audit", "makes its events"},
		{"consensus", "proposes and applies batches"},
		{"session", "which sessions are alive"},
		{"watch", "which connections get an event"},
		{"datatree", "the only place where connections and the tree meet"},
		{"server/facts", "the facts that it reports about itself"},
		{"server/internal/meter", "counts and measures"},
		{"internal/fourletter", "answers the words on the client port"},
		{"internal/printable", "text of clients in log lines"},
		{"internal/lograte", "bounds the log lines that strangers cause"},
		{"internal/tlsreason", "the log lines of failed handshakes"},
		{"internal/x509name", "the identity of a certificate"},
		{"internal/serverlist", "the initial members and their addresses"},
		{"internal/version", "the version line of srvr, stat, envi and mntr"},
		{"proto", "requests and replies of clients"},
		{"proto/jute", "read requests are decoded, and replies encoded, in place"},
		{"internal/vfs", "hands the disk through to consensus"},
		{"internal/memlimit", "the default of a bound depends on the memory of the container"},
		{"sasl", "the exchange that a client's identity comes from"},
		{"internal/memnet", "connections from within the process"},
		{"internal/invariants", "checks that only test builds pay for"},
		{"github.com/hashicorp/go-hclog", "logging"},
		{"golang.org/x/sys", "limits and counters in the four-letter words"},
	}},
	{pkg: "internal/cluster", there: true, may: []arrow{
		{"server", "starts servers through the embedding API"},
		{"internal/memberdir", "where each member has its data"},
		{"internal/memnet", "the network between members"},
		{"internal/tcpport", "ports that members keep while they are down"},
		{"internal/faultproxy", "faults on client connections"},
		{"proto", "the Stat of a znode"},
		{"github.com/hashicorp/go-hclog", "logging"},
	}},
	{pkg: "cmd/gozkd-testkit/internal/faultsapi", there: true, may: []arrow{
		{"internal/cluster", "the ensemble that requests control"},
		{"internal/faultproxy", "the kinds of faults"},
		{"server", "sessions and znodes in answers"},
		{"proto", "paths and error codes"},
		{"github.com/hashicorp/go-hclog", "logging"},
	}},
	{pkg: "internal/clientauth", there: true, may: []arrow{
		{"proto", "error codes"},
		{"sasl", "the mechanism is handed in"},
	}},
	{pkg: "client", there: true, may: []arrow{
		{"internal/clientauth", "TLS and SASL on a new connection"},
		{"sasl", "the mechanism is handed in"},
		{"proto", "replies and events"},
		{"proto/jute", "requests and replies"},
		{"github.com/hashicorp/go-hclog", "logging"},
	}},
	{pkg: "admin", there: true, may: []arrow{{"internal/secretfile", "tokens"}, {"server", "renders its facts"}, {"audit", "events of its commands"}, {"proto", "identities in these events"}}},
	{pkg: "metrics", there: true, may: []arrow{
		{"server", "renders its facts"},
		{"github.com/prometheus/client_golang/prometheus", "the type of a collector; programs that import only server do not link it"},
	}},
	{pkg: "zktest", there: true, may: []arrow{
		{"internal/testca", "certificates"},
		{"internal/lastzxid", "a race in go-zookeeper that tests must not report"},
		{"internal/cluster", "servers, and faults in them"},
		{"internal/faultproxy", "the kinds of faults"},
		{"server", "the Config and the facts of a member"},
		{"proto", "error codes"},
		{"github.com/go-zookeeper/zk", "the client that it connects"},
		{"github.com/hashicorp/go-hclog", "logging"},
		{"golang.org/x/tools/txtar", "trees as text"},
	}},
	{pkg: "cmd/gozkd-testkit", there: true, may: []arrow{
		{"cmd/gozkd-testkit/internal/faultsapi", "the requests for faults"},
		{"internal/cluster", "the members"},
		{"internal/version", "--version"},
		{"github.com/hashicorp/go-hclog", "logging"},
	}},
	{pkg: "cmd/gozkd/internal/config", there: true, may: []arrow{
		{"cmd/gozkd/internal/cli", "reads flags"},
		{"cmd/gozkd/internal/archive/store", "checks the URL of an archive"},
		{"internal/memberdir", "how large an ensemble in one process can be"},
		{"internal/tlsconf", "the ssl keys"},
		{"sasl", "JAAS files"},
		{"internal/secretfile", "the secret of the ensemble, and users"},
		{"internal/serverlist", "server lines"},
		{"github.com/magiconair/properties", "zoo.cfg is a Java properties file"},
	}},
	{pkg: "cmd/gozkd/internal/cli", there: true, may: []arrow{
		{"internal/version", "gozkd --version names the version that servers name"},
	}},
	{pkg: "cmd/gozkd/internal/clientflags", there: true, may: []arrow{
		{"cmd/gozkd/internal/cli", "the environment, and errors of the command line"},
		{"client", "connects so"},
		{"internal/clientauth", "TLS on a new connection"},
		{"internal/tlsconf", "the only builder of TLS configurations"},
		{"internal/tlsreason", "why a handshake failed, to name the flag that helps"},
		{"internal/secretfile", "passwords"},
		{"sasl", "mechanisms, and JAAS files"},
		{"sasl/kerberos", "a mechanism"},
		{"github.com/hashicorp/go-hclog", "warnings about key stores"},
		{"github.com/magiconair/properties", "the file is a Java properties file"},
	}},
	{pkg: "cmd/gozkd/internal/admintoken", there: true, may: []arrow{
		{"internal/vfs", "durable directories"},
		{"internal/secretfile", "the token"},
	}},
	{pkg: "cmd/gozkd/internal/archive/store", there: true, may: []arrow{
		{"internal/vfs", "durable directories"},
		{"github.com/minio/minio-go/v7", "object storage"},
	}},
	{pkg: "cmd/gozkd/internal/archive/store/storetest", there: true, may: []arrow{
		{"cmd/gozkd/internal/archive/store", "is one, with faults"},
	}},
	{pkg: "cmd/gozkd/internal/archive", there: true, may: []arrow{
		{"cmd/gozkd/internal/archive/store", "where objects are"},
		{"consensus", "entries of the log"},
		{"server", "the log is that of a server, and so are bases"},
		{"github.com/hashicorp/go-hclog", "logging"},
	}},
	{pkg: "cmd/gozkd/internal/backup", there: true, may: []arrow{
		{"cmd/gozkd/internal/archive", "a moment of an archive can be restored, and an archive verified"},
		{"cmd/gozkd/internal/archive/store", "opens archives"},
		{"proto", "zxids of moments"},
		{"cmd/gozkd/internal/clientflags", "TLS and SASL"},
		{"cmd/gozkd/internal/admintoken", "the token for a server on this machine"},
		{"consensus", "reads and founds data directories"},
		{"datatree", "the state in them, and the effect of the log"},
		{"cmd/gozkd/internal/config", "restore writes the data directory that serve would open"},
		{"internal/vfs", "locks and durable directories"},
		{"cmd/gozkd/internal/cli", "is a command"},
	}},
	{pkg: "cmd/gozkd/internal/inspect", there: true, may: []arrow{
		{"cmd/gozkd/internal/backup", "describes data directories"},
		{"cmd/gozkd/internal/cli", "is a command"},
		{"consensus", "reads checkpoints and logs"},
		{"datatree", "the state in them, and the effect of the log"},
		{"proto", "the requests in the log"},
		{"proto/jute", "decodes them"},
		{"internal/printable", "paths are text of clients"},
	}},
	{pkg: "cmd/gozkd/internal/moving", there: true, may: []arrow{
		{"cmd/gozkd/internal/backup", "founds a data directory, and reads the state to export"},
		{"cmd/gozkd/internal/cli", "is a command"},
		{"cmd/gozkd/internal/clientflags", "TLS to an admin endpoint"},
		{"datatree", "the state, and the replay of transactions"},
		{"internal/zkfiles", "ZooKeeper's files"},
		{"internal/vfs", "durable directories"},
		{"proto", "zxids and paths"},
		{"github.com/golang/snappy", "a compression of snapshots"},
		{"golang.org/x/term", "progress on a terminal"},
	}},
	{pkg: "cmd/gozkd/internal/probe", there: true, may: []arrow{
		{"internal/serverlist", "server lines in what conf says"},
		{"proto", "zxids and session ids"},
	}},
	{pkg: "cmd/gozkd/internal/top", there: true, may: []arrow{
		{"cmd/gozkd/internal/clientflags", "TLS and SASL"},
		{"cmd/gozkd/internal/cli", "flags and output of all commands"},
		{"cmd/gozkd/internal/probe", "asks members"},
		{"internal/serverlist", "the other members"},
		{"proto", "zxids and session ids"},
		{"client", "reads /zookeeper/config where conf is not whitelisted"},
		{"charm.land/bubbletea/v2", "keys and screen"},
		{"charm.land/lipgloss/v2", "colors, and how wide a text is"},
		{"golang.org/x/term", "whether there is a terminal"},
	}},
	{pkg: "cmd/gozkd/internal/status", there: true, may: []arrow{
		{"cmd/gozkd/internal/clientflags", "TLS and SASL"},
		{"cmd/gozkd/internal/cli", "flags and output of all commands"},
		{"cmd/gozkd/internal/config", "where the server of a zoo.cfg listens"},
		{"cmd/gozkd/internal/probe", "asks a server"},
		{"client", "parses a list of servers"},
	}},
	{pkg: "cmd/gozkd/internal/shell/console", there: true, may: []arrow{
		{"golang.org/x/term", "the line editor"},
		{"golang.org/x/sys", "console modes on Windows"},
	}},
	{pkg: "cmd/gozkd/internal/shell/subtree", there: true, may: []arrow{
		{"client", "reads and writes the znodes"},
		{"proto", "ACLs, Stats, error codes"},
	}},
	{pkg: "cmd/gozkd/internal/shell", there: true, may: []arrow{
		{"cmd/gozkd/internal/clientflags", "TLS and SASL"},
		{"cmd/gozkd/internal/probe", "the kinds of znodes, which the protocol does not have"},
		{"cmd/gozkd/internal/shell/console", "lines from a terminal"},
		{"cmd/gozkd/internal/shell/subtree", "commands on whole subtrees"},
		{"client", "the session that its commands run in"},
		{"internal/serverlist", "server lines, in what config and reconfig show and take"},
		{"cmd/gozkd/internal/cli", "flags and output of all commands"},
		{"proto", "paths, ACLs, error codes"},
	}},
	{pkg: "cmd/gozkd", there: true, may: []arrow{
		{"cmd/gozkd/internal/archive", "archives the server's log"},
		{"cmd/gozkd/internal/archive/store", "the place of the archive"},
		{"cmd/gozkd/internal/backup", "its commands"},
		{"cmd/gozkd/internal/inspect", "its commands"},
		{"cmd/gozkd/internal/moving", "its commands"},
		{"cmd/gozkd/internal/cli", "flags and output of all commands"},
		{"cmd/gozkd/internal/status", "a command"},
		{"cmd/gozkd/internal/top", "a command"},
		{"cmd/gozkd/internal/shell", "gozkd cli"},
		{"server", "wiring"},
		{"cmd/gozkd/internal/config", "the only reader of configuration"},
		{"internal/tlsconf", "key stores, and their reload"},
		{"sasl", "mechanisms, and JAAS files"},
		{"sasl/kerberos", "a mechanism"},
		{"sasl/kerberos/principal", "the rules for names"},
		{"admin", "the admin commands over HTTP"},
		{"cmd/gozkd/internal/admintoken", "their token for tools on this machine"},
		{"internal/lograte", "bounds the log lines that strangers cause"},
		{"metrics", "the endpoint for Prometheus"},
		{"audit", "the audit log"},
		{"gopkg.in/natefinch/lumberjack.v2", "rotates the file of the audit log"},
		{"github.com/prometheus/client_golang/prometheus", "the registry of that endpoint"},
		{"github.com/coreos/go-systemd/v22/daemon", "tells the service manager that clients are served"},
		{"internal/memberdir", "where each member of --ensemble has its data"},
		{"internal/memnet", "the network between the members of --ensemble"},
		{"github.com/hashicorp/go-hclog", "logging"},
	}},

	{pkg: "examples/internal/example", there: true, may: []arrow{
		{"server", "a server in the process, unless one is named"},
		{"recipes", "connects"},
	}},
	{pkg: "examples/internal/exampletest", there: true, may: []arrow{
		{"examples/internal/example", "the programs under test"},
		{"internal/testkit/logbuf", "what the programs print"},
		{"recipes", "connects"},
		{"zktest", "a server on virtual time"},
	}},
	{pkg: "examples/...", may: []arrow{
		{"examples/internal/example", "command line, server"},
		{"recipes/...", "the recipes that they demonstrate"},
		{"github.com/go-zookeeper/zk", "operations and errors, as a user of recipes has them"},
	}},

	// Programs and harnesses that see the server only from outside: they start processes and speak
	// the protocol.
	{pkg: "internal/testkit/...", may: []arrow{
		{"internal/testkit/...", "one helper may use another"},
		{"internal/vfs", "file systems that crash and fail"},
		{"proto", "builds requests"},
		{"proto/jute", "builds frames"},
		{"golang.org/x/sys", "pseudo-terminals"},
	}},
	{pkg: "bench", may: []arrow{
		{"recipes/...", "compared with other libraries"},
		{"proto", "speaks the protocol"},
		{"proto/jute", "decodes replies"},
		{"test/compat/...", "installs and starts the servers"},
		{"internal/testkit/must", "ends a measurement at its first error"},
		{"golang.org/x/sys", "epoll and counters of the disk"},
		{"github.com/HdrHistogram/hdrhistogram-go", "quantiles of latencies"},
		{"gonum.org/v1/plot", "charts"},
	}},
	{pkg: "test/golden"},
	{pkg: "test/jepsen-lite/...", may: []arrow{
		{"test/...", "installs and starts ZooKeeper"},
		{"internal/testkit/...", "shared helpers"},
		{"proto", "speaks the protocol"},
		{"proto/jute", "decodes the traffic of a client"},
		{"github.com/go-zookeeper/zk", "a client that is not ours"},
		{"github.com/anishathalye/porcupine", "checks linearizability"},
		{"github.com/hashicorp/go-hclog", "logging"},
	}},
	{pkg: "test/...", may: []arrow{
		{"sasl/kerberos", "the client side under test"},
		{"sasl", "its interfaces"},
		{"internal/zkfiles", "what ZooKeeper logged"},
		{"test/...", "harnesses share parts"},
		{"internal/testkit/...", "shared helpers"},
		{"proto", "speaks the protocol"},
		{"proto/jute", "malformed frames too"},
		{"recipes/...", "the recipes under test"},
		{"github.com/go-zookeeper/zk", "a client that is not ours"},
	}},
}

// covers reports whether name is what pattern allows: the same, or below it where pattern ends in
// "/...".
func covers(pattern, name string) bool {
	if dir, ok := strings.CutSuffix(pattern, "/..."); ok {
		return name == dir || strings.HasPrefix(name, dir+"/")
	}
	if strings.Contains(pattern, ".") { // someone else's: any package of the module
		return name == pattern || strings.HasPrefix(name, pattern+"/")
	}
	return name == pattern
}

// standard reports whether an import is of the standard library: its first element has no dot.
func standard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

// brokenArrows lists imports that the table does not allow, and packages that it does not know.
func brokenArrows(srcs []source) []string {
	var findings []string
	for _, s := range srcs {
		if s.test {
			continue
		}
		i := slices.IndexFunc(table, func(b box) bool { return covers(b.pkg, s.pkg) })
		if i < 0 {
			findings = append(findings, fmt.Sprintf("%s: package %q is not in the table of internal/archtest: add it, with a reason per import", s.name, s.pkg))
			continue
		}
		for _, imp := range s.imports() {
			if standard(imp.path) {
				continue
			}
			to := strings.TrimPrefix(imp.path, modulePath+"/")
			if !slices.ContainsFunc(table[i].may, func(a arrow) bool { return covers(a.to, to) }) {
				findings = append(findings, fmt.Sprintf("%s: %s may not import %s", s.at(imp.pos), s.pkg, to))
			}
		}
	}
	return findings
}

func TestImports(t *testing.T) {
	srcs := load(t)
	report(t, brokenArrows(srcs))
	for _, b := range table {
		found := slices.ContainsFunc(srcs, func(s source) bool { return covers(b.pkg, s.pkg) })
		switch {
		case !found && b.there:
			t.Errorf("package %s is in the table and must exist, but does not", b.pkg)
		case !found:
			t.Logf("not there yet, so not checked: %s", b.pkg)
		}
		for _, a := range b.may {
			if a.because == "" {
				t.Errorf("the table allows %s to import %s without a reason", b.pkg, a.to)
			}
		}
	}
}

func TestImports_Finds(t *testing.T) {
	ours := modulePath + "/"
	for _, c := range []struct{ name, imports, want string }{
		{"datatree/a.go", ours + "wal", "datatree may not import wal"},
		{"datatree/a.go", "github.com/hashicorp/go-hclog", "may not import"},
		{"session/a.go", ours + "proto/jute", "may not import proto/jute"},
		{"datatree/a.go", ours + "proto", ""},
		{"datatree/a_test.go", ours + "wal", ""},
		{"server/a.go", ours + "cmd/gozkd/internal/config", "server may not import cmd/gozkd/internal/config"},
		{"consensus/a.go", "go.etcd.io/raft/v3/raftpb", ""},
		{"consensus/a.go", "go.etcd.io/raftish", "may not import"},
		{"test/compat/a.go", ours + "server", "may not import server"},
		{"elsewhere/a.go", "fmt", "not in the table"},
	} {
		mustFind(t, brokenArrows, sample(t, c.name, fmt.Sprintf("package p\nimport %q\n", c.imports)), c.want)
	}
}
