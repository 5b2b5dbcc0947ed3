//go:build linux || darwin || freebsd

package vfs

import "golang.org/x/sys/unix"

var fullErrors = []error{unix.ENOSPC, unix.EDQUOT, unix.EFBIG}

func spaceOf(dir string) (room Space, known bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return Space{}, false
	}
	//nolint:unconvert // the types differ from system to system
	blocks, free, size := int64(s.Blocks), int64(s.Bavail), int64(s.Bsize)
	return Space{Size: blocks * size, Free: free * size}, true
}
