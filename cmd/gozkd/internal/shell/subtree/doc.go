// Package subtree reads and writes whole subtrees of znodes through a client: it walks them in order, compares two, copies and
// moves them, and puts them into a text and back.
//
// Memory is bounded by the depth of the tree, the children of the znodes on one path, and what is read ahead: some hundred
// znodes, and some MiB of data. Requests are many at a time.
//
// A walk is no snapshot. Znodes that go away meanwhile are left out, and those that come may be seen or not.
package subtree
