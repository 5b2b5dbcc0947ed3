// Package shell is gozkd cli: ZooKeeper's shell with additions.
//
// A line is a command, its flags and its arguments, as in zkCli.sh of ZooKeeper 3.9.5. The output
// is byte for byte that of zkCli.sh, on the same output stream; docs/reference/shell.md lists the
// exceptions and their reasons. The same commands run from the command line (one per process), from
// a script on standard input, and at a terminal.
//
// allCommands in commands.go lists all commands. A command computes a result, which holds both the
// text and the JSON form of its output.
package shell
