// Package datatree is the state that gozkd replicates: znodes, their ACLs, sessions, the ensemble's members, and the indexes
// over them. It is a pure, deterministic state machine: [Tree.Apply] is a function of the state and its arguments.
//
// What it is not: it knows no clock, no randomness, no disk, no network, no connection and no watch. Time and passwords come
// in with the requests; events go out to whoever keeps the watches.
//
// Its invariants, which [Tree.Check] walks:
//
//	D1  every znode but / has its parent, and is listed by it once
//	D2  the ephemerals of a session are the znodes it owns, and each owner is a live session
//	D3  counts agree with what they count: children, bytes of their names, data, quotas, ACL references
//	D4  zxids rise: no znode or session carries one above LastZxid
//	D5  while Czxid stays the same, the child counter does not fall (it wraps at 2³¹)
//	D6  members of the ensemble, current and pending, include a participant; those pending are newer than the current ones
//	D7  what has a number is in the tree: znodes, lists of children, notes for a checkpoint; one note of a path as it is, one of
//	    an earlier znode that had it
//
// A broken invariant panics. A bad request never does: its error is in the [Result], and it still has consumed its zxid.
package datatree
