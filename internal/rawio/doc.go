// Package rawio reads and writes sockets that do not block. On Linux the runtime is not told about
// these calls: letting other goroutines run meanwhile would cost more than it saves, and the
// runtime's monitor would wake up for nothing.
package rawio

import "time"

// Buffer lends the memory that a Conn reads into, so that a reader holds none while it waits.
type Buffer interface {
	// Borrow returns memory, which is not empty, when bytes may have arrived.
	Borrow() []byte
	// Return gives it back if none have.
	Return()
}

// Sink is a buffer for all Conns to borrow for bytes that nobody reads. Linux does not copy them.
var Sink [256 << 10]byte

// Answers are the signs of the peer's system that a socket shows. The zero value says nothing.
type Answers struct {
	Known      bool
	Ago        time.Duration // since it confirmed anything
	Unanswered int           // probes and repeated packets since
	Ended      bool          // the peer has ended the stream, or the connection is broken
	HasRoom    bool          // the peer may send at least a packet more
}

// Queued are the bytes that wait in a socket's queues: if it changes between two calls, the peer is
// alive. The zero value says nothing.
type Queued struct {
	Unread int // has come, and is not read
	Unsent int // is written, and the peer has not confirmed that it has come
}
