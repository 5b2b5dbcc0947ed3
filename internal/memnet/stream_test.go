package memnet

import (
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// A timer of no time, or of less, is never started: Go 1.26 has crashed on such timers.
func TestStream_NoTimerOfNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(link{}, linkState{delay: time.Millisecond})
		s.put([]byte("a")) // nobody waits for it
		time.Sleep(2 * time.Millisecond)
		s.state.delay = 0
		s.reader.waiting = 1 // a reader that was woken, and has not run since
		s.put([]byte("b"))
		s.reader.waiting = 0
		if !s.wakeAt.IsZero() {
			t.Error("bytes that arrive at once have a timer")
		}
		if n, err := s.read(make([]byte, 3)); n != 2 || err != nil {
			t.Errorf("read %d bytes, %v", n, err)
		}

		s.reader.deadline = time.Now()
		s.mu.Lock()
		s.reader.wait()
		s.mu.Unlock()
		if s.reader.timer != nil {
			t.Error("a deadline that has come has a timer")
		}
		if _, err := s.read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
	})
}
