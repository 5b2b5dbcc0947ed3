package server

import (
	"sync"
	"unsafe"
)

// sharedBlobs are the large data of znodes and the large events that outputs refer to without
// holding a copy. Each is charged to the budget once, however many outputs refer to it.
//
// Invariant: holders is the number of references in conn.memory.shared of all connections, no blob
// in the table has none, and the budget's unread contains the bytes of each blob in the table.
type sharedBlobs struct {
	mu    sync.Mutex // may be taken while a conn.mu is held
	blobs map[*byte]*sharedBlob
}

// sharedBlob is data that is never changed. Its address identifies it, because its holders keep it.
type sharedBlob struct {
	key     *byte
	bytes   int64
	holders int64 // guarded by sharedBlobs.mu
}

// hold adds a holder of data, which is not empty.
func (b *memoryBudget) hold(data []byte) *sharedBlob {
	key := unsafe.SliceData(data)
	b.shared.mu.Lock()
	defer b.shared.mu.Unlock()
	s := b.shared.blobs[key]
	if s == nil {
		if b.shared.blobs == nil {
			b.shared.blobs = make(map[*byte]*sharedBlob)
		}
		s = &sharedBlob{key: key, bytes: int64(len(data))}
		b.shared.blobs[key] = s
		b.unread.Add(s.bytes)
	}
	s.holders++
	return s
}

// release removes a holder of each of the blobs.
func (b *memoryBudget) release(blobs []*sharedBlob) {
	b.shared.mu.Lock()
	defer b.shared.mu.Unlock()
	for _, s := range blobs {
		if s.holders--; s.holders == 0 {
			delete(b.shared.blobs, s.key)
			b.unread.Add(-s.bytes)
		}
	}
}

// portion returns what a connection with these references accounts for: of each blob its bytes
// divided by the number of references to it.
func (b *memoryBudget) portion(blobs []*sharedBlob) (sum int64) {
	b.shared.mu.Lock()
	defer b.shared.mu.Unlock()
	for _, s := range blobs {
		sum += s.bytes / s.holders
	}
	return sum
}

// holdShared charges the shared data on c.out that is not charged yet, and reports whether there
// was any. c.mu is held.
func (c *conn) holdShared() bool {
	m := &c.memory
	held := len(m.shared) - m.writingShared // of those on c.out
	if held >= len(c.out.shared) {
		return false
	}
	for _, s := range c.out.shared[held:] {
		m.shared = append(m.shared, c.server.conns.budget.hold(s.data))
	}
	return true
}

// releaseShared gives up the n oldest references, or all if there are fewer. c.mu is held.
func (c *conn) releaseShared(n int) {
	m := &c.memory
	if n = min(n, len(m.shared)); n == 0 {
		return
	}
	c.server.conns.budget.release(m.shared[:n])
	clear(m.shared[:n])
	if m.shared = m.shared[n:]; len(m.shared) == 0 {
		m.shared = nil
	}
}
