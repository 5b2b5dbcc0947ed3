package bounds

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

// Memory bounds the bytes that all client connections hold together. Each has an account with two
// sums:
//
//   - unread: output that the client has not read, except shared data, and the input buffer while
//     the rest of a frame is missing. Only the client can free it. Beyond the bound the slowest
//     clients are disconnected, until an eighth is free: those with the largest product of unread
//     bytes and the time for which they have been waited for. A partial write does not end this
//     time.
//   - queued: requests that wait in the queue, and the input buffer after them. The server frees
//     it. From half of the bound on, a connection with much in its queue is not read.
//
// Large data is shared, and counts once as unread. When the slowest clients are chosen, each
// reference accounts for its part.
//
// Invariant: when a connection's goroutine waits for its client, everything that the connection
// holds is charged. Buffers for which a socket made the server wait are not pooled.
//
// Invariant: queued is the sum of queued in the accounts of all connections; unread is that of
// unread, and of the bytes of all blobs in shared; and a closed connection holds nothing.
type Memory struct {
	shared sharedBlobs

	Limit  atomic.Int64
	Unread atomic.Int64 // beyond Limit, the slowest readers are disconnected
	Queued atomic.Int64 // beyond half of Limit, connections are read only if they have short queues
}

// UnreadExceeded reports whether the slowest readers must be disconnected.
func (b *Memory) UnreadExceeded() bool { return b.Unread.Load() > b.Limit.Load() }

// QueuesTight reports whether only connections with short queues may be read.
func (b *Memory) QueuesTight() bool { return b.Queued.Load() > b.Limit.Load()/2 }

// Waiting returns how many bytes wait for clients, or for the server to answer.
func (b *Memory) Waiting() int64 { return max(0, b.Unread.Load()+b.Queued.Load()) }

// sharedBlobs are the large data of znodes and the large events that outputs refer to without
// holding a copy. Each is charged to the budget once, however many outputs refer to it.
//
// Invariant: holders is the number of references in the accounts of all connections, no blob
// in the table has none, and the budget's unread contains the bytes of each blob in the table.
type sharedBlobs struct {
	mu    sync.Mutex // may be taken while a Link.mu is held
	blobs map[*byte]*Blob
}

// Blob is data that is never changed. Its address identifies it, because its holders keep it.
type Blob struct {
	key     *byte
	bytes   int64
	holders int64 // guarded by sharedBlobs.mu
}

// Hold adds a holder of data, which is not empty.
func (b *Memory) Hold(data []byte) *Blob {
	key := unsafe.SliceData(data)
	b.shared.mu.Lock()
	defer b.shared.mu.Unlock()
	s := b.shared.blobs[key]
	if s == nil {
		if b.shared.blobs == nil {
			b.shared.blobs = make(map[*byte]*Blob)
		}
		s = &Blob{key: key, bytes: int64(len(data))}
		b.shared.blobs[key] = s
		b.Unread.Add(s.bytes)
	}
	s.holders++
	return s
}

// Release removes a holder of each of the blobs.
func (b *Memory) Release(blobs []*Blob) {
	b.shared.mu.Lock()
	defer b.shared.mu.Unlock()
	for _, s := range blobs {
		if s.holders--; s.holders == 0 {
			delete(b.shared.blobs, s.key)
			b.Unread.Add(-s.bytes)
		}
	}
}

// Portion returns the bytes that a connection with these references accounts for: of each blob its
// bytes divided by the number of references to it.
func (b *Memory) Portion(blobs []*Blob) (sum int64) {
	b.shared.mu.Lock()
	defer b.shared.mu.Unlock()
	for _, s := range blobs {
		sum += s.bytes / s.holders
	}
	return sum
}

// EachBlob calls f for all shared data with its number of bytes and of holders.
func (b *Memory) EachBlob(f func(blob *Blob, bytes, holders int64)) {
	b.shared.mu.Lock()
	defer b.shared.mu.Unlock()
	for _, s := range b.shared.blobs {
		f(s, s.bytes, s.holders)
	}
}
