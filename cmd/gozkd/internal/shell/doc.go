// Package shell is gozkd cli: ZooKeeper's shell, and what it never had.
//
// A line is a command, its flags and its arguments, in the words of ZooKeeper's zkCli.sh 3.9.5; what it prints, on
// which of the two outputs, is what that prints, byte for byte. docs/reference/shell.md lists where it is not, and why. The same
// commands run from the command line, one for a process, from standard input, a script, and from a terminal.
//
// A command is a value of type command in the tables of zookeeper_commands.go, tree_commands.go and
// interactive_commands.go. It computes a result and shows it; how a result becomes text or JSON is the result's affair.
package shell
