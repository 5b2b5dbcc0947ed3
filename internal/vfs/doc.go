// Package vfs is the disk as the write-ahead log sees it: a narrow file system interface with a real implementation
// and two hostile ones.
//
//   - [OS] is the operating system's.
//   - [Mem] lives in memory and can be crashed: what was not synced is then lost, kept or torn, as a chooser says.
//   - [NewFaulty] wraps another FS and fails the operations that a hook picks.
//
// The interface holds only what its users need. It is no general file system: there are no permissions, no links, and
// no reads of a file that is replaced meanwhile.
package vfs
