// Package vfs is a narrow file system interface for the write-ahead log and the checkpoints, with a
// real implementation and two for tests:
//
//   - [OS] is the file system of the operating system.
//   - [Mem] is in memory and can crash: unsynced data is then lost, kept or torn, as a chooser
//     decides.
//   - [NewFaulty] wraps another FS and fails the operations that a hook selects.
//
// The interface is not general: it has no permissions, no links, and no reads of a file that is
// being replaced.
package vfs
