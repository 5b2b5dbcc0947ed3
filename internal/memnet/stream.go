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
	underWay       []arrival // the rest of buf, in order
	reader, writer side
	writing        bool // a Write has begun, and others wait until it is done (M4)
	torn           bool
}

// arrival is when the next n bytes arrive. With n 0 it is the news of the writer's Close.
type arrival struct {
	at time.Time
	n  int
}

func newStream(l link, state linkState) *stream {
	s := &stream{link: l, state: state}
	s.reader.news.L, s.writer.news.L = &s.mu, &s.mu
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
			if s.writer.closed && len(s.underWay) == 0 {
				return 0, io.EOF
			}
		}
		s.reader.wait(s.nextArrival())
	}
}

// arrive counts in what is there by now.
func (s *stream) arrive() {
	if len(s.underWay) == 0 {
		return
	}
	now := time.Now()
	for len(s.underWay) > 0 && !s.underWay[0].at.After(now) {
		s.arrived += s.underWay[0].n
		s.underWay = s.underWay[1:]
	}
}

// nextArrival returns when a reader should look again, or the zero time if there is nothing to come.
func (s *stream) nextArrival() (at time.Time) {
	if len(s.underWay) > 0 && !s.state.cut {
		at = s.underWay[0].at
	}
	return at
}

// take reads bytes that arrived. Writers that wait are woken once for half a window, and not for each read (M3).
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

// put sends as much of b as there is room for.
func (s *stream) put(b []byte) int {
	n := min(len(b), window-s.buf.len())
	if n > 0 {
		s.buf.write(b[:n])
		s.send(n)
	}
	return n
}

// send lets n bytes that are in the buffer, or with 0 the writer's end, go to the reader.
func (s *stream) send(n int) {
	s.reader.wake()
	last := len(s.underWay) - 1
	if s.state.delay == 0 && last < 0 {
		s.arrived += n
		return
	}
	at := time.Now().Add(s.state.delay)
	if last >= 0 && !s.underWay[last].at.Before(at) { // together with what was sent before, not overtaking it
		s.underWay[last].n += n
		return
	}
	s.underWay = append(s.underWay, arrival{at, n})
}

// closeWriter ends the stream behind what was written. It reports whether it was open.
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

// tear loses what is under way.
func (s *stream) tear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.torn = true
	s.buf, s.underWay, s.arrived = ring{}, nil, 0
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

// setDeadline reports whether that side is open.
func (s *stream) setDeadline(side *side, t time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if side.closed {
		return false
	}
	side.deadline = t
	side.wake()
	return true
}
