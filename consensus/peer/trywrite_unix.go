//go:build unix

package peer

import (
	"errors"
	"io"
	"syscall"
)

// newTryWriter returns a function that writes as much as a socket accepts at once, and never waits;
// nil if w is no socket. The function must not be called while w.Write runs, since the call would
// wait for that write.
func newTryWriter(w io.Writer) func(b []byte) (n int, err error) {
	sc, ok := w.(syscall.Conn)
	if !ok {
		return nil
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	return func(b []byte) (n int, err error) {
		closed := rc.Write(func(fd uintptr) bool {
			for n < len(b) && err == nil {
				var m int
				m, err = syscall.Write(int(fd), b[n:])
				n += max(m, 0)
				if errors.Is(err, syscall.EINTR) {
					err = nil
				}
			}
			return true // never wait
		})
		if errors.Is(err, syscall.EAGAIN) {
			err = nil
		}
		return n, errors.Join(closed, err)
	}
}
