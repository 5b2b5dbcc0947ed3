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
// values are right is for a digest of the state to tell.
package checkpoint
