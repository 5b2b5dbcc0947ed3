//go:build !linux

package vfs

import "os"

// datasync calls File.Sync, F_FULLFSYNC on darwin: fsync alone stops at the drive's cache there.
func datasync(f *os.File) error { return f.Sync() }

// allocate does nothing: writing the zeros allocates.
func allocate(*os.File, int64, int64) error { return nil }
