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
//	    docs/internals/consensus.md lists the cases that can't be distinguished.
//	W4  After a disk error the log refuses all further work. A failed fsync is never repeated.
//
// docs/reference/formats.md describes the format, docs/internals/consensus.md argues for W1 to W4.
// The package does not know raft, and starts no goroutines.
//
// # Segments and recycled files
//
// A segment is prepared under a spare's name: header, the newest state as its first frame, zeros
// ahead. Then it is synced, renamed to its number, and the directory is synced. So every file with
// a segment's name has a whole header and holds the state, and all earlier segments may be dropped.
// The previous segment is complete and durable at that moment: a bad frame in a segment with a
// successor is always damage.
//
// Two dropped segments are kept for reuse: an append that changes the size or allocation of the
// file would cost twice as much to sync.
//
// Old frames in a recycled file cannot be mistaken for new frames: their numbers are lower, their
// salt differs (64 random bits per segment), and their chain value differs. Open zeroes the remains
// of a torn frame, so that pieces of two attempts never combine.
//
// # Compact
//
// Compact drops segments from the oldest on and syncs the directory after each one: with two
// removals in flight a crash could undo the first and keep the second, and the gap would look like
// damage. The compacted index is not stored: after Open some compacted entries may be back. Reset
// is stored; it empties the log and says where it continues, as after a checkpoint from the leader.
//
// # Open
//
//  1. Lock the directory. Segment numbers must have no gaps.
//  2. Read the segments in order. Each header must fit what was read before. Lengths and counts are
//     compared with the available bytes before they size anything.
//  3. In the last segment the first bad frame ends the log if it is a torn append
//     (docs/internals/consensus.md). The remains are zeroed.
//  4. Write the last good frame again and sync. The previous process may have died between write
//     and sync, or its sync may have failed, after which Linux keeps the page and marks it clean.
//     Only the last frame can be in that state.
//  5. Sync the directory and remove spares that do not fit.
package wal
