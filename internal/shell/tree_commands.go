package shell

// treeCommands are those that work on whole subtrees.
func treeCommands() []*command { return nil }
