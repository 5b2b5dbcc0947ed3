package archtest

// harnessTable is the part of table about programs and harnesses that see the server only from
// outside: they start processes and speak the protocol.
var harnessTable = []box{
	{pkg: "internal/testkit/recipetest", there: true, may: []arrow{
		{"internal/lastzxid", "a race in go-zookeeper that tests must not report"},
		{"recipes", "opens clients"},
		{"recipes/gozk", "opens clients on go-zookeeper"},
		{"internal/requesthook", "intercepts requests"},
		{"zktest", "servers, and faults in them"},
		{"server", "a server for examples, which have no testing.TB"},
		{"github.com/go-zookeeper/zk", "connections that report their requests"},
		{"internal/testkit/...", "shared helpers of tests"},
		{"pgregory.net/rapid", "draws faults"},
		{"go.uber.org/goleak", "for TestMain"},
	}},
	{pkg: "internal/testkit/...", may: []arrow{
		{"internal/testkit/...", "one helper may use another"},
		{"internal/zkfiles", "the records that it writes"},
		{"internal/vfs", "file systems that crash and fail"},
		{"proto", "builds requests"},
		{"proto/jute", "builds frames"},
	}},
	{pkg: "bench", may: []arrow{
		{"internal/backoff", "pauses"},
		{"recipes/...", "compared with other libraries"},
		{"proto", "speaks the protocol"},
		{"proto/jute", "decodes replies"},
		{"test/compat/...", "installs and starts the servers"},
		{"internal/testkit/must", "ends a measurement at its first error"},
		{"golang.org/x/sys", "epoll and counters of the disk"},
		{"github.com/HdrHistogram/hdrhistogram-go", "quantiles of latencies"},
		{"gonum.org/v1/plot", "charts"},
	}},
	{pkg: "tools/chart", there: true, may: []arrow{
		{"go.yaml.in/yaml/v3", "the comments of values.yaml"},
	}},
	{pkg: "tools/release", there: true, may: []arrow{
		{"golang.org/x/mod", "packs modules as a proxy serves them"},
		{"golang.org/x/crypto/x509roots/fallback", "the authorities in the image"},
		{"github.com/CycloneDX/cyclonedx-go", "the types of a bill of materials"},
		{"github.com/google/licensecheck", "which licence a text is"},
		{"github.com/google/rpmpack", "writes rpm packages"},
		{"internal/testkit/must", "ends the check at its first error"},
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
		{"client", "our client beside others'"},
		{"internal/backoff", "pauses"},
		{"sasl/kerberos", "the client side under test"},
		{"sasl", "its interfaces"},
		{"internal/zkfiles", "what ZooKeeper logged"},
		{"internal/vfs", "locks what is installed"},
		{"test/...", "harnesses share parts"},
		{"internal/testkit/...", "shared helpers"},
		{"proto", "speaks the protocol"},
		{"proto/jute", "malformed frames too"},
		{"recipes/...", "the recipes under test"},
		{"github.com/go-zookeeper/zk", "a client that is not ours"},
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
		{"client", "operations, as a user of recipes has them"},
		{"proto", "errors, as a user of recipes has them"},
	}},
}
