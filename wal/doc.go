// Package wal is raft's log on disk: entries with an index each, and a small state (raft's hard state) of which the
// newest counts. Both are opaque bytes here.
//
// The log is a row of numbered segment files. [Log.Append] writes all it is given as ONE frame, with one write and one
// fdatasync, so an append is on disk as a whole or not at all. [Log.Compact] drops segments that are no longer needed and
// keeps a few of their files to write the next segments into.
//
// What holds:
//
//	W1  When Append returns nil, all of it is found again by Open, whatever happens to the process or the power.
//	W2  What Open recovers is all of the acknowledged appends in order, then at most one more: the one that was under way.
//	W3  Damage stops Open with a *CorruptError, unless it takes the end of the log without leaving a trace of anything later:
//	    damage to the very last append looks like one that a power loss has cut off, and is cut (Recovered.TornBytes).
//	    docs/internals/wal.md says exactly what can't be told apart.
//	W4  After an error of the disk the log refuses all further work. A failed fsync is never repeated.
//
// The bytes are in docs/reference/formats.md, the arguments for W1 to W4 in docs/internals/wal.md. Nothing here knows raft; there are no
// goroutines.
package wal
