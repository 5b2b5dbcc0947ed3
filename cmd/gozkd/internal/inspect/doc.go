// Package inspect implements `gozkd inspect` and `gozkd history`, which print data files: records
// of logs, znodes, sessions, and sums of subtrees. They change nothing and lock nothing.
//
// A [source] is a file or directory in some format. The commands know sources only; [open] finds
// the format of a path.
package inspect
