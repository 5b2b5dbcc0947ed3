//go:build linux || darwin || freebsd

package vfs

import (
	"io/fs"
	"syscall"
	"testing"
)

// TestFull: a disk is also full for a user who has used up a quota, and for a process whose file is
// as large as it may be. A disk that became read-only is broken: no room on it would end that.
func TestFull(t *testing.T) {
	for err, want := range map[error]bool{
		syscall.ENOSPC: true, syscall.EDQUOT: true, syscall.EFBIG: true, syscall.EROFS: false, syscall.EIO: false, fs.ErrNotExist: false, nil: false,
	} {
		if err != nil {
			err = &fs.PathError{Op: "write", Path: "log", Err: err}
		}
		if got := Full(err); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}
