package shared

import (
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
)

// Errors of this package.
var (
	// ErrContended means that others were faster as often as was tried. Nothing was changed.
	ErrContended = errors.New("shared: others were faster each time")
	// ErrNotNumber means that a znode's data are no number of the kind that was asked for.
	ErrNotNumber = errors.New("shared: not a number of this kind")
	// ErrOverflow means that a sum is too large. Nothing was changed.
	ErrOverflow = errors.New("shared: overflow")
	// ErrNoneFree means that others have all the names.
	ErrNoneFree = errors.New("shared: none is free")
	// ErrBadName means that one of the names is empty or has a slash. Nothing was asked of the server.
	ErrBadName = errors.New("shared: a name is empty or has a slash")
	// ErrLeaseFormat means that what is there is no lease that this package knows; nobody but kazoo's successors can take it.
	ErrLeaseFormat = errors.New("shared: lease of another format")
)

// Versioned is a value as it was at one moment. The zero value stands for a znode that is not there.
type Versioned[T any] struct {
	Value   T
	Version int32
	Zxid    int64 // of the change that made it; 0: there is none
	// Since is when that was, by the leader's clock; the zero time in what a change returns.
	Since time.Time
}

// Exists reports whether there was a znode.
func (v Versioned[T]) Exists() bool { return v.Zxid != 0 }

// Change is what a change found and made.
type Change[T any] struct {
	Before, After Versioned[T]
	Optimistic    int // tries
	Promoted      int // tries under the lock
}

func versioned(data []byte, stat *zk.Stat) Versioned[[]byte] {
	return Versioned[[]byte]{data, stat.Version, stat.Mzxid, time.UnixMilli(stat.Mtime)}
}

// convert has the value of v decoded.
func convert[T any](v Versioned[[]byte], decode func([]byte) (T, error)) (Versioned[T], error) {
	n, err := decode(v.Value)
	return Versioned[T]{n, v.Version, v.Zxid, v.Since}, err
}
