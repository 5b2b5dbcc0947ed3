//go:build unix

package link

import (
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/gozkd/gozkd/internal/rawio"
)

// rawConn reads and writes a socket without blocking, so that a connection needs no buffer while it
// waits. At most one goroutine at a time may read, and at most one may write.
type rawConn struct {
	rc syscall.RawConn

	// The functions that the runtime calls, made once so that a request allocates nothing. The
	// fields after each function are its arguments and results.
	read  func(fd uintptr) (done bool)
	in    *Input
	inN   int
	inErr error

	write  func(fd uintptr) (done bool)
	out    []byte
	more   bool // more output follows at once
	outErr error
	last   bool // the connection closes after this output
}

// newRawConn returns nil if nc is not a socket.
func newRawConn(nc net.Conn) *rawConn {
	rc := rawio.Socket(nc)
	if rc == nil {
		return nil
	}
	s := &rawConn{rc: rc}
	s.read, s.write = s.readOnce, s.writeAll
	return s
}

// fill waits until bytes have arrived, and only then borrows a buffer for in.
func (s *rawConn) fill(in *Input) error {
	s.in, in.waited = in, false
	waitErr := s.rc.Read(s.read)
	s.in = nil
	switch {
	case waitErr != nil:
		return waitErr
	case s.inErr != nil:
		return s.inErr
	case s.inN <= 0:
		return io.EOF
	}
	in.w = s.inN
	return nil
}

// readOnce is called by the runtime, and after a false result again when the socket is readable.
func (s *rawConn) readOnce(fd uintptr) bool {
	s.in.borrow()
	s.inN, s.inErr = rawio.Read(fd, s.in.buf)
	if errors.Is(s.inErr, syscall.EAGAIN) {
		s.in.Release()
		s.in.waited = true
		return false
	}
	return true
}

// queued returns what waits in the socket's queues. ok is false if the connection is closed.
func (s *rawConn) queued() (q rawio.Queued, ok bool) {
	err := s.rc.Control(func(fd uintptr) { q = rawio.Queues(fd) })
	return q, err == nil
}

// probe is rawio.Probe.
func (s *rawConn) probe(every time.Duration) {
	_ = s.rc.Control(func(fd uintptr) { rawio.Probe(fd, every) }) // fails if the connection is closed
}

// answers is rawio.AnswersOf.
func (s *rawConn) answers() (a rawio.Answers) {
	_ = s.rc.Control(func(fd uintptr) { a = rawio.AnswersOf(fd) }) // fails if the connection is closed
	return a
}

// tryWrite writes as much of b as the socket accepts at once. If more is set, another tryWrite
// follows at once, and the system may wait for it before it sends a packet.
func (s *rawConn) tryWrite(b []byte, more bool) (n int, err error) {
	s.out, s.more, s.outErr = b, more, nil
	waitErr := s.rc.Write(s.write)
	n = len(b) - len(s.out)
	s.out = nil
	if waitErr != nil {
		return n, waitErr
	}
	return n, s.outErr
}

// writeAll never asks the runtime to wait.
func (s *rawConn) writeAll(fd uintptr) bool {
	n, err := rawio.Write(fd, s.out, s.more, s.last)
	s.out, s.outErr = s.out[n:], err
	return true
}
