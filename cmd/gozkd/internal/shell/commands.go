package shell

import "slices"

func allCommands() []*command {
	return slices.Concat(shellCommands(), zooKeeperCommands(), subtreeCommands(), []*command{
		{name: "edit", args: "path", minArgs: 1, about: "edit a znode's data in $VISUAL or $EDITOR", run: runEdit},
		{name: "watch", args: "[-R] [--data] path", flags: []flag{
			{"R", false, "also all znodes below it"}, {"-data", false, "print the data, now and after each change"},
		}, minArgs: 1, about: "print the events of a znode until Ctrl-C", lines: true, run: runWatch},
	})
}

// shellCommands are zkCli.sh's commands that concern the shell itself.
func shellCommands() []*command {
	return []*command{
		{name: "close", raw: true, about: "close the session", run: runClose},
		{name: "connect", args: "host:port", raw: true, offline: true, about: "open a session with the same or other servers", run: runConnect},
		{name: "help", args: "[command]", raw: true, offline: true, about: "list all commands, or describe one", run: runHelp},
		{name: "history", raw: true, offline: true, about: "list the last lines with their numbers", run: runHistory},
		{name: "printwatches", args: "on|off", raw: true, offline: true, about: "print watch events as they arrive, or not", run: runPrintWatches},
		{name: "quit", raw: true, offline: true, about: "close the session and exit; also exit", run: runQuit},
		{name: "redo", args: "cmdno", raw: true, offline: true, about: "repeat a line of the history", run: runRedo},
	}
}

// zooKeeperCommands are zkCli.sh's that call the server, with its descriptions, which it prints.
func zooKeeperCommands() []*command {
	return []*command{
		{name: "addauth", args: "scheme auth", minArgs: 1, about: "authenticate, for example: addauth digest user:password", run: runAddAuth},
		{name: "addWatch", args: "[-m mode] path # optional mode is one of [PERSISTENT, PERSISTENT_RECURSIVE] - default is PERSISTENT_RECURSIVE",
			flags: []flag{{"m", true, ""}}, minArgs: 1, about: "set a persistent watch", run: runAddWatch},
		{name: "config", args: "[-c] [-w] [-s]", flags: []flag{
			{"s", false, "stats"}, {"w", false, "watch"}, {"c", false, "client connection string"},
		}, about: "show the members of the ensemble", run: runConfig},
		{name: "create", args: "[-s] [-e] [-c] [-t ttl] path [data] [acl]", flags: []flag{
			{"e", false, "ephemeral"}, {"s", false, "sequential"}, {"c", false, "container"}, {"t", true, "ttl"},
		}, minArgs: 1, about: "create a znode", run: runCreate},
		{name: "delete", args: "[-v version] path", flags: []flag{{"v", true, "version"}}, minArgs: 1,
			about: "delete a znode without children", run: runDelete},
		{name: "deleteall", args: "path [-b batch size]", flags: []flag{{"b", true, "batch size"}}, minArgs: 1,
			about: "delete a znode and all znodes below it", run: runDeleteAll},
		{name: "delquota", args: "[-n|-b|-N|-B] path", flags: quotaFlags(false), oneOf: true, minArgs: 1,
			about: "remove a quota, or with -r or -w from a budget", run: runDelQuota},
		{name: "get", args: "[-s] [-w] [-b] [-x] path", flags: []flag{
			{"s", false, "Print znode stats additionally"}, {"w", false, "Watch for changes on the znode"},
			{"b", false, "Output data in base64 format"}, {"x", false, "Output data in hexdump format"},
		}, minArgs: 1, explains: true, about: "print a znode's data", run: runGet},
		{name: "getAcl", args: "[-s] path", flags: []flag{{"s", false, "stats"}}, minArgs: 1, about: "print a znode's access control list", run: runGetACL},
		{name: "getAllChildrenNumber", args: "path", minArgs: 1, about: "count all znodes below a znode", run: runCount},
		{name: "getEphemerals", args: "path", about: "list this session's ephemeral znodes", run: runEphemerals},
		{name: "listquota", args: "path", minArgs: 1, about: "print a quota and its current use", run: runListQuota},
		{name: "ls", args: "[-s] [-w] [-R] path", flags: []flag{
			{"?", false, "help"}, {"s", false, "stat"}, {"w", false, "watch"}, {"R", false, "recurse"},
			{"page", false, ""}, {"after", true, ""}, // zkCli.sh does not have them
		}, about: "list a znode's children; -page [-after NAME]: a name per line, in pages", run: runList},
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
		}, minArgs: 1, about: "remove this session's watches on a znode", run: runRemoveWatches},
		{name: "set", args: "path data [-s] [-v version] [-b]", flags: []flag{
			{"s", false, "Print znode stats additionally"}, {"v", true, "Set with an expected version"},
			{"b", false, "Supply data in base64 format"},
		}, minArgs: 2, explains: true, about: "set a znode's data", run: runSet},
		{name: "setAcl", args: "[-s] [-v version] [-R] path acl", flags: []flag{
			{"s", false, "stats"}, {"v", true, "version"}, {"R", false, "recursive"},
		}, minArgs: 2, about: "set a znode's access control list", run: runSetACL},
		{name: "setquota", args: "-n|-b|-N|-B val path", flags: quotaFlags(true), oneOf: true, needsFlag: true, minArgs: 1,
			about: "set a quota for a znode and all znodes below it; -r, -w: a budget, also of scheme:id",
			run:   runSetQuota},
		{name: "stat", args: "[-w] path", flags: []flag{{"w", false, "watch"}}, minArgs: 1, about: "print a znode's Stat", run: runStat},
		{name: "sync", args: "path", minArgs: 1, about: "wait until this server has caught up with the leader", run: runSync},
		{name: "version", offline: true, about: "print the version of this shell", run: runVersion},
		{name: "whoami", raw: true, about: "list the identities of this session", run: runWhoAmI},
	}
}

func quotaFlags(value bool) []flag {
	return []flag{
		{"n", value, "num soft quota"}, {"b", value, "bytes soft quota"},
		{"N", value, "num hard quota"}, {"B", value, "bytes hard quota"},
		{"r", value, ""}, {"w", value, ""}, // zkCli.sh does not have them
	}
}

// subtreeCommands work on whole subtrees. zkCli.sh does not have them.
func subtreeCommands() []*command {
	quiet := flag{"q", false, "no progress on standard error"}
	return []*command{
		{name: "cp", args: "[-r] [--counters N] [-q] source target", flags: []flag{{"r", false, "also all znodes below it"}, countersFlag, quiet},
			minArgs: 2, explains: true, about: "copy a znode, also from or to another server", run: runCopy},
		{name: "diff", args: "[-A] [-q] path path", flags: []flag{{"A", false, "ignore ACLs"}, quiet},
			minArgs: 2, explains: true, about: "compare two subtrees, also of two servers", lines: true, run: runDiff},
		{name: "du", args: "[-d depth] [-n lines] [-h] [-q] path", flags: []flag{
			{"d", true, "number of levels to list, default 1"}, {"n", true, "number of lines to list, default 100"},
			{"h", false, "sizes in KiB, MiB, GiB"}, quiet,
		}, minArgs: 1, explains: true, about: "count znodes and bytes below each child, largest first", run: runUsage},
		{name: "export", args: "[-A] [-q] path [file]", flags: []flag{{"A", false, "without ACLs"}, quiet},
			minArgs: 1, explains: true, about: "write a subtree as text", lines: true, run: runExport},
		{name: "find", args: "[-name glob] [-data regexp] [-owner session] [-type p|e|s] [-q] path", flags: []flag{
			{"name", true, "znodes whose name matches, with * ? [a-z]"}, {"data", true, "znodes whose data matches the regular expression"},
			{"owner", true, "ephemeral znodes of the session, 0x..."},
			{"type", true, "p persistent, e ephemeral, s with a sequential name"}, quiet,
		}, minArgs: 1, explains: true, about: "list the paths of all znodes that meet every condition", lines: true, run: runFind},
		{name: "import", args: "[-u|-k] [-e] [-A] [--counters N] [-q] path [file]", flags: []flag{
			{"u", false, "update existing znodes"}, {"k", false, "keep existing znodes"},
			{"e", false, "also ephemeral znodes, owned by this session"}, {"A", false, "without ACLs: open to everybody"}, countersFlag, quiet,
		}, minArgs: 1, explains: true, about: "create the znodes of an export", run: runImport},
		{name: "mv", args: "[--counters N] [-q] source target", flags: []flag{countersFlag, quiet},
			minArgs: 2, explains: true, about: "move a znode and all znodes below it", run: runCopy},
		{name: "tree", args: "[-L depth] [-s] [-q] path", flags: []flag{
			{"L", true, "number of levels to show"}, {"s", false, "with data sizes"}, quiet,
		}, minArgs: 1, explains: true, about: "draw a znode and all znodes below it", lines: true, run: runTree},
	}
}
