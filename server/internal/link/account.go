package link

import (
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/server/internal/bounds"
)

// uncounted is how much more than its charge a link may hold while its requests are handled or
// a batch is applied: small requests do not touch the budget's shared counters. Once the server
// waits for the client, everything is charged.
const uncounted = 16 << 10

// account is the charge of a link to the budget. It is written with Link.mu held.
type account struct {
	// unread counts bytes that only the client can free: output that it has not read, except data
	// that it shares, and the part of a frame that it has not finished. Read without Link.mu.
	unread atomic.Int64
	// since is when the server began to wait for the client, in nanoseconds since Host.mono, or 0.
	// The wait begins anew when the client has taken all output that was being written. Read
	// without Link.mu.
	since atomic.Int64
	// queued counts bytes that the server frees when it answers: requests, and input after them.
	queued int64

	// shared are the references to shared data that are charged: first those of the output that is
	// being written, then those on Link.Out. writingShared is the number of the former.
	shared        []*bounds.Blob
	writingShared int

	writing int  // bytes of memory that are being written to the socket, and are no longer in Link.Out
	waited  bool // the socket did not take these bytes at once
	input   int  // bytes of the input buffer while the reader waits; only the reader writes it
	partial bool // input ends with a part of a frame whose rest the client must send; as input
}

func (m *account) charged() bool { return m.unread.Load() != 0 || m.queued != 0 || len(m.shared) > 0 }

// charge charges the bytes that the link holds. Unless exact is set, nothing happens if they are
// little more than the present charge.
func (m *account) charge(host *Host, unread, queued int64, exact bool) {
	waiting := unread != 0 || len(m.shared) > 0
	if waiting && m.since.Load() == 0 {
		m.since.Store(max(1, int64(time.Since(host.mono))))
	}
	was := m.unread.Load()
	if !exact && unread < was+uncounted && queued < m.queued+uncounted {
		return
	}
	if !waiting {
		m.since.Store(0)
	}
	if unread != was {
		m.unread.Store(unread)
		host.Memory.Unread.Add(unread - was)
	}
	if queued != m.queued {
		host.Memory.Queued.Add(queued - m.queued)
		m.queued = queued
	}
}

// hold charges the shared data on the output not charged yet, and reports whether there was any.
func (m *account) hold(b *bounds.Memory, onOutput []sharedData) bool {
	held := len(m.shared) - m.writingShared // of those on the output
	if held >= len(onOutput) {
		return false
	}
	for _, s := range onOutput[held:] {
		m.shared = append(m.shared, b.Hold(s.data))
	}
	return true
}

// release gives up the n oldest references, or all if there are fewer.
func (m *account) release(b *bounds.Memory, n int) {
	if n = min(n, len(m.shared)); n == 0 {
		return
	}
	b.Release(m.shared[:n])
	clear(m.shared[:n])
	if m.shared = m.shared[n:]; len(m.shared) == 0 {
		m.shared = nil
	}
}

// Recount charges the bytes that l holds now. Unless exact is set, nothing happens if l holds
// little more than was charged. l.mu is held. After l.mu the caller must call HostConfig.Relieve.
func (l *Link) Recount(exact bool) {
	m := &l.memory
	if l.closed {
		m.release(&l.host.Memory, len(m.shared))
		m.charge(l.host, 0, 0, exact)
		return
	}
	unread, queued := int64(m.writing), l.owner.Backlog()
	if m.partial {
		unread += int64(m.input)
	} else {
		queued += int64(m.input)
	}
	switch {
	case exact || l.flushing && l.Out.Len() >= uncounted:
		unread += int64(l.Out.Held())
	case l.Out.Len() >= uncounted: // written soon, and a few bytes are often in a large buffer of the pool
		unread += int64(len(l.Out.Buf) - l.Out.sent)
	}
	grown := m.hold(&l.host.Memory, l.Out.shared)
	m.charge(l.host, unread, queued, exact || grown)
}

// awaitClient charges the bytes of l before a goroutine writes the rest of o, which may wait for
// the client. l.mu is not held.
func (l *Link) awaitClient(o *Output) {
	l.mu.Lock()
	l.memory.waited = l.raw != nil // without a socket nobody knows, and most writes do not wait
	if l.memory.waited || o.Len() >= uncounted {
		l.memory.writing = o.Held()
	}
	l.Recount(l.memory.waited)
	l.mu.Unlock()
	l.host.Relieve()
}

// HoldInput charges the buffer of the input before the reader waits for something other than more
// bytes. If there are many links, the input gives a large buffer back, which others may need
// meanwhile: what was decoded without a copy is then theirs. Only the reader calls HoldInput.
func (l *Link) HoldInput(in *Input) {
	if l.host.Many() && in.pooled != nil {
		in.shrink()
	}
	l.holdInput(len(in.buf), false)
}

// holdInput charges n bytes of input before the reader waits. partial: for the rest of a frame.
func (l *Link) holdInput(n int, partial bool) {
	partial = partial && !l.holdsBack
	if m := &l.memory; m.input != n || m.partial != partial {
		l.mu.Lock()
		m.input, m.partial = n, partial
		l.Recount(true)
		l.mu.Unlock()
		l.host.Relieve()
	}
}

// Charged returns the charge of the link. l.mu is held.
func (l *Link) Charged() (unread, queued int64, shared []*bounds.Blob) {
	return l.memory.unread.Load(), l.memory.queued, l.memory.shared
}

// Waits returns for how long the server has been waiting for the client.
func (l *Link) Waits() time.Duration {
	since := l.memory.since.Load()
	if since == 0 {
		return 0
	}
	return max(0, time.Since(l.host.mono)-time.Duration(since))
}

// Overdue reports whether more than limit bytes wait for the client. l.mu is held.
func (l *Link) Overdue(limit int) bool { return l.flushing && l.Out.Len() > limit }

// CloseSlow closes the link unless its socket takes all output now, which it has not been offered
// yet if Apply made it a moment ago.
func (l *Link) CloseSlow() (closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed || l.raw != nil && l.flushing && !l.memory.waited: // it is being offered
		return false
	case l.raw != nil && !l.flushing:
		l.writeOut(true)
	}
	if l.closed || l.memory.unread.Load() == 0 && len(l.memory.shared) == 0 {
		return false
	}
	l.CloseLocked()
	return true
}
