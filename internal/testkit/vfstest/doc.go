// Package vfstest provides file systems for tests of code that uses package vfs:
//
//   - [Mem] is in memory and can crash: unsynced data is then lost, kept or torn, as a chooser
//     decides.
//   - [NewFaulty] wraps another file system and fails the operations that a hook selects.
//   - [Fingerprint] tells whether a directory of the operating system was changed.
//   - [DamagedCheckpoints] makes data directories from which no server can start.
package vfstest
