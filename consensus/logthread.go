package consensus

import (
	"sync"
	"time"

	"github.com/gozkd/gozkd/consensus/internal/core"
	"github.com/gozkd/gozkd/consensus/internal/turn"
)

// logThread is the log of a running node: a queue of work, and the writer that does it. Usually a
// goroutine of its own runs the writer; if that goroutine is idle, the loop may do the work itself.
type logThread struct {
	mu     sync.Mutex // guards writer; held from taking work off the queue until the work is done
	writer *logWriter
	queue  *mailbox[turn.LogWork]
	watch  *writeWatch // of writer
}

// write does the work or queues it. inline asks for the work to be done now, on this goroutine: for
// a lone client, two switches of goroutines, each with a wake-up, cost about as much as a sync.
// Requests that come during the sync wait in the inbox and share one entry. Work that needs no disk
// is done now unless other work comes first: in memory all work, and answers to a leader that sends
// no entries.
func (l *logThread) write(work []turn.LogWork, inline bool) error {
	inMemory := l.writer.log == nil
	if inMemory {
		l.mu.Lock()
	}
	if inMemory || l.mu.TryLock() {
		defer l.mu.Unlock()
		if l.queue.empty() && (inMemory || inline || !l.writer.writes(work)) { // otherwise the queued work comes first
			return l.writer.work(work)
		}
	}
	l.queue.put(work...)
	return nil
}

// run does the queued work, with one write and one sync for all that waits. run ends when stop is
// closed, or returns the first error.
func (l *logThread) run(stop <-chan struct{}, done func()) error {
	check := time.NewTicker(placeInterval)
	defer check.Stop()
	for {
		var err error
		select {
		case <-l.queue.wake:
			err = l.workQueued()
			done()
		case <-check.C:
			err = l.checkPlace()
		case <-stop:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// checkPlace finds files that were removed although nothing is written.
func (l *logThread) checkPlace() error {
	if !l.mu.TryLock() {
		return nil // the loop writes, and checks then
	}
	defer l.mu.Unlock()
	return l.writer.place.check()
}

func (l *logThread) workQueued() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writer.work(l.queue.take())
}

func (l *logThread) begin(first core.LogState) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writer.begin(first)
}
