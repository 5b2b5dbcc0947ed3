package peer

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// late returns the reason to refuse an accepted connection: err, or net.ErrClosed if this process
// stood still and the caller gave up meanwhile. A member that has given up can no longer confirm
// that the connection is its own, and must not be counted as an impostor.
func (n *Network) late(conn net.Conn, err error) error {
	if !n.standstill.Recent(time.Now(), silenceTimeout) {
		return err
	}
	if conn.SetReadDeadline(time.Now().Add(heartbeatInterval)) == nil { // otherwise it is closed
		if _, end := io.CopyN(io.Discard, conn, maxHandshake); end == nil || errors.Is(end, os.ErrDeadlineExceeded) {
			return err // the caller is still there
		}
	}
	return fmt.Errorf("the caller had given up: this process stood still: %w", net.ErrClosed)
}
