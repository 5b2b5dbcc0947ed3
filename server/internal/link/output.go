package link

import (
	"bytes"
	"encoding/binary"
	"sync"

	"github.com/gozkd/gozkd/proto/jute"
)

// outputs holds free buffers for replies. An idle connection has none.
var outputs = sync.Pool{New: func() any { b := make([]byte, 0, minPooledOutput); return &b }}

// A buffer is kept if it has from minPooledOutput to maxPooledOutput bytes. A longer buffer would
// only make the pool heavy: the replies of a burst of reads need Burst. A shorter buffer may be a
// frame that connections share, see AppendShared.
const (
	minPooledOutput = 4 << 10
	maxPooledOutput = 2 * Burst
	// Burst is how many bytes of output are made before the output is sent, and how many wait at
	// most before the reader of the connection waits for its client.
	Burst = 256 << 10
	// maxSealNow is how much output of a connection is encrypted by the goroutine that made it.
	maxSealNow = 16 << 10
	// pieceBytes is how much is written at once to a client that is waited for.
	pieceBytes = 16 << 10
)

// ShareBytes is the size from which data of a znode is sent without being copied. Copying less
// costs no more than two additional system calls.
const ShareBytes = 16 << 10

// Output holds the output that waits for a client: bytes, and between them data that is shared with
// the tree. The zero value is empty.
type Output struct {
	sealed []byte       // encrypted bytes, sent before all else; nil: none
	nGone  int          // how many bytes of sealed are sent
	Buf    []byte       // the bytes that are appended; with data between them, see share
	sent   int          // how many bytes of Buf are sent
	shared []sharedData // in order
	nBytes int          // of all shared data
}

// sharedData is data that is sent before Buf[at]. The data is never changed.
type sharedData struct {
	at   int
	data []byte
}

// Len returns the number of bytes to be sent.
func (o *Output) Len() int { return len(o.sealed) - o.nGone + len(o.Buf) - o.sent + o.nBytes }

// Held returns how many bytes of memory o keeps from being freed, apart from shared data.
func (o *Output) Held() int { return cap(o.sealed) + cap(o.Buf) }

// SharedBytes returns how many bytes of shared data wait.
func (o *Output) SharedBytes() int { return o.nBytes }

// AppendData appends the data of a znode as a jute buffer.
func (o *Output) AppendData(data []byte) {
	if len(data) < ShareBytes {
		o.Buf = jute.AppendBuffer(o.Buf, data)
		return
	}
	o.Buf = jute.AppendInt(o.Buf, int32(len(data)))
	o.share(data)
}

// share appends data without copying it.
func (o *Output) share(data []byte) {
	o.shared = append(o.shared, sharedData{len(o.Buf), data})
	o.nBytes += len(data)
}

// AppendOutput appends later, of which nothing is sent yet.
func (o *Output) AppendOutput(later Output) {
	for _, s := range later.shared {
		o.shared = append(o.shared, sharedData{len(o.Buf) + s.at, s.data})
	}
	o.Buf = append(o.Buf, later.Buf...)
	o.nBytes += later.nBytes
}

// Mark is a position in an output.
type Mark struct{ buf, shared, nBytes int }

// At returns the length of Output.Buf at m.
func (m Mark) At() int { return m.buf }

// Mark returns the end of o.
func (o *Output) Mark() Mark { return Mark{len(o.Buf), len(o.shared), o.nBytes} }

// Truncate drops everything after m.
func (o *Output) Truncate(m Mark) {
	clear(o.shared[m.shared:])
	o.Buf, o.shared, o.nBytes = o.Buf[:m.buf], o.shared[:m.shared], m.nBytes
}

// EndFrame patches the length of the frame that begins at m.
func (o *Output) EndFrame(m Mark) {
	binary.BigEndian.PutUint32(o.Buf[m.buf:], uint32(len(o.Buf)-m.buf-4+o.nBytes-m.nBytes))
}

// Next returns the bytes to be sent next, and whether more bytes come after these.
func (o *Output) Next() (b []byte, more bool) {
	switch {
	case o.sealed != nil:
		b = o.sealed[o.nGone:]
	case len(o.shared) == 0:
		return o.Buf[o.sent:], false
	case o.shared[0].at == o.sent:
		b = o.shared[0].data
	default:
		b = o.Buf[o.sent:o.shared[0].at]
	}
	return b, len(b) < o.Len()
}

// Advance drops n bytes that Next returned, because they are sent.
func (o *Output) Advance(n int) {
	if o.sealed != nil {
		if o.nGone += n; o.nGone == len(o.sealed) {
			putOutput(o.sealed)
			o.sealed, o.nGone = nil, 0
		}
		return
	}
	if len(o.shared) == 0 || o.shared[0].at != o.sent {
		o.sent += n
		return
	}
	o.nBytes -= n
	s := &o.shared[0]
	if s.data = s.data[n:]; len(s.data) == 0 {
		s.data = nil // the empty slice would keep the array
		o.shared = o.shared[1:]
	}
}

// shrink gives a large buffer back that holds little, before a goroutine waits for the client.
func (o *Output) shrink() {
	rest := o.Buf[o.sent:]
	if cap(o.Buf) <= 2*max(len(rest), minPooledOutput) {
		return
	}
	large := o.Buf
	o.Buf = bytes.Clone(rest)
	for i := range o.shared {
		o.shared[i].at -= o.sent
	}
	o.sent = 0
	putOutput(large)
}

// Borrow gives the output a buffer, before something is appended.
func (o *Output) Borrow() {
	if o.Buf == nil {
		o.Buf = *outputs.Get().(*[]byte)
	}
}

// AppendShared appends a frame that other connections get, too. The frame is never changed, and its
// capacity must be its length: then the frame itself can be the output, and an append to the output
// copies it.
func (o *Output) AppendShared(frame []byte) {
	if o.Buf == nil && len(frame) < minPooledOutput {
		o.Buf = frame
		return
	}
	if len(frame) >= ShareBytes {
		o.share(frame)
		return
	}
	o.Borrow()
	o.Buf = append(o.Buf, frame...)
}

func putOutput(b []byte) {
	if c := cap(b); c >= minPooledOutput && c <= maxPooledOutput {
		kept := b[:0] // the address of b would put b on the heap in every call
		outputs.Put(&kept)
	}
}
