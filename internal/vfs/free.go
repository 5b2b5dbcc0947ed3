package vfs

import (
	"errors"
	"slices"
)

// Space is the room on a file system, in bytes.
type Space struct {
	Size int64 // of the file system
	Free int64 // left for unprivileged processes
}

// SpaceOf returns the room on the file system of dir. On some operating systems it is not known.
func SpaceOf(dir string) (room Space, known bool) { return spaceOf(dir) }

// Full reports whether an operation failed because a disk is full, what its user may take of it, or
// a file as large as this process may make it.
func Full(err error) bool {
	return slices.ContainsFunc(fullErrors, func(full error) bool { return errors.Is(err, full) })
}
