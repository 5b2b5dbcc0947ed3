// Package subtree reads and writes whole subtrees of znodes through a client: it walks, compares,
// copies, moves, exports and imports subtrees.
//
// Memory is bounded by the depth of the tree, the children of the znodes on a path, and the
// read-ahead: a few hundred znodes and some MiB of data. Many requests are in flight at once.
//
// A walk is not a snapshot. It skips znodes that are deleted meanwhile, and may or may not see
// znodes that are created meanwhile.
package subtree
