// Package checkpoint reads and writes checkpoint files, and the stream in which a checkpoint
// travels between members.
//
// A checkpoint is a set of keys with values, plus meta: bytes that say of which moment the state
// is. The package interprets neither. The file has the format of bbolt, version 2, so that every
// tool for bbolt opens it: bucket "state" holds the pairs, bucket "meta" the meta. See
// docs/reference/formats.md and docs/adr/0004-checkpoints-are-merges.md.
//
// [Merge] and [Create] are the only writers of such files. Both write one transaction: a run of
// keys in ascending order is merged into the tree of the state, on pages that were free before, and
// the meta page, written last, makes the transaction count (C4: a checkpoint is whole or absent).
// [Open] reads a file and verifies each page before use: a damaged page is an error that wraps
// [ErrCorrupt], never a panic, an endless loop, or more memory than the file is worth. Whether the
// values are right is for a digest of the state to tell. For a tool, which reads from [Saved], all
// pages of the pairs are verified before bbolt reads the pairs.
//
// Why a merge is safe: let T be the transaction of the newest good meta page, and S that of the
// other meta page.
//
//   - A merge changes no page that T needs. It writes to pages that T lists as free, and beyond T's
//     end, and adds the pages of T that it replaces to the free list, for the next merge.
//   - T is on disk before its free pages are used, which S may need: the process that wrote T may
//     have died before the sync, or the sync failed. Therefore a merge first writes T's meta page
//     again and syncs.
//   - The meta page comes last: data, sync, meta page, sync. It is shorter than a sector and has a
//     checksum. Only after the second sync does the log drop entries.
//   - A merge knows its base. If the newest good meta page has another index, or the file is gone,
//     the merge refuses and the server stops. An I/O error is not corruption: if a meta page cannot
//     be read, the merge does not continue from S. Nothing is retried after an error.
//   - A member that sends its checkpoint writes none meanwhile; a tool holds bbolt's file lock, for
//     which the next merge waits.
//
// A start that finds T damaged begins with S, and the log replays the rest:
//
//   - S is there until the next merge has begun, and is read with all checks first.
//   - The log covers S: a checkpoint lets the log drop only entries that the previous checkpoint
//     covers. If the log does not continue S beyond T, the start fails and names both.
//   - T's meta page goes first. The start replaces it by a page that names S's pages, with T's
//     number plus 2, so that the next merge is based on S. A torn write leaves S.
package checkpoint
