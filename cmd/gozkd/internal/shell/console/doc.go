// Package console reads lines from a terminal, with editing, history and completion, and prints
// output above the line that is being typed. The meaning of lines is up to the caller.
//
// The editor is that of golang.org/x/term, whose Write may be called at any time: it removes the
// line, prints, and draws the line again. The package adds the keys that terminals encode
// differently, Ctrl-C, a history search, lists of completions, and a history file.
// docs/adr/0005-libraries.md compares other editors.
//
// The terminal is in raw mode only during ReadLine. Between two calls it has its original mode,
// nothing reads from it, and Ctrl-C is a signal, so a program such as an editor can use it.
package console
