package memnet

import (
	"bytes"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

type stream struct {
	link link

	mu             sync.Mutex
	state          linkState
	buf            bytes.Buffer
	arrived        int       // bytes at the front of buf that may be read
	inTransit      []arrival // the rest of buf, in order
	wakeAt         time.Time // the earliest time for which a timer runs; zero: none
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
		if at := s.nextArrival(); !at.IsZero() && !s.wakeReaderAt(at) {
			continue
		}
		s.reader.wait()
	}
}

// arrive moves the bytes whose time has come from inTransit to arrived.
func (s *stream) arrive() {
	if len(s.inTransit) == 0 {
		return
	}
	now, n := time.Now(), 0
	for n < len(s.inTransit) && !s.inTransit[n].at.After(now) {
		s.arrived += s.inTransit[n].n
		n++
	}
	s.inTransit = slices.Delete(s.inTransit, 0, n)
}

// nextArrival returns the time of the next arrival, or zero if there is none.
func (s *stream) nextArrival() (at time.Time) {
	if len(s.inTransit) > 0 && !s.state.cut {
		at = s.inTransit[0].at
	}
	return at
}

// take reads arrived bytes. It wakes waiting writers once per half window, not at each read (M3).
func (s *stream) take(b []byte) int {
	before := s.buf.Len()
	n, _ := s.buf.Read(b[:min(len(b), s.arrived)]) // of bytes that are there
	s.arrived -= n
	if before > window/2 && s.buf.Len() <= window/2 {
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
		s.writer.wait()
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
		s.writer.wait()
	}
}

// tryWrite sends as much as it can without waiting.
func (s *stream) tryWrite(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.writeErr(); err != nil || s.writing {
		return 0, err
	}
	return s.put(b), nil
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
	n := min(len(b), window-s.buf.Len())
	if n > 0 {
		s.buf.Write(b[:n])
		s.send(n)
	}
	return n
}

// send schedules the arrival of n bytes in the buffer, or with n 0 of the end of the stream.
func (s *stream) send(n int) {
	last := len(s.inTransit) - 1
	if s.state.delay == 0 && last < 0 {
		s.arrived += n
		s.reader.wake()
		return
	}
	at := time.Now().Add(s.state.delay)
	if last >= 0 && !s.inTransit[last].at.Before(at) { // not before earlier bytes
		s.inTransit[last].n += n
		return
	}
	s.inTransit = append(s.inTransit, arrival{at, n})
	// Readers that come later know of it.
	if !s.state.cut && s.reader.waiting > 0 && !s.reader.closed && !s.wakeReaderAt(at) {
		s.reader.wake()
	}
}

// wakeReaderAt wakes the waiting readers at the given time, or earlier. It only returns false if
// the time has come: timers of no time have crashed Go 1.26 in a bubble with the race detector.
func (s *stream) wakeReaderAt(t time.Time) (ahead bool) {
	if s.wakeAt.IsZero() || t.Before(s.wakeAt) {
		wait := time.Until(t)
		if wait <= 0 {
			return false
		}
		s.wakeAt = t
		time.AfterFunc(wait, func() { s.arrivedAt(t) })
	}
	return true
}

// arrivedAt wakes the waiting readers at a time for which a timer was started.
func (s *stream) arrivedAt(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wakeAt.Equal(t) {
		s.wakeAt = time.Time{}
	}
	s.reader.wake()
}

// closeWriter ends the stream after the bytes written so far. It reports whether it was open.
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

func (s *stream) tear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.torn = true
	s.buf, s.inTransit, s.arrived = bytes.Buffer{}, nil, 0
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

// window is how many bytes may be unread on a connection, in each direction.
const window = 256 << 10

// waiters lets the readers or the writers of a stream wait. The mutex of the stream guards it.
type waiters struct {
	changed  sync.Cond // the stream's mutex is its lock
	waiting  int       // goroutines in wait
	closed   bool
	deadline time.Time // zero: none

	// The timer of the deadline is started when a goroutine waits, and not stopped when the wait
	// ends, because the next wait is likely to end no later. A running timer is moved only to an
	// earlier time, which is rare: moving one costs the runtime more than starting it. If the timer
	// fires before the deadline, it is started again.
	timer   *time.Timer // nil: not needed so far
	firesAt time.Time   // zero: the timer is not running
}

// err returns why calls of this kind fail, or nil.
func (w *waiters) err(torn bool) error {
	switch {
	case w.closed:
		return net.ErrClosed
	case torn:
		return syscall.ECONNRESET
	case !w.deadline.IsZero() && !time.Now().Before(w.deadline):
		return os.ErrDeadlineExceeded
	}
	return nil
}

// wait waits for wake or until the deadline. A goroutine may wake in vain, and must check again.
func (w *waiters) wait() {
	if !w.deadline.IsZero() && !w.startTimer() {
		return
	}
	w.waiting++
	w.changed.Wait()
	w.waiting--
}

// startTimer makes the timer fire at the deadline, or earlier. It returns false, and does nothing,
// if the deadline has come.
func (w *waiters) startTimer() (ahead bool) {
	if !w.firesAt.IsZero() && !w.deadline.Before(w.firesAt) {
		return true
	}
	left := time.Until(w.deadline)
	if left <= 0 {
		return false
	}
	w.firesAt = w.deadline
	if w.timer != nil {
		w.timer.Reset(left)
	} else {
		w.timer = time.AfterFunc(left, w.timerFired)
	}
	return true
}

// timerFired wakes the waiting goroutines if the deadline has come.
func (w *waiters) timerFired() {
	w.changed.L.Lock()
	defer w.changed.L.Unlock()
	w.firesAt = time.Time{}
	if w.waiting > 0 && !w.closed && w.startTimer() { // it was moved
		return
	}
	w.wake()
}

// wake wakes all waiting goroutines, rarely more than one. Without waiters it is cheap.
func (w *waiters) wake() { w.changed.Broadcast() }

func (w *waiters) close() {
	w.closed = true
	if w.timer != nil {
		w.timer.Stop()
	}
	w.wake()
}
