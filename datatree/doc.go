// Package datatree is the state that gozkd replicates: znodes, their ACLs, sessions, the ensemble's
// members, and indexes over them. The state is a pure, deterministic state machine: [Tree.Apply] is
// a function of the state and its arguments.
//
// The package has no clock, randomness, disk, network, connections, watches or goroutines. Time and
// passwords come with the requests; events are returned to the caller, which keeps the watches.
//
// Its invariants, checked by [Tree.Check]:
//
//	D1  every znode except / has its parent, and is listed by it once
//	D2  the ephemerals of a session are the znodes it owns, and each owner is a live session
//	D3  counts are right: children, bytes of their names, data, quotas, ACL references
//	D4  zxids rise: no znode or session carries one above LastZxid
//	D5  while Czxid stays the same, the child counter does not fall (it wraps at 2³¹)
//	D6  the current members and the pending members each include a participant, and the pending
//	    members are newer
//	D7  every number in use belongs to something in the tree: a znode, a list of children, or a
//	    note for a checkpoint; a path has at most one note of its present znode and one of an
//	    earlier znode
//	D8  the limit of growth has a cause; a state that is full weighs at least 95 percent of it
//
// A broken invariant panics. A bad request never panics: its error is in the [Result], and the
// request consumes its zxid.
package datatree
