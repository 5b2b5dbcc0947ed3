package peer

import (
	"sync"
	"sync/atomic"

	"github.com/gozkd/gozkd/internal/wakeup"
)

// maxSpare is the largest slice that is reused: a burst may have made a larger slice.
const maxSpare = 4096

// queue holds the frames that wait for a peer. put may be called from any goroutine, the other
// methods only by the writer.
type queue struct {
	limit int
	more  chan struct{} // capacity 1: there are frames; only signal sends
	bytes atomic.Int64  // of frames that wait or are being written

	mu     sync.Mutex // guards the fields below; bytes grows only while the queue is open
	isOpen bool
	frames [][]byte
}

func newQueue(limit int) *queue {
	return &queue{limit: limit, more: make(chan struct{}, 1)}
}

// put appends a frame, and returns false if the queue is closed or full.
func (q *queue) put(frame []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	// Compare without the new frame. Otherwise a frame above the limit would need an empty queue,
	// and would starve if other frames keep filling the queue.
	if !q.isOpen || q.bytes.Load() >= int64(q.limit) {
		return false
	}
	q.bytes.Add(int64(len(frame) + frameHeaderBytes))
	q.frames = append(q.frames, frame)
	return true
}

func (q *queue) signal() { wakeup.Send(q.more) }

// take removes and returns all frames. spare becomes the memory of the queue.
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

func (q *queue) written(frame []byte) { q.bytes.Add(-int64(len(frame) + frameHeaderBytes)) }

func (q *queue) open() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.isOpen = true
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.isOpen = false
	q.frames = nil
	q.bytes.Store(0)
}
