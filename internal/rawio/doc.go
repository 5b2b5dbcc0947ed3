// Package rawio reads and writes sockets that do not block. On Linux the runtime is not told about
// these calls: letting other goroutines run meanwhile would cost more than it saves, and the
// runtime's monitor would wake up for nothing.
package rawio

import "time"

// Buffer is what a Conn reads into.
type Buffer interface {
	// Borrow returns memory, which is not empty, when bytes may have arrived.
	Borrow() []byte
	// Return gives it back if none have.
	Return()
}

// Answers is what a socket shows of the peer's system. The zero value says nothing.
type Answers struct {
	Known      bool
	Ago        time.Duration // since it confirmed anything
	Unanswered int           // probes and repeated packets since
	Ended      bool          // the peer has ended the stream, or the connection is broken
}

// Queued is what waits in a socket's queues, in bytes. The zero value says nothing.
type Queued struct {
	Unread int // has come, and is not read
	Unsent int // is written, and the peer has not confirmed that it has come
}
