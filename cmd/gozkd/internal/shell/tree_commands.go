package shell

// treeCommands are those that work on whole subtrees.
func treeCommands() []*command {
	quiet := flag{"q", false, "no progress on standard error"}
	return []*command{
		{name: "cp", args: "[-r] [-q] source target", flags: []flag{{"r", false, "with all below it"}, quiet},
			minArgs: 2, explains: true, about: "copy a znode, also from or to another server", run: runCopy},
		{name: "diff", args: "[-A] [-q] path path", flags: []flag{{"A", false, "not the ACLs"}, quiet},
			minArgs: 2, explains: true, about: "compare two subtrees, also of two servers", lines: true, run: runDiff},
		{name: "du", args: "[-d depth] [-n lines] [-h] [-q] path", flags: []flag{
			{"d", true, "how many levels to list, default 1"}, {"n", true, "how many lines to list, default 100"},
			{"h", false, "sizes in KiB, MiB, GiB"}, quiet,
		}, minArgs: 1, explains: true, about: "count znodes and bytes below each child, the largest first", run: runUsage},
		{name: "export", args: "[-A] [-q] path [file]", flags: []flag{{"A", false, "not the ACLs"}, quiet},
			minArgs: 1, explains: true, about: "write a subtree as text", lines: true, run: runExport},
		{name: "find", args: "[-name glob] [-data regexp] [-owner session] [-type p|e|s] [-q] path", flags: []flag{
			{"name", true, "names like that, with * ? [a-z]"}, {"data", true, "data in which the regular expression is found"},
			{"owner", true, "ephemeral znodes of the session, 0x..."},
			{"type", true, "p persistent, e ephemeral, s named as sequential ones"}, quiet,
		}, minArgs: 1, explains: true, about: "list the paths of znodes below that have all that is asked for", lines: true, run: runFind},
		{name: "import", args: "[-u|-k] [-e] [-A] [-q] path [file]", flags: []flag{
			{"u", false, "change znodes that are there"}, {"k", false, "keep znodes that are there"},
			{"e", false, "also ephemeral znodes, as this session's"}, {"A", false, "without the ACLs, open to everybody"}, quiet,
		}, minArgs: 1, explains: true, about: "make znodes of what export wrote", run: runImport},
		{name: "mv", args: "[-q] source target", flags: []flag{quiet},
			minArgs: 2, explains: true, about: "move a znode and all below it", run: runMove},
		{name: "tree", args: "[-L depth] [-s] [-q] path", flags: []flag{
			{"L", true, "how many levels to show"}, {"s", false, "with the size of the data"}, quiet,
		}, minArgs: 1, explains: true, about: "draw a znode and all below it", lines: true, run: runTree},
	}
}
