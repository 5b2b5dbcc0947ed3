//go:build unix

package rawio

import (
	"errors"
	"io"
	"sync/atomic"
	"syscall"
	"time"
)

// Conn reads and writes a socket without blocking, so that a connection needs no buffer while it
// waits. At most one goroutine at a time may read, and at most one may write.
type Conn struct {
	rc syscall.RawConn

	// The functions that the runtime calls, made once so that no read and no write allocates. The
	// fields after each function are its arguments and results.
	read  func(fd uintptr) (done bool)
	into  Buffer
	inN   int
	inErr error
	// Position is how many bytes of the stream were read. Who reads them without Read adds them.
	Position atomic.Int64

	write  func(fd uintptr) (done bool)
	out    []byte
	outErr error
	more   bool // more output follows at once
	// Last says that the stream ends after the bytes of the next TryWrite.
	Last bool
}

// NewConn returns nil if c is not a socket.
func NewConn(c any) *Conn {
	socket, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	rc, err := socket.SyscallConn()
	if err != nil {
		return nil
	}
	s := &Conn{rc: rc}
	s.read, s.write = s.readOnce, s.writeAll
	return s
}

// Read waits until bytes have arrived, or until the read deadline of the connection, and returns
// how many are in the memory that was borrowed last. Only then it has not been returned. The error
// at the end of the stream is io.EOF.
func (s *Conn) Read(into Buffer) (int, error) {
	s.into = into
	waitErr := s.rc.Read(s.read)
	s.into = nil
	switch {
	case waitErr != nil:
		return 0, waitErr
	case s.inErr != nil:
		return 0, s.inErr
	case s.inN <= 0:
		return 0, io.EOF
	}
	s.Position.Add(int64(s.inN))
	return s.inN, nil
}

// readOnce is called by the runtime, and after a false result again when the socket is readable.
func (s *Conn) readOnce(fd uintptr) bool {
	b := s.into.Borrow()
	for {
		if s.inN, s.inErr = read(fd, b); !errors.Is(s.inErr, syscall.EINTR) {
			break
		}
	}
	if errors.Is(s.inErr, syscall.EAGAIN) {
		s.into.Return()
		return false
	}
	return true
}

// TryWrite writes as much of b as the socket accepts at once, and never waits. If more is set,
// another TryWrite follows at once, and the system may wait for it before it sends a packet.
// TryWrite must not be called while another write of the connection waits: it would wait, too.
func (s *Conn) TryWrite(b []byte, more bool) (n int, err error) {
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
func (s *Conn) writeAll(fd uintptr) bool {
	for len(s.out) > 0 {
		n, err := write(fd, s.out, s.more, s.Last)
		switch {
		case err == nil:
			s.out = s.out[n:]
		case errors.Is(err, syscall.EAGAIN):
			return true
		case !errors.Is(err, syscall.EINTR):
			s.outErr = err
			return true
		}
	}
	return true
}

// Queued returns the bytes that wait in the socket's queues. ok is false if it is closed.
func (s *Conn) Queued() (q Queued, ok bool) {
	err := s.rc.Control(func(fd uintptr) { q = queues(fd) })
	return q, err == nil
}

// Probe has the system send probes that the peer's system answers, at an interval of seconds while
// nothing else is sent, or no more if the interval is 0.
func (s *Conn) Probe(every time.Duration) {
	_ = s.rc.Control(func(fd uintptr) { probe(fd, every) }) // fails if the connection is closed
}

// Answers returns the signs of the peer's system that the socket shows.
func (s *Conn) Answers() (a Answers) {
	_ = s.rc.Control(func(fd uintptr) { a = answers(fd) }) // fails if the connection is closed
	return a
}
