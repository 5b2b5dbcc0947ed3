package memnet

// window is how many bytes may be unread on a connection, in each direction.
const window = 256 << 10

// minRing is the initial size of a ring, in bytes. A ring doubles its size up to the window.
const minRing = 512

// ring is a queue of bytes. It grows as needed, and never shrinks.
type ring struct {
	buf  []byte // the length is 0, or a power of two times minRing
	head int    // index of the first byte
	n    int    // number of bytes
}

func (r *ring) len() int { return r.n }

// write appends b. The ring must not exceed the window.
func (r *ring) write(b []byte) {
	if need := r.n + len(b); need > len(r.buf) {
		r.grow(need)
	}
	tail := (r.head + r.n) & (len(r.buf) - 1)
	n := copy(r.buf[tail:], b)
	copy(r.buf, b[n:])
	r.n += len(b)
}

func (r *ring) grow(need int) {
	size := max(len(r.buf), minRing)
	for size < need {
		size *= 2
	}
	buf := make([]byte, size)
	n := copy(buf, r.buf[r.head:min(r.head+r.n, len(r.buf))])
	copy(buf[n:], r.buf[:r.n-n])
	r.buf, r.head = buf, 0
}

// read moves as many bytes as fit from the front into b.
func (r *ring) read(b []byte) int {
	n := min(len(b), r.n)
	end := min(r.head+n, len(r.buf))
	k := copy(b, r.buf[r.head:end])
	copy(b[k:n], r.buf)
	if r.n -= n; r.n == 0 {
		r.head = 0
		return n
	}
	r.head = (r.head + n) & (len(r.buf) - 1)
	return n
}
