// Package vfs is a narrow file system interface for the write-ahead log and the checkpoints. [OS]
// implements it; package vfstest has implementations for tests, which crash and fail.
//
// The interface is not general: it has no permissions, no links, and no reads of a file that is
// being replaced.
package vfs
