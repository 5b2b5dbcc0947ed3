//go:build !linux

package vfs

import "os"

// datasync is File.Sync, which on darwin is F_FULLFSYNC: plain fsync stops at the drive's cache there.
func datasync(f *os.File) error { return f.Sync() }

// allocate does nothing: the zeros written afterwards allocate.
func allocate(*os.File, int64, int64) error { return nil }
