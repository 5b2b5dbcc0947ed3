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
	rc := rawio.Socket(w)
	if rc == nil {
		return nil
	}
	return func(b []byte) (n int, err error) {
		closed := rc.Write(func(fd uintptr) bool {
			n, err = rawio.Write(fd, b, false, false)
			return true // never wait
		})
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
	rc := rawio.Socket(conn)
	if rc == nil {
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
	return !errors.Is(r.err, syscall.EAGAIN)
}
