//go:build !unix

package rawio

import (
	"sync/atomic"
	"time"
)

// Conn does not exist on this system.
type Conn struct {
	Last     bool
	Position atomic.Int64
	uncalled
}

// uncalled has the methods of a Conn for the compiler.
type uncalled interface {
	Read(into Buffer) (int, error)
	TryWrite(b []byte, more bool) (int, error)
	Queued() (Queued, bool)
	Probe(every time.Duration)
	Answers() Answers
}

// NewConn returns nil.
func NewConn(any) *Conn { return nil }
