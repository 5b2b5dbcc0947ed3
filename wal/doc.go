// Package wal stores raft's log on disk: entries with consecutive indexes, and a small state
// (raft's hard state) of which only the newest matters. Both are opaque bytes to this package.
//
// The log is a sequence of numbered segment files. [Log.Append] writes all its batches as ONE
// frame, with one write and one fdatasync, so an append is recovered as a whole or not at all.
// [Log.Compact] drops segments that are no longer needed, and keeps some of their files for the
// next segments.
//
// Invariants:
//
//	W1  After Append has returned nil, Open recovers all of it, even if the process dies or the
//	    power fails.
//	W2  Open recovers all acknowledged appends in order, followed at most by the append that was
//	    running.
//	W3  Damage makes Open fail with a *CorruptError, except damage that destroys the end of the
//	    log and leaves no trace of anything later: damage to the very last append looks like an
//	    append that a power loss has torn, and is cut off (Recovered.TornBytes).
//	    docs/internals/wal.md lists the cases that can't be distinguished.
//	W4  After a disk error the log refuses all further work. A failed fsync is never repeated.
//
// docs/reference/formats.md describes the format, docs/internals/wal.md argues for W1 to W4. The
// package does not know raft, and starts no goroutines.
package wal
