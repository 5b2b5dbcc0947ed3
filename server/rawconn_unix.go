//go:build unix

package server

import (
	"errors"
	"io"
	"net"
	"syscall"
)

// rawConn reads and writes a socket without holding a buffer while it waits.
type rawConn interface {
	// read waits until bytes are there and only then takes a buffer from borrow to read into. It returns that buffer.
	read(borrow func() []byte, giveBack func([]byte)) (b []byte, n int, err error)
	// tryWrite writes what the socket takes at once.
	tryWrite(b []byte) (n int, err error)
}

type socket struct{ rc syscall.RawConn }

// newRawConn returns nil if nc is no socket.
func newRawConn(nc net.Conn) rawConn {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return nil
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	return socket{rc}
}

func (s socket) read(borrow func() []byte, giveBack func([]byte)) (b []byte, n int, err error) {
	// The runtime calls the function, and while it returns false waits for the socket to become readable, then again.
	waitErr := s.rc.Read(func(fd uintptr) bool {
		b = borrow()
		for {
			n, err = syscall.Read(int(fd), b)
			if !errors.Is(err, syscall.EINTR) {
				break
			}
		}
		if errors.Is(err, syscall.EAGAIN) {
			giveBack(b)
			b, n, err = nil, 0, nil
			return false
		}
		return true
	})
	switch {
	case waitErr != nil:
		return b, 0, waitErr
	case err != nil:
		return b, 0, err
	case n <= 0:
		return b, 0, io.EOF
	}
	return b, n, nil
}

func (s socket) tryWrite(b []byte) (n int, err error) {
	waitErr := s.rc.Write(func(fd uintptr) bool {
		for n < len(b) {
			var m int
			m, err = syscall.Write(int(fd), b[n:])
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			if err != nil {
				break
			}
			n += m
		}
		return true // never wait
	})
	if errors.Is(err, syscall.EAGAIN) {
		err = nil
	}
	return n, errors.Join(waitErr, err)
}
