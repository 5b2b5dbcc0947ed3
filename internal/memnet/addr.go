package memnet

import (
	"net"
	"strconv"
)

// Addr is the address of a listener or of an end of a connection: host:port, or a name that was given to [Pipe].
type Addr string

// Network returns "memory".
func (Addr) Network() string  { return "memory" }
func (a Addr) String() string { return string(a) }

// port returns the port of who dials for the n-th time. Like those of TCP, it comes round again.
func port(n int) string {
	const first, after = 49152, 65536 // as IANA has it
	return strconv.Itoa(first + n%(after-first))
}

// opError makes the error that package net would return. The addresses are nil where there is none.
func opError(op string, local, remote net.Addr, err error) error {
	return &net.OpError{Op: op, Net: Addr("").Network(), Source: local, Addr: remote, Err: err}
}
