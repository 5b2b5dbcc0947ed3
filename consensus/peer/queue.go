package peer

import (
	"sync"
	"sync/atomic"
)

// maxSpare is how many slots are kept for the next frames; a burst may have made more.
const maxSpare = 4096

// queue holds the frames that wait for one peer. put may be called from any goroutine, the rest from the one that writes.
type queue struct {
	limit int
	more  chan struct{} // capacity 1: frames are there; only signal sends
	bytes atomic.Int64  // of frames that wait or are being written

	mu     sync.Mutex // guards what follows, and that bytes grows only while the queue is open
	isOpen bool
	frames [][]byte
}

func newQueue(limit int) *queue {
	return &queue{limit: limit, more: make(chan struct{}, 1)}
}

// put appends a frame, or returns false when the queue is closed or full.
func (q *queue) put(frame []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	// NB: What waits is compared without the new frame. Else a frame above the limit would only ever pass through
	// an empty queue, and one that others keep filling would shut it out for ever.
	if !q.isOpen || q.bytes.Load() >= int64(q.limit) {
		return false
	}
	q.bytes.Add(int64(len(frame) + headBytes))
	q.frames = append(q.frames, frame)
	return true
}

// signal wakes the goroutine that writes.
func (q *queue) signal() {
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// take returns all frames that wait, none if there are none. spare becomes the memory of those that will wait next.
func (q *queue) take(spare [][]byte) [][]byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	frames := q.frames
	if cap(spare) > maxSpare {
		spare = nil
	}
	q.frames = spare[:0]
	return frames
}

// written makes room: a frame that was taken is on its way.
func (q *queue) written(frame []byte) { q.bytes.Add(-int64(len(frame) + headBytes)) }

func (q *queue) open() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.isOpen = true
}

// close drops what waits and refuses more.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.isOpen = false
	q.frames = nil
	q.bytes.Store(0)
}
