//go:build !unix

package peer

import (
	"io"
	"net"
)

// newTryWriter returns nil: all frames are written by the goroutine of the peer.
func newTryWriter(io.Writer) func(b []byte) (n int, err error) { return nil }

// newRawReader returns conn.
func newRawReader(conn net.Conn) io.Reader { return conn }
