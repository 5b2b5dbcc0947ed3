// Package console reads lines from a terminal, with editing, history and completion, and prints while one is typed.
//
// It knows nothing of what the lines mean. The editor itself is golang.org/x/term's: it alone of those looked at promises
// that Write may come at any time, takes the typed line away, prints, and puts the line back. What that editor lacks is
// here: keys that terminals send in other words, Ctrl-C told from Ctrl-D, a search in the history, lists of completions, a
// history file.
//
// A line is typed in the terminal's raw mode. Between two calls of ReadLine the terminal is as it was found, nobody
// reads from it, and Ctrl-C is a signal again: a program started then, an editor say, has the terminal for itself.
package console
