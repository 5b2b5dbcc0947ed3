package shell

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
)

// lock is what two writers share, so that what goes to one does not split what goes to the other on a terminal.
type lock = sync.Mutex

// writer passes on one Write at a time.
type writer struct {
	lock *lock
	to   io.Writer
}

func (w *writer) Write(p []byte) (int, error) {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.to.Write(p)
}

// writeBuffer collects what is to be written in one piece.
type writeBuffer struct {
	bytes.Buffer
	to io.Writer
}

func (w *writeBuffer) flush() error {
	if w.Len() == 0 {
		return nil
	}
	_, err := w.to.Write(w.Bytes())
	return err
}

// toggle is a switch that two goroutines see.
type toggle struct{ v atomic.Bool }

func newToggle(on bool) *toggle {
	t := new(toggle)
	t.v.Store(on)
	return t
}

func (t *toggle) on() bool    { return t.v.Load() }
func (t *toggle) set(on bool) { t.v.Store(on) }
