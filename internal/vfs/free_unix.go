//go:build linux || darwin || freebsd

package vfs

import "golang.org/x/sys/unix"

var fullErrors = []error{unix.ENOSPC, unix.EDQUOT}

func free(dir string) (bytes int64, known bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true //nolint:unconvert // the types differ from system to system
}
