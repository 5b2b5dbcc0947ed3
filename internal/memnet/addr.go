package memnet

import (
	"net"
	"strconv"
)

// Addr is the address of a listener or of one end of a connection: host:port, or a name passed to
// [Pipe].
type Addr string

// Network returns "memory".
func (Addr) Network() string  { return "memory" }
func (a Addr) String() string { return string(a) }

// ephemeralPort returns the local port of the n-th dialed connection. Ports repeat, as with TCP.
func ephemeralPort(n int) string {
	const first, after = 49152, 65536 // IANA's range
	return strconv.Itoa(first + n%(after-first))
}

// opError returns the error that package net would return. A missing address must be nil.
func opError(op string, local, remote net.Addr, err error) error {
	return &net.OpError{Op: op, Net: Addr("").Network(), Source: local, Addr: remote, Err: err}
}
