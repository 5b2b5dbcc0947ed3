//go:build unix

package rawio

import (
	"errors"
	"syscall"
)

// Socket returns the socket of a connection, or nil if c has none.
func Socket(c any) syscall.RawConn {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	return rc
}

// Read reads what has arrived. The error is EAGAIN if nothing has.
func Read(fd uintptr, b []byte) (n int, err error) {
	for {
		if n, err = read(fd, b); !errors.Is(err, syscall.EINTR) {
			return n, err
		}
	}
}

// Write writes as much of b as the socket takes at once. With more, further bytes follow soon. With
// last, the stream ends after b.
func Write(fd uintptr, b []byte, more, last bool) (n int, err error) {
	for n < len(b) {
		m, err := write(fd, b[n:], more, last)
		switch {
		case err == nil:
			n += m
		case errors.Is(err, syscall.EAGAIN):
			return n, nil
		case !errors.Is(err, syscall.EINTR):
			return n, err
		}
	}
	return n, nil
}
