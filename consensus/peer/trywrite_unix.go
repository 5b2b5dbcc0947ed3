//go:build unix

package peer

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/gozkd/gozkd/internal/rawio"
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
				m, err = rawio.Write(fd, b[n:], false, false)
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

// rawReader reads a socket. At most one goroutine at a time may read.
type rawReader struct {
	rc  syscall.RawConn
	try func(fd uintptr) (done bool) // r.once, made once so that a read allocates nothing

	b   []byte // argument and results of try
	n   int
	err error
}

// newRawReader returns conn if it is no socket.
func newRawReader(conn net.Conn) io.Reader {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return conn
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return conn
	}
	r := &rawReader{rc: rc}
	r.try = r.once
	return r
}

// Read waits until bytes have arrived, or the read deadline of the connection. b is not empty.
func (r *rawReader) Read(b []byte) (int, error) {
	r.b = b
	waitErr := r.rc.Read(r.try)
	r.b = nil
	switch {
	case waitErr != nil:
		return 0, waitErr
	case r.err != nil:
		return 0, os.NewSyscallError("read", r.err)
	case r.n == 0:
		return 0, io.EOF
	}
	return r.n, nil
}

// once is called by the runtime, and after a false result again when the socket is readable.
func (r *rawReader) once(fd uintptr) bool {
	r.n, r.err = rawio.Read(fd, r.b)
	for errors.Is(r.err, syscall.EINTR) {
		r.n, r.err = rawio.Read(fd, r.b)
	}
	return !errors.Is(r.err, syscall.EAGAIN)
}
