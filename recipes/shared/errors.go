package shared

import "errors"

var (
	// ErrContended means that other processes were faster at each attempt. Nothing was changed.
	ErrContended = errors.New("shared: other processes were faster at each attempt")
	// ErrOverflow means that a sum is too large. Nothing was changed.
	ErrOverflow = errors.New("shared: overflow")
)
