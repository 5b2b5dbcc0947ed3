package memnet

import (
	"io"
	"sync"
	"syscall"
	"time"
)

// stream is one direction of a connection.
type stream struct {
	link link

	mu             sync.Mutex
	state          linkState
	buf            ring
	arrived        int       // bytes at the front of buf that may be read
	inTransit      []arrival // the rest of buf, in order
	reader, writer waiters
	writing        bool // a Write is running, and others wait for it (M4)
	torn           bool
}

// arrival is the time at which the next n bytes arrive. n is 0 for the end of the stream.
type arrival struct {
	at time.Time
	n  int
}

func newStream(l link, state linkState) *stream {
	s := &stream{link: l, state: state}
	s.reader.changed.L, s.writer.changed.L = &s.mu, &s.mu
	return s
}

func (s *stream) read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if err := s.reader.err(s.torn); err != nil || len(b) == 0 {
			return 0, err
		}
		if !s.state.cut {
			s.arrive()
			if s.arrived > 0 {
				return s.take(b), nil
			}
			if s.writer.closed && len(s.inTransit) == 0 {
				return 0, io.EOF
			}
		}
		s.reader.wait(s.nextArrival())
	}
}

// arrive moves the bytes whose time has come from inTransit to arrived.
func (s *stream) arrive() {
	if len(s.inTransit) == 0 {
		return
	}
	now := time.Now()
	for len(s.inTransit) > 0 && !s.inTransit[0].at.After(now) {
		s.arrived += s.inTransit[0].n
		s.inTransit = s.inTransit[1:]
	}
}

// nextArrival returns the time of the next arrival, or zero if there is none.
func (s *stream) nextArrival() (at time.Time) {
	if len(s.inTransit) > 0 && !s.state.cut {
		at = s.inTransit[0].at
	}
	return at
}

// take reads arrived bytes. It wakes waiting writers once per half window instead of at each read
// (M3).
func (s *stream) take(b []byte) int {
	before := s.buf.len()
	n := s.buf.read(b[:min(len(b), s.arrived)])
	s.arrived -= n
	if before > window/2 && s.buf.len() <= window/2 {
		s.writer.wake()
	}
	return n
}

func (s *stream) write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.writing {
		if err := s.writeErr(); err != nil {
			return 0, err
		}
		s.writer.wait(time.Time{})
	}
	s.writing = true
	n, err := s.writeAlone(b)
	s.writing = false
	s.writer.wake()
	return n, err
}

func (s *stream) writeAlone(b []byte) (n int, err error) {
	for {
		if err := s.writeErr(); err != nil {
			return n, err
		}
		n += s.put(b[n:])
		if n == len(b) {
			return n, nil
		}
		s.writer.wait(time.Time{})
	}
}

func (s *stream) writeErr() error {
	if err := s.writer.err(s.torn); err != nil {
		return err
	}
	if s.reader.closed && !s.state.cut {
		return syscall.EPIPE
	}
	return nil
}

// put sends as much of b as fits into the window.
func (s *stream) put(b []byte) int {
	n := min(len(b), window-s.buf.len())
	if n > 0 {
		s.buf.write(b[:n])
		s.send(n)
	}
	return n
}

// send schedules the arrival of n bytes in the buffer, or with n 0 of the end of the stream.
func (s *stream) send(n int) {
	s.reader.wake()
	last := len(s.inTransit) - 1
	if s.state.delay == 0 && last < 0 {
		s.arrived += n
		return
	}
	at := time.Now().Add(s.state.delay)
	if last >= 0 && !s.inTransit[last].at.Before(at) { // not before earlier bytes
		s.inTransit[last].n += n
		return
	}
	s.inTransit = append(s.inTransit, arrival{at, n})
}

// closeWriter ends the stream after the bytes written so far. It reports whether the stream was
// open.
func (s *stream) closeWriter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writer.closed {
		return false
	}
	s.writer.close()
	s.send(0)
	return true
}

func (s *stream) closeReader() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reader.close()
	s.writer.wake()
}

// tear breaks the stream and discards its bytes.
func (s *stream) tear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.torn = true
	s.buf, s.inTransit, s.arrived = ring{}, nil, 0
	s.reader.wake()
	s.writer.wake()
}

func (s *stream) setLink(state linkState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = state
	s.reader.wake()
	s.writer.wake()
}

// setDeadline sets the deadline of the readers or writers. It reports whether they are open.
func (s *stream) setDeadline(w *waiters, t time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.closed {
		return false
	}
	w.deadline = t
	w.wake()
	return true
}
