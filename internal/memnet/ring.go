package memnet

// window is how many bytes may be under way on a connection, in each direction: written and not read.
const window = 256 << 10

// smallest is what a ring begins with, in bytes. It doubles up to the window.
const smallest = 512

// ring is a queue of bytes. It grows as needed and keeps its memory.
type ring struct {
	buf  []byte // its length is 0, or a power of two times smallest
	head int    // where the first byte is
	n    int    // how many there are
}

func (r *ring) len() int { return r.n }

// write appends b. With what is there it must not be more than the window.
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
	size := max(len(r.buf), smallest)
	for size < need {
		size *= 2
	}
	buf := make([]byte, size)
	n := copy(buf, r.buf[r.head:min(r.head+r.n, len(r.buf))])
	copy(buf[n:], r.buf[:r.n-n])
	r.buf, r.head = buf, 0
}

// read moves bytes from the front into b, as many as fit.
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
