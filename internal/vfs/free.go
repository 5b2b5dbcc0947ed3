package vfs

import (
	"errors"
	"slices"
)

// Free returns how many bytes an unprivileged process can still write to the file system of dir. On
// some operating systems the number is not known.
func Free(dir string) (bytes int64, known bool) { return free(dir) }

// Full reports whether an operation failed because a disk is full, or what its user may take of it.
func Full(err error) bool {
	return slices.ContainsFunc(fullErrors, func(full error) bool { return errors.Is(err, full) })
}
