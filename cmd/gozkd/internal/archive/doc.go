// Package archive keeps the replicated log of an ensemble in a directory or in object storage, so
// that any moment can be restored. docs/adr/0010-archive.md has the design, the names and bytes of
// the objects, and the invariants A1 to A6 that comments here refer to.
//
// A Shipper writes, in the process of a server. An Archive reads.
package archive
