package shell

// interactiveCommands are those for somebody who sits in front of it.
func interactiveCommands() []*command {
	return []*command{
		{name: "edit", args: "path", minArgs: 1, about: "change a znode's data in an editor, $VISUAL or $EDITOR", run: runEdit},
		{name: "watch", args: "[-R] [--data] path", flags: []flag{
			{"R", false, "and all below it"}, {"-data", false, "print the data, now and when it changes"},
		}, minArgs: 1, about: "print the events of a znode as they come, until Ctrl-C", lines: true, run: runWatch},
	}
}
