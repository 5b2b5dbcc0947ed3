package shell

// zooKeeperCommands are those that speak to the server and that ZooKeeper's shell has too. What flags are about is in its
// words: it prints them.
func zooKeeperCommands() []*command {
	return []*command{
		{name: "addauth", args: "scheme auth", minArgs: 1, about: "say who you are, such as: addauth digest user:password", run: runAddAuth},
		{name: "addWatch", args: "[-m mode] path # optional mode is one of [PERSISTENT, PERSISTENT_RECURSIVE] - default is PERSISTENT_RECURSIVE",
			flags: []flag{{"m", true, ""}}, minArgs: 1, about: "set a watch that stays", run: runAddWatch},
		{name: "config", args: "[-c] [-w] [-s]", flags: []flag{
			{"s", false, "stats"}, {"w", false, "watch"}, {"c", false, "client connection string"},
		}, about: "show the members of the ensemble", run: runConfig},
		{name: "create", args: "[-s] [-e] [-c] [-t ttl] path [data] [acl]", flags: []flag{
			{"e", false, "ephemeral"}, {"s", false, "sequential"}, {"c", false, "container"}, {"t", true, "ttl"},
		}, minArgs: 1, about: "make a znode", run: runCreate},
		{name: "delete", args: "[-v version] path", flags: []flag{{"v", true, "version"}}, minArgs: 1,
			about: "delete a znode that has no children", run: runDelete},
		{name: "deleteall", args: "path [-b batch size]", flags: []flag{{"b", true, "batch size"}}, minArgs: 1,
			about: "delete a znode and all below it", run: runDeleteAll},
		{name: "delquota", args: "[-n|-b|-N|-B] path", flags: quotaFlags(false), oneOf: true, minArgs: 1,
			about: "take away a quota", run: runDelQuota},
		{name: "get", args: "[-s] [-w] [-b] [-x] path", flags: []flag{
			{"s", false, "Print znode stats additionally"}, {"w", false, "Watch for changes on the znode"},
			{"b", false, "Output data in base64 format"}, {"x", false, "Output data in hexdump format"},
		}, minArgs: 1, explains: true, about: "print a znode's data", run: runGet},
		{name: "getAcl", args: "[-s] path", flags: []flag{{"s", false, "stats"}}, minArgs: 1, about: "show who may do what", run: runGetACL},
		{name: "getAllChildrenNumber", args: "path", minArgs: 1, about: "count the znodes below", run: runCount},
		{name: "getEphemerals", args: "path", about: "list the session's ephemeral znodes", run: runEphemerals},
		{name: "listquota", args: "path", minArgs: 1, about: "show a quota and what is used of it", run: runListQuota},
		{name: "ls", args: "[-s] [-w] [-R] path", flags: []flag{
			{"?", false, "help"}, {"s", false, "stat"}, {"w", false, "watch"}, {"R", false, "recurse"},
		}, about: "list the children", run: runList},
		{name: "reconfig", args: "[-s] [-v version] [[-file path] | [-members serverID=host:port1:port2;port3[,...]*]] | " +
			"[-add serverId=host:port1:port2;port3[,...]]* [-remove serverId[,...]*]", flags: []flag{
			{"s", false, "stats"}, {"v", true, "required current config version"},
			{"file", true, "path of config file to parse for membership"},
			{"members", true, "comma-separated list of config strings for non-incremental reconfig"},
			{"add", true, "comma-separated list of config strings for new servers"},
			{"remove", true, "comma-separated list of server IDs to remove"},
		}, about: "change the members of the ensemble", run: runReconfig},
		{name: "removewatches", args: "path [-c|-d|-a] [-l]", flags: []flag{
			{"c", false, "child watcher type"}, {"d", false, "data watcher type"}, {"p", false, "persistent watcher type"},
			{"r", false, "persistent recursive watcher type"}, {"a", false, "any watcher type"},
			{"l", false, "remove locally when there is no server connection"},
		}, minArgs: 1, about: "remove watches of this session", run: runRemoveWatches},
		{name: "set", args: "path data [-s] [-v version] [-b]", flags: []flag{
			{"s", false, "Print znode stats additionally"}, {"v", true, "Set with an expected version"},
			{"b", false, "Supply data in base64 format"},
		}, minArgs: 2, explains: true, about: "change a znode's data", run: runSet},
		{name: "setAcl", args: "[-s] [-v version] [-R] path acl", flags: []flag{
			{"s", false, "stats"}, {"v", true, "version"}, {"R", false, "recursive"},
		}, minArgs: 2, about: "say who may do what", run: runSetACL},
		{name: "setquota", args: "-n|-b|-N|-B val path", flags: quotaFlags(true), oneOf: true, needsFlag: true, minArgs: 1,
			about: "set a quota on a znode and all below it", run: runSetQuota},
		{name: "stat", args: "[-w] path", flags: []flag{{"w", false, "watch"}}, minArgs: 1, about: "print a znode's Stat", run: runStat},
		{name: "sync", args: "path", minArgs: 1, about: "let this server catch up with the leader", run: runSync},
		{name: "version", offline: true, about: "print the version of this shell", run: runVersion},
		{name: "whoami", raw: true, about: "show whom the server takes you for", run: runWhoAmI},
	}
}

func quotaFlags(value bool) []flag {
	return []flag{
		{"n", value, "num soft quota"}, {"b", value, "bytes soft quota"},
		{"N", value, "num hard quota"}, {"B", value, "bytes hard quota"},
	}
}
