package link

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/gozkd/gozkd/internal/fair"
	"github.com/gozkd/gozkd/internal/invariants"
	"github.com/gozkd/gozkd/internal/neterr"
	"github.com/gozkd/gozkd/internal/rawio"
	"github.com/gozkd/gozkd/server/internal/bounds"
)

const (
	// InputBytes is the size of the read buffer of a connection, except for long frames.
	InputBytes = bounds.LongFrame
	// SmallBytes is the size of the read buffer before a connection has a session. The longest
	// first request of a client has 49 bytes; a client may send more requests right after it.
	SmallBytes = 1 << 10
	// fewLarge buffers of InputBytes are borrowed at the same time if there are many links. Under a
	// collection hundreds of readers may stand still, each with its buffer.
	fewLarge = 16
)

// inputs, smallInputs and longInputs hold free read buffers. A connection borrows a buffer only
// while there are bytes to handle.
var (
	inputs      = sync.Pool{New: func() any { return new([InputBytes]byte) }}
	smallInputs = sync.Pool{New: func() any { return new([SmallBytes]byte) }}
	longInputs  sync.Pool // for frames with places
)

// Input holds the bytes that were read from a connection and are not handled yet: buf[r:w]. Only
// the reader of the connection uses it. The zero value is empty.
type Input struct {
	// LeftOut is how many bytes of the next frame LeaveOut has left out.
	LeftOut int

	buf     []byte
	r, w    int
	discard int               // how many bytes that are to come are left out
	pooled  *[InputBytes]byte // nil: buf is not from inputs
	few     *[SmallBytes]byte // nil: buf is not from smallInputs
	small   bool              // the next buffer has SmallBytes
	sealed  bool              // the bytes are ciphertext, also those of frames with places
	waited  bool              // the last fill found nothing at first
	host    *Host             // of the link, set by Fill
}

// SetSmall sets whether the next buffer is small, for a connection without a session.
func (in *Input) SetSmall(small bool) { in.small = small }

// Bytes returns the bytes that are not handled. The result shares the buffer.
func (in *Input) Bytes() []byte { return in.buf[in.r:in.w] }

// Len returns the number of bytes that are not handled.
func (in *Input) Len() int { return in.w - in.r }

// Waited reports whether the last Fill found nothing at first.
func (in *Input) Waited() bool { return in.waited }

// At returns where the next frame begins.
func (in *Input) At() int { return in.r }

// Back makes a frame the next one again. Nothing was filled since At returned at.
func (in *Input) Back(at int) { in.r = at }

// Frame returns the next frame without its length, or nil if the frame has not arrived as a whole.
// The result shares the buffer. A length that is negative or above limit is an error.
func (in *Input) Frame(limit int32) ([]byte, error) {
	if in.w-in.r < 4 {
		return nil, nil
	}
	n := int32(binary.BigEndian.Uint32(in.buf[in.r:]))
	if n < 0 || n > limit {
		return nil, fmt.Errorf("frame length %d, allowed are 0 to %d", n, limit)
	}
	if in.w-in.r-4 < int(n) {
		return nil, nil
	}
	f := in.buf[in.r+4 : in.r+4+int(n) : in.r+4+int(n)]
	in.r += 4 + int(n)
	return f, nil
}

// Announced returns the length of the frame that has begun to arrive, or 0.
func (in *Input) Announced() int {
	if in.w-in.r < 4 {
		return 0
	}
	return int(binary.BigEndian.Uint32(in.buf[in.r:]))
}

// Fill reads more bytes from l. Fill holds no buffer while it waits, unless a part of a frame has
// arrived. The rest of a long frame is read when the frame has a place, see [bounds.Places]. If
// there are many links, the buffer is about as large as the arrived bytes: thousands of readers may
// wait for a lock at the same time.
func (in *Input) Fill(l *Link) error {
	in.waited, in.host = false, l.host
	switch {
	case in.r == in.w:
		l.Drop(in)
		err := in.first(l)
		if l.host.Many() {
			in.fit()
		}
		return err
	case in.discard > 0:
		n, err := in.skip(l)
		in.discard -= n
		return err
	}
	joins := l.place == nil && !l.holdsBack && l.host.Writes.Long.Crowded() && bounds.IsLong(in.Announced())
	if frame := in.Announced(); joins || in.Len() == InputBytes && in.w == len(in.buf) {
		if !l.takePlace(frame, len(in.buf)) {
			return io.EOF
		}
		part := *in
		in.buf, in.pooled, in.few, in.r = longInput(4+frame), nil, nil, 0
		in.w = copy(in.buf, part.Bytes())
		part.Release()
	}
	in.grow()
	l.holdInput(len(in.buf), true)
	n, err := l.readSome(in.buf[in.w:], len(in.buf))
	if in.w += n; l.place != nil && n > 0 {
		l.place.Progress(in.w == len(in.buf))
	}
	return err
}

// LongestHead bounds the bytes of a frame before those that LeaveOut leaves out. A longer head
// would stay in a buffer for which the frame no longer has a place.
const LongestHead = InputBytes/2 - 4

// LeaveOut leaves n bytes, which begin at a place of the next frame, out of it: they are discarded
// when they arrive, and the frame is shorter. The place must be at most LongestHead. The frame must
// have begun to arrive, up to a moment before the last of these bytes. It gives back its place, if
// it has one.
func (in *Input) LeaveOut(l *Link, at, n int) {
	arrived := in.Len() - 4 - at
	binary.BigEndian.PutUint32(in.Bytes(), uint32(in.Announced()-n))
	in.w -= arrived
	in.fit()
	in.LeftOut, in.discard = n, n-arrived
	l.dropPlace()
}

// skip waits for bytes that are left out, and returns how many have come.
func (in *Input) skip(l *Link) (int, error) {
	if l.raw != nil && !l.sealed() {
		l.holdInput(len(in.buf), true)
		return l.raw.Read((*leavingOut)(in))
	}
	scrap := Input{host: l.host, small: l.host.Many()}
	scrap.borrow()
	defer scrap.Release()
	l.holdInput(len(in.buf)+len(scrap.buf), true)
	n, err := l.readSome(scrap.buf[:min(in.discard, len(scrap.buf))], len(in.buf)+len(scrap.buf))
	// What has arrived with TLS is discarded at once, however small the buffer is.
	for more := n; more == len(scrap.buf) && l.sealed() && n < min(in.discard, InputBytes); n += more {
		more, _ = l.tls.decrypt(scrap.buf[:min(in.discard-n, len(scrap.buf))]) // the next call returns the same error
	}
	return n, err
}

// leavingOut is an Input whose reader holds no memory for the bytes that are left out.
type leavingOut Input

func (o *leavingOut) Borrow() []byte { return rawio.Sink[:min(o.discard, len(rawio.Sink))] }

func (o *leavingOut) Return() { o.waited = true }

func longInput(n int) []byte {
	if b, ok := longInputs.Get().(*[]byte); ok && cap(*b) >= n {
		return (*b)[:n]
	}
	return make([]byte, n)
}

// Host returns the host of the client, as connections are counted.
func (l *Link) Host() string { return fair.Host(l.nc.RemoteAddr()) }

// takePlace waits for a place of a frame, with that many bytes in its buffer, and returns false if
// the client is gone.
func (l *Link) takePlace(frame, held int) bool {
	l.holdInput(held, true)
	l.inLine.Store(true)
	l.place = l.host.Writes.Long.Take(frame, l, l.host.Patience())
	l.inLine.Store(false)
	return l.place != nil
}

// Gone reports whether the link is closed, or its client has ended it, which only a socket shows.
func (l *Link) Gone() bool { return l.IsClosed() || l.raw != nil && l.raw.Answers().Ended }

// HasPlace reports whether the frame that is read has a place.
func (l *Link) HasPlace() bool { return l.place != nil }

// MustEnter reports whether the request that was read must not be proposed before EnterWindow has
// returned: see [bounds.Writes.Enter].
func (l *Link) MustEnter() bool { return l.place != nil && !l.place.HasEntered() }

// EnterWindow waits for the turn of a long write, and returns false if the client is gone.
// Meanwhile the client counts as one whose frame waits for a place.
func (l *Link) EnterWindow(big bool) bool {
	l.noteAlive(l.host.Now()) // as until now
	l.inLine.Store(true)
	defer l.inLine.Store(false)
	defer l.SetHandling(l.handling.Swap(false))
	return l.host.Writes.Enter(l.place, big, l.host.Patience())
}

// InWindow reports whether EnterWindow has let in the request that was read.
func (l *Link) InWindow() bool { return l.place != nil && l.place.HasEntered() }

// LeaveWindow undoes EnterWindow.
func (l *Link) LeaveWindow() { l.host.Writes.Leave(l.place) }

// KeepPlace leaves the place of the frame that was read, or nil if it has none, to its request.
func (l *Link) KeepPlace() (of *bounds.Place) {
	if of, l.place = l.place, nil; of != nil {
		l.host.Writes.Long.Accepted(of)
	}
	return of
}

// Drop releases the input, with the place of its frame.
func (l *Link) Drop(in *Input) {
	in.Release()
	l.HoldInput(in)
	l.dropPlace()
}

func (l *Link) dropPlace() {
	if l.place != nil {
		l.host.Writes.Free(l.place)
		l.place = nil
	}
}

// Ended reports whether the client has closed the connection, or its sending half, after at most
// InputBytes bytes that are not handled. These bytes stay in the Input. Ended waits a moment only:
// an end that has arrived is found at once.
func (in *Input) Ended(l *Link) bool {
	if l.nc.SetReadDeadline(time.Now().Add(time.Millisecond)) != nil {
		return true
	}
	l.holdsBack = true
	defer func() { l.holdsBack = false }()
	for in.Len() < InputBytes {
		if err := in.Fill(l); err != nil {
			return neterr.TLSReason(err) == neterr.HungUp
		}
	}
	return false
}

func (in *Input) first(l *Link) error {
	if l.sealed() {
		return l.tls.first(in)
	}
	if l.raw == nil { // a pipe, or a system without raw sockets: wait with a small buffer
		var few [4]byte
		n, err := l.readSome(few[:], 0)
		in.borrow()
		in.w = copy(in.buf, few[:n])
		return err
	}
	return in.await(l.raw)
}

// await waits until bytes have arrived, and only then borrows a buffer.
func (in *Input) await(raw *rawio.Conn) (err error) {
	in.waited = false
	in.w, err = raw.Read((*arriving)(in))
	return err
}

// arriving is an Input without a buffer: thousands of readers may wait for their clients.
type arriving Input

func (a *arriving) Borrow() []byte {
	(*Input)(a).borrow()
	return a.buf
}

func (a *arriving) Return() {
	(*Input)(a).Release()
	a.waited = true
}

// fit gives back a large buffer that is at most half full.
func (in *Input) fit() {
	if len(in.buf) >= InputBytes && in.Len() <= len(in.buf)/2 {
		in.shrink()
	}
}

// shrink moves the arrived bytes to a buffer of their size.
func (in *Input) shrink() {
	full := *in
	in.buf, in.pooled, in.few, in.r = slices.Clone(full.Bytes()), nil, nil, 0
	in.w = len(in.buf)
	full.Release()
}

// grow makes room for more bytes of an incomplete frame, up to InputBytes. The buffer doubles as
// bytes arrive, so that a false length costs at most twice the memory of the bytes really sent, or
// SmallBytes. If there are many links, it is not larger than the frame.
func (in *Input) grow() {
	switch {
	case in.r > 0:
		in.w = copy(in.buf, in.buf[in.r:in.w])
		in.r = 0
	case in.w == len(in.buf):
		full, w, most := *in, in.w, InputBytes
		if !in.host.Many() {
			in.borrowLarge()
		} else {
			if frame := 4 + in.Announced(); frame > w { // otherwise ReadAhead reads more frames
				most = min(frame, InputBytes)
			}
			in.buf, in.pooled, in.few = make([]byte, min(max(2*w, SmallBytes), most)), nil, nil
		}
		in.w = copy(in.buf, full.buf[:w])
		full.Release()
	}
}

func (in *Input) borrow() {
	if h := in.host; in.small || h.Writes.Long.Crowded() && !in.sealed || h.Many() && h.large.Load() >= fewLarge {
		in.r, in.w, in.pooled, in.few = 0, 0, nil, smallInputs.Get().(*[SmallBytes]byte)
		in.buf = in.few[:]
		return
	}
	in.borrowLarge()
}

func (in *Input) borrowLarge() {
	in.host.large.Add(1)
	in.r, in.w, in.pooled, in.few = 0, 0, inputs.Get().(*[InputBytes]byte), nil
	in.buf = in.pooled[:]
}

// Release gives the buffer back.
func (in *Input) Release() {
	if invariants.Enabled && (in.pooled != nil || in.few != nil || len(in.buf) > InputBytes) {
		// The bytes of the next owner, who may come later than a check.
		copy(in.buf, bytes.Repeat([]byte{0xdb}, len(in.buf)))
	}
	if in.pooled != nil {
		inputs.Put(in.pooled)
		in.host.large.Add(-1)
	}
	if in.few != nil {
		smallInputs.Put(in.few)
	}
	if len(in.buf) > InputBytes {
		long := in.buf // not declared before: its address puts it on the heap
		longInputs.Put(&long)
	}
	in.buf, in.pooled, in.few, in.r, in.w = nil, nil, nil, 0, 0
	in.LeftOut, in.discard = 0, 0
}
