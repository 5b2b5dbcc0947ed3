package shared

import "errors"

// Errors of this package.
var (
	// ErrContended means that other processes were faster at each attempt. Nothing was changed.
	ErrContended = errors.New("shared: other processes were faster at each attempt")
	// ErrNotNumber means that a znode's data are not a number of the requested kind.
	ErrNotNumber = errors.New("shared: not a number of this kind")
	// ErrOverflow means that a sum is too large. Nothing was changed.
	ErrOverflow = errors.New("shared: overflow")
	// ErrNoneFree means that all names are taken.
	ErrNoneFree = errors.New("shared: no name is free")
	// ErrInvalidName means that a name is empty or has a slash. No request was sent.
	ErrInvalidName = errors.New("shared: a name is empty or has a slash")
	// ErrLeaseTaken means that another holder has the lease, and the lease has not ended.
	ErrLeaseTaken = errors.New("shared: lease is taken")
	// ErrLeaseOver is the cause of the end of a HeldLease's Context.
	ErrLeaseOver = errors.New("shared: lease is over")
	// ErrLeaseFormat means that this package does not know the lease's format and cannot take the
	// lease.
	ErrLeaseFormat = errors.New("shared: lease of an unknown format")
)
